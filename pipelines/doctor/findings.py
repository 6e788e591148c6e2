"""The result of a check: one line for a person, one object for a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pipelines import errors
from pipelines.errors import BookferryError, ExitStatus
from pipelines.service.redaction import redact


class CheckStatus(StrEnum):
    """Severity. Only a problem stops the nightly job from working."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class CheckResult:
    """One check's result."""

    status: CheckStatus
    message: str
    todo: str = ""
    exit_status: ExitStatus = ExitStatus.COMPLETE
    name: str = ""
    """The check's; whoever runs it writes it in."""
    unchecked: str = ""
    """Why nothing was checked; empty if something was."""

    @property
    def document(self) -> dict[str, str]:
        """The result for --json, with secrets removed from texts of the service (I10)."""
        todo = {"todo": redact(self.todo)} if self.todo else {}
        return {"name": self.name, "status": str(self.status), "message": redact(self.message), **todo}


def ok(message: str) -> CheckResult:
    """Everything is as it should be."""
    return CheckResult(CheckStatus.OK, message)


def note(message: str, todo: str = "") -> CheckResult:
    """Information; nothing has to be done."""
    return CheckResult(CheckStatus.NOTE, message, todo)


def warning(message: str, todo: str = "") -> CheckResult:
    """The nightly job works today, but may fail later, or keeps less than expected."""
    return CheckResult(CheckStatus.WARNING, message, todo)


def problem(message: str, todo: str = "", *, exit_status: ExitStatus = ExitStatus.FAILED) -> CheckResult:
    """The nightly job would not work."""
    return CheckResult(CheckStatus.PROBLEM, message, todo, exit_status)


def failed(error: BookferryError) -> CheckResult:
    """The problem in the message of an error, with its remedy."""
    return problem(str(error), exit_status=error.exit_status)


def not_checked(reason: str) -> CheckResult:
    """Nothing could be checked."""
    return CheckResult(CheckStatus.NOTE, f"not checked: {reason}", unchecked=reason)


def worst(findings: Iterable[CheckResult]) -> ExitStatus:
    """The exit status for these results."""
    return errors.worst(finding.exit_status for finding in findings if finding.status is CheckStatus.PROBLEM)
