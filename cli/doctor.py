"""`bookferry doctor`: runs the checks and prints their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.command_lines import with_command_lines
from cli.nightly_check import NIGHTLY
from cli.output import Output, print_verdict
from cli.progress import say_wait
from pipelines.doctor.checks import CHECKS
from pipelines.doctor.examination import Examination, examine
from pipelines.doctor.findings import CheckResult, CheckStatus, failed, problem, worst
from pipelines.doctor.look import Look
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.file_access import restrict_new_files
from pipelines.humanize import counted
from pipelines.service.redaction import redact
from pipelines.settings.loading import find_config, load_settings

STYLES = {
    CheckStatus.OK: "green",
    CheckStatus.NOTE: "dim",
    CheckStatus.WARNING: "yellow",
    CheckStatus.PROBLEM: "bold red",
}


def examine_tenants(config: str | None, tenant: str | None, output: Output) -> ExitStatus:
    """Examine one tenant or all. The status is 0 only if the nightly backup would work for each of them."""
    try:
        settings = load_settings(find_config(Path(config) if config else None))
        restrict_new_files(settings.group)
    except ConfigurationError as error:
        return _print_results([], [replace(failed(error), name="configuration")], output)
    names = [tenant] if tenant is not None else list(settings.tenants)
    for name in names:
        settings.tenant(name)
    if not names:
        message = f"{settings.path} names no tenant: there is nothing to back up"
        todo = "Add a table [tenants.NAME] with base_url, api and the names of the variables that hold the sign-in."
        nothing = problem(message, todo, exit_status=ExitStatus.USAGE)
        return _print_results([], [replace(nothing, name="configuration")], output)
    examined = []
    for name in names:
        with Look(settings, name, on_wait=say_wait(output)) as look:
            examined.append(examine(look, [*CHECKS, NIGHTLY]))
    return _print_results(examined, [], output)


def _print_results(examined: Sequence[Examination], general: list[CheckResult], output: Output) -> ExitStatus:
    """Print all results and return the exit status."""
    status = worst([*general, *(finding for examination in examined for finding in examination.findings)])
    document: dict[str, Any] = {
        "ok": status is ExitStatus.COMPLETE,
        "tenants": [_document(examination) for examination in examined],
    }
    if general:
        document["checks"] = [finding.document for finding in general]
    output.result(document, lambda console: _print(console, examined, general))
    return status


def _document(examination: Examination) -> dict[str, Any]:
    return {
        "tenant": examination.tenant,
        "ok": worst(examination.findings) is ExitStatus.COMPLETE,
        "requests": examination.requests,
        "checks": [finding.document for finding in examination.findings],
    }


def _print(console: Console, examined: Sequence[Examination], general: list[CheckResult]) -> None:
    _print_findings(console, general)
    for examination in examined:
        console.print(Text(examination.tenant, "bold"))
        _print_findings(console, [finding for finding in examination.findings if not finding.unchecked])
        _print_unchecked(console, examination.findings)
        console.print()
    _print_verdict(console, examined, general)


def _print_findings(console: Console, findings: Sequence[CheckResult]) -> None:
    """A line for each result, and one for what to do. The terminal breaks long ones, so that a command in them can be pasted."""
    names = max((len(finding.name) for finding in findings), default=0)
    for finding in findings:
        status = f"  {finding.status:<{len(CheckStatus.WARNING)}}", STYLES[finding.status]
        console.print(Text.assemble(status, f"  {finding.name:<{names}}  {_one_line(finding.message)}"))
        if finding.todo:
            console.print(Text(f"{'':<{len(status[0]) + names + 4}}→ {_one_line(finding.todo)}"))


def _print_unchecked(console: Console, findings: Sequence[CheckResult]) -> None:
    """What was not checked, and why; a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for finding in findings:
        if finding.unchecked:
            reasons.setdefault(finding.unchecked, []).append(finding.name)
    if reasons:
        console.print(Text("\n  Not checked", "bold"))
    for reason, names in reasons.items():
        console.print(Text(f"  {', '.join(names)}: {_one_line(reason)}", "dim"))


def _one_line(text: str) -> str:
    """A text without secrets, with its commands to paste."""
    return with_command_lines(" ".join(redact(text).split()))


def _print_verdict(console: Console, examined: Sequence[Examination], general: list[CheckResult]) -> None:
    """The verdict, in the last line."""
    ready = [examination.tenant for examination in examined if worst(examination.findings) is ExitStatus.COMPLETE]
    failing = [examination.tenant for examination in examined if examination.tenant not in ready]
    requests = sum(examination.requests for examination in examined)
    cost = f" ({counted(requests, 'request')})" if examined else ""
    if failing or general:
        for_whom = f" for {', '.join(failing)}" if failing else ""
        print_verdict(console, "PROBLEM:", f"the nightly backup would not work{for_whom}{cost}.", good=False)
    else:
        print_verdict(console, "Ready:", f"the nightly backup would work for {', '.join(ready)}{cost}.")
