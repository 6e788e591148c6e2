"""`bookferry doctor`: runs the checks and prints their results."""

from __future__ import annotations

import re
import textwrap
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
from pipelines.settings.loading import find_config, load_settings

STYLES = {
    CheckStatus.OK: "green",
    CheckStatus.NOTE: "dim",
    CheckStatus.WARNING: "yellow",
    CheckStatus.PROBLEM: "bold red",
}

_COMMAND = re.compile("`[^`]*`")
_NO_BREAK = "\x00"  # no message has it

NARROWEST = 24
"""The least characters of a message in a line, also on a narrow terminal."""


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
    """A line for each result: status, name and message. Long messages continue in the message column."""
    names = max((len(finding.name) for finding in findings), default=0)
    indent = " " * (2 + len(CheckStatus.WARNING) + 2 + names + 2)
    for finding in findings:
        document = finding.document
        lines = _wrapped(document["message"], console.width - len(indent))
        lines += _wrapped(f"→ {document['todo']}", console.width - len(indent)) if "todo" in document else []
        begin = f"  {finding.status:<{len(CheckStatus.WARNING)}}", f"  {finding.name:<{names}}  "
        console.print(Text.assemble((begin[0], STYLES[finding.status]), begin[1], f"\n{indent}".join(lines)))


def _print_unchecked(console: Console, findings: Sequence[CheckResult]) -> None:
    """What was not checked, and why; a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for finding in findings:
        if finding.unchecked:
            reasons.setdefault(finding.unchecked, []).append(finding.name)
    if reasons:
        console.print(Text("\n  Not checked", "bold"))
    for reason, names in reasons.items():
        lines = _wrapped(f"{', '.join(names)}: {reason}", console.width - 4)
        console.print(Text("  " + "\n    ".join(lines), "dim"))


def _wrapped(text: str, width: int) -> list[str]:
    """The lines of a text. A command in it stays in one line, to be pasted; a terminal that is too narrow for it breaks it itself."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    whole = _COMMAND.sub(lambda command: command[0].replace(" ", _NO_BREAK), with_command_lines(plain))
    lines = textwrap.wrap(whole, max(width, NARROWEST), break_on_hyphens=False, break_long_words=False)
    return [line.replace(_NO_BREAK, " ") for line in lines] or [""]


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
