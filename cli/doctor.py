"""`bookferry doctor`: runs the checks and prints their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from cli.command_lines import with_command_lines
from cli.output import Answer, verdict
from cli.progress import say_wait
from cli.scheduler_check import NIGHTLY
from pipelines.doctor.checks import CHECKS
from pipelines.doctor.examination import Examination, examine
from pipelines.doctor.findings import CheckResult, CheckStatus, worst
from pipelines.doctor.look import Look
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.humanize import counted
from pipelines.service.redaction import redact
from pipelines.settings.settings import Settings

STYLES = {
    CheckStatus.OK: "green",
    CheckStatus.NOTE: "dim",
    CheckStatus.WARNING: "yellow",
    CheckStatus.PROBLEM: "bold red",
}


def examine_tenants(settings: Settings, *, tenant: str | None) -> Answer:
    """Examine one tenant or all. The status is 0 only if the nightly backup would work for each of them."""
    names = [*settings.tenants] if tenant is None else [tenant]
    if not names:
        raise ConfigurationError(
            f"{settings.path} names no tenant: there is nothing to back up. `bookferry init --tenant NAME` adds one."
        )
    for name in names:
        settings.tenant(name)
    examined = []
    for name in names:
        with Look(settings, name, on_wait=say_wait) as look:
            examined.append(examine(look, [*CHECKS, NIGHTLY]))
    status = worst(finding for examination in examined for finding in examination.findings)
    document = {"ok": status is ExitStatus.COMPLETE, "tenants": [*map(_document, examined)]}
    return Answer(document, _lines(examined), status)


def _document(examination: Examination) -> dict[str, Any]:
    return {
        "tenant": examination.tenant,
        "ok": worst(examination.findings) is ExitStatus.COMPLETE,
        "requests": examination.requests,
        "checks": [finding.document for finding in examination.findings],
    }


def _lines(examined: Sequence[Examination]) -> Iterator[RenderableType]:
    for examination in examined:
        yield Text(examination.tenant, "bold")
        yield from _findings(examination.findings)
        yield ""
    failing = [examination.tenant for examination in examined if worst(examination.findings) is not ExitStatus.COMPLETE]
    cost = counted(sum(examination.requests for examination in examined), "request")
    if failing:
        yield verdict("PROBLEM:", f"the nightly backup would not work for {', '.join(failing)} ({cost}).", good=False)
    else:
        ready = ", ".join(examination.tenant for examination in examined)
        yield verdict("Ready:", f"the nightly backup would work for {ready} ({cost}).")


def _findings(findings: Sequence[CheckResult]) -> Iterator[Text]:
    """A line for each result, and one for what to do. The terminal breaks long ones, so that a command in them can be pasted."""
    names = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        status = f"  {finding.status:<{len(CheckStatus.WARNING)}}", STYLES[finding.status]
        yield Text.assemble(status, f"  {finding.name:<{names}}  {_one_line(finding.message)}")
        if finding.todo:
            yield Text(f"{'':<{len(status[0]) + names + 4}}→ {_one_line(finding.todo)}")


def _one_line(text: str) -> str:
    """A text without secrets, with its commands to paste."""
    return with_command_lines(" ".join(redact(text).split()))
