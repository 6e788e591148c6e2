"""`bookferry doctor`: what the checks found, for a person or for a program."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.nightly import nightly_runs
from cli.output import Output
from cli.progress import WORTH_TELLING_SECONDS
from pipelines.doctor.examination import Examination, examine
from pipelines.doctor.findings import CheckResult, CheckStatus, problem, worst
from pipelines.doctor.machine import unusable
from pipelines.errors import ConfigurationError, ExitStatus
from pipelines.humanize import counted, duration
from pipelines.service.client import Waiting
from pipelines.settings.loading import find_config, load_settings
from pipelines.settings.settings import Settings

STYLES = {
    CheckStatus.OK: "green",
    CheckStatus.NOTE: "dim",
    CheckStatus.WARNING: "yellow",
    CheckStatus.PROBLEM: "bold red",
}

NARROWEST = 24
"""Characters that a message gets however narrow the terminal is."""


def examine_tenants(config: str | None, tenant: str | None, output: Output) -> ExitStatus:
    """Examine one tenant or all; exit 0 only where the nightly job would work for each of them."""
    try:
        settings = load_settings(find_config(Path(config) if config else None))
    except ConfigurationError as error:
        return _tell([], [unusable(error)], output)
    names = [tenant] if tenant is not None else list(settings.tenants)
    for name in names:
        settings.tenant(name)
    if not names:
        message = f"{settings.path} names no tenant: there is nothing to back up"
        todo = "Add a table [tenants.NAME] with base_url, api and the names of the variables that hold the sign-in."
        return _tell([], [problem("configuration", message, todo, exit_status=ExitStatus.USAGE)], output)
    return _tell([_examined(settings, name, output) for name in names], [], output)


def _examined(settings: Settings, tenant: str, output: Output) -> Examination:
    found = examine(settings, tenant, on_wait=lambda why: _say_wait(why, output))
    return Examination(tenant, [*found.findings, nightly_runs(settings, tenant)], found.requests)


def _say_wait(why: Waiting, output: Output) -> None:
    if why.seconds >= WORTH_TELLING_SECONDS:
        output.say(f"waiting {duration(why.seconds)}: {why.reason}")


def _tell(examined: Sequence[Examination], general: list[CheckResult], output: Output) -> ExitStatus:
    """Print everything; the exit status that it means."""
    status = worst([*general, *(finding for one in examined for finding in one.findings)])
    document: dict[str, Any] = {"ok": status is ExitStatus.COMPLETE, "tenants": [_document(one) for one in examined]}
    if general:
        document["checks"] = [finding.document for finding in general]
    output.result(document, lambda console: _print(console, examined, general))
    return status


def _document(one: Examination) -> dict[str, Any]:
    return {
        "tenant": one.tenant,
        "ok": worst(one.findings) is ExitStatus.COMPLETE,
        "requests": one.requests,
        "checks": [finding.document for finding in one.findings],
    }


def _print(console: Console, examined: Sequence[Examination], general: list[CheckResult]) -> None:
    _print_findings(console, general)
    for one in examined:
        console.print(Text(one.tenant, "bold"))
        _print_findings(console, [finding for finding in one.findings if "held" not in finding.facts])
        guesses = [finding for finding in one.findings if "held" in finding.facts]
        if guesses:
            console.print(Text("\n  What docs/assumptions.md supposes of the service", "bold"))
            _print_findings(console, guesses)
        console.print()
    _print_verdict(console, examined, general)


def _print_findings(console: Console, findings: Sequence[CheckResult]) -> None:
    """A line for each: status, name, and the message, which goes on below itself, never below the names."""
    names = max((len(finding.name) for finding in findings), default=0)
    indent = " " * (2 + len(CheckStatus.WARNING) + 2 + names + 2)
    for finding in findings:
        shown = finding.document
        lines = _wrapped(shown["message"], console.width - len(indent))
        lines += _wrapped(f"→ {shown['todo']}", console.width - len(indent)) if "todo" in shown else []
        begin = f"  {finding.status:<{len(CheckStatus.WARNING)}}", f"  {finding.name:<{names}}  "
        console.print(Text.assemble((begin[0], STYLES[finding.status]), begin[1], f"\n{indent}".join(lines)))


def _wrapped(text: str, width: int) -> list[str]:
    plain = "".join(one if one.isprintable() else " " for one in text)
    return textwrap.wrap(plain, max(width, NARROWEST), break_on_hyphens=False) or [""]


def _print_verdict(console: Console, examined: Sequence[Examination], general: list[CheckResult]) -> None:
    """The truth in the last line."""
    well = [one.tenant for one in examined if worst(one.findings) is ExitStatus.COMPLETE]
    ill = [one.tenant for one in examined if one.tenant not in well]
    requests = sum(one.requests for one in examined)
    cost = f" ({counted(requests, 'request')})" if examined else ""
    if ill or general:
        for_whom = f" for {', '.join(ill)}" if ill else ""
        console.print(Text.assemble(("PROBLEM:", "bold red"), f" the nightly backup would not work{for_whom}{cost}."))
    else:
        console.print(
            Text.assemble(("Ready:", "bold green"), f" the nightly backup would work for {', '.join(well)}{cost}.")
        )
