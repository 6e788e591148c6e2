"""What a check found: one line for a person, one object for a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pipelines.errors import BookferryError, ExitStatus
from pipelines.service.redaction import redact


class Status(StrEnum):
    """How bad it is. Only a problem keeps the nightly job from working."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One check's result. `facts` are for programs: more may be added."""

    name: str
    status: Status
    message: str
    todo: str = ""
    exit_status: ExitStatus = ExitStatus.COMPLETE
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def document(self) -> dict[str, Any]:
        """The finding with --json, without a secret whatever a service put into its words (I10)."""
        todo = {"todo": redact(self.todo)} if self.todo else {}
        return {"name": self.name, "status": str(self.status), "message": redact(self.message), **todo, **self.facts}


def ok(name: str, message: str, **facts: Any) -> Finding:
    """As it should be."""
    return Finding(name, Status.OK, message, facts=facts)


def note(name: str, message: str, todo: str = "", **facts: Any) -> Finding:
    """Worth knowing; nothing has to be done."""
    return Finding(name, Status.NOTE, message, todo, facts=facts)


def warning(name: str, message: str, todo: str = "", **facts: Any) -> Finding:
    """The nightly job works today, and may not for ever, or keeps less than a person would think."""
    return Finding(name, Status.WARNING, message, todo, facts=facts)


def problem(
    name: str, message: str, todo: str = "", *, exit_status: ExitStatus = ExitStatus.FAILED, **facts: Any
) -> Finding:
    """The nightly job would not work."""
    return Finding(name, Status.PROBLEM, message, todo, exit_status, facts)


def failed(name: str, error: BookferryError, **facts: Any) -> Finding:
    """The problem that an error tells, remedy included."""
    return problem(name, str(error), exit_status=error.exit_status, **facts)


def worst(findings: Iterable[Finding]) -> ExitStatus:
    """The exit status of a command that found these: configuration before sign-in before the rest, because in that order it is mended."""
    problems = {finding.exit_status for finding in findings if finding.status is Status.PROBLEM}
    if not problems:
        return ExitStatus.COMPLETE
    order = (ExitStatus.USAGE, ExitStatus.SIGN_IN)
    return next((status for status in order if status in problems), ExitStatus.FAILED)
