"""`bookferry doctor`: runs the checks and prints their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from cli.command_lines import with_command_lines
from cli.options import settings_of
from cli.output import Answer, verdict
from cli.progress import say_wait
from cli.scheduler_check import NIGHTLY
from pipelines.doctor.checks import CHECKS
from pipelines.doctor.examination import Examination, examine
from pipelines.doctor.findings import CheckResult, CheckStatus, failed, problem, worst
from pipelines.doctor.look import Look
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.humanize import counted
from pipelines.service.redaction import redact

STYLES = {
    CheckStatus.OK: "green",
    CheckStatus.NOTE: "dim",
    CheckStatus.WARNING: "yellow",
    CheckStatus.PROBLEM: "bold red",
}


def examine_tenants(config: str | None, *, tenant: str | None) -> Answer:
    """Examine one tenant or all. The status is 0 only if the nightly backup would work for each of them."""
    try:
        settings = settings_of(config)
    except ConfigurationError as error:
        return _answer([], [replace(failed(error), name="configuration")])
    names = [tenant] if tenant is not None else list(settings.tenants)
    for name in names:
        settings.tenant(name)
    if not names:
        message = f"{settings.path} names no tenant: there is nothing to back up"
        todo = "Add a table [tenants.NAME] with base_url, api and the names of the variables that hold the sign-in."
        nothing = problem(message, todo, exit_status=ExitStatus.USAGE)
        return _answer([], [replace(nothing, name="configuration")])
    examined = []
    for name in names:
        with Look(settings, name, on_wait=say_wait) as look:
            examined.append(examine(look, [*CHECKS, NIGHTLY]))
    return _answer(examined, [])


def _answer(examined: Sequence[Examination], general: list[CheckResult]) -> Answer:
    """All results. `general`: those of no library."""
    status = worst([*general, *(finding for examination in examined for finding in examination.findings)])
    document: dict[str, Any] = {
        "ok": status is ExitStatus.COMPLETE,
        "tenants": [_document(examination) for examination in examined],
    }
    if general:
        document["checks"] = [finding.document for finding in general]
    return Answer(document, _lines(examined, general), status)


def _document(examination: Examination) -> dict[str, Any]:
    return {
        "tenant": examination.tenant,
        "ok": worst(examination.findings) is ExitStatus.COMPLETE,
        "requests": examination.requests,
        "checks": [finding.document for finding in examination.findings],
    }


def _lines(examined: Sequence[Examination], general: list[CheckResult]) -> Iterator[RenderableType]:
    yield from _findings(general)
    for examination in examined:
        yield Text(examination.tenant, "bold")
        yield from _findings([finding for finding in examination.findings if not finding.unchecked])
        yield from _unchecked(examination.findings)
        yield ""
    yield _verdict(examined, general)


def _findings(findings: Sequence[CheckResult]) -> Iterator[Text]:
    """A line for each result, and one for what to do. The terminal breaks long ones, so that a command in them can be pasted."""
    names = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        status = f"  {finding.status:<{len(CheckStatus.WARNING)}}", STYLES[finding.status]
        yield Text.assemble(status, f"  {finding.name:<{names}}  {_one_line(finding.message)}")
        if finding.todo:
            yield Text(f"{'':<{len(status[0]) + names + 4}}→ {_one_line(finding.todo)}")


def _unchecked(findings: Sequence[CheckResult]) -> Iterator[Text]:
    """What was not checked, and why; a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for finding in findings:
        if finding.unchecked:
            reasons.setdefault(finding.unchecked, []).append(finding.name)
    if reasons:
        yield Text("\n  Not checked", "bold")
    for reason, names in reasons.items():
        yield Text(f"  {', '.join(names)}: {_one_line(reason)}", "dim")


def _one_line(text: str) -> str:
    """A text without secrets, with its commands to paste."""
    return with_command_lines(" ".join(redact(text).split()))


def _verdict(examined: Sequence[Examination], general: list[CheckResult]) -> Text:
    ready = [examination.tenant for examination in examined if worst(examination.findings) is ExitStatus.COMPLETE]
    failing = [examination.tenant for examination in examined if examination.tenant not in ready]
    requests = sum(examination.requests for examination in examined)
    cost = f" ({counted(requests, 'request')})" if examined else ""
    if failing or general:
        for_whom = f" for {', '.join(failing)}" if failing else ""
        return verdict("PROBLEM:", f"the nightly backup would not work{for_whom}{cost}.", good=False)
    return verdict("Ready:", f"the nightly backup would work for {', '.join(ready)}{cost}.")
