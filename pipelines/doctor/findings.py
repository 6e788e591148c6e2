"""The result of a check: one line for a person, one object for a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pipelines.errors import BookferryError, ExitStatus
from pipelines.service.redaction import redact


class CheckStatus(StrEnum):
    """The severity of a result. Only a problem keeps the nightly job from working."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class CheckResult:
    """One check's result. `facts` are for programs: more may be added."""

    name: str
    status: CheckStatus
    message: str
    todo: str = ""
    exit_status: ExitStatus = ExitStatus.COMPLETE
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """The result as a JSON object. Its texts are redacted, because a service may have put a secret into them (I10)."""
        todo = {"todo": redact(self.todo)} if self.todo else {}
        return {"name": self.name, "status": str(self.status), "message": redact(self.message), **todo, **self.facts}


def ok(name: str, message: str, **facts: Any) -> CheckResult:
    """Everything is as it should be."""
    return CheckResult(name, CheckStatus.OK, message, facts=facts)


def note(name: str, message: str, todo: str = "", **facts: Any) -> CheckResult:
    """Worth knowing; nothing has to be done."""
    return CheckResult(name, CheckStatus.NOTE, message, todo, facts=facts)


def warning(name: str, message: str, todo: str = "", **facts: Any) -> CheckResult:
    """The nightly job works today, but it may stop working, or it stores less than a person expects."""
    return CheckResult(name, CheckStatus.WARNING, message, todo, facts=facts)


def problem(
    name: str, message: str, todo: str = "", *, exit_status: ExitStatus = ExitStatus.FAILED, **facts: Any
) -> CheckResult:
    """The nightly job would not work."""
    return CheckResult(name, CheckStatus.PROBLEM, message, todo, exit_status, facts)


def failed(name: str, error: BookferryError, **facts: Any) -> CheckResult:
    """The problem that an error describes, with its remedy."""
    return problem(name, str(error), exit_status=error.exit_status, **facts)


def worst(findings: Iterable[CheckResult]) -> ExitStatus:
    """The exit status for these results: configuration before sign-in before the rest, the order in which a person mends them."""
    problems = {finding.exit_status for finding in findings if finding.status is CheckStatus.PROBLEM}
    if not problems:
        return ExitStatus.COMPLETE
    order = (ExitStatus.USAGE, ExitStatus.SIGN_IN)
    return next((status for status in order if status in problems), ExitStatus.FAILED)
