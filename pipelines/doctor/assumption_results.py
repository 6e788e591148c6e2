"""One guess of docs/assumptions.md: held, not held, or not to be tested here; and the answers that guesses are tested by.

A guess that does not hold is a warning only where it costs the backup something; elsewhere the client copes, and it is a note.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pipelines.doctor.findings import CheckResult, note, ok, warning
from pipelines.service.probe import ProbeResponse
from pipelines.service.redaction import outside_text


@dataclass(frozen=True)
class ServiceResponses:
    """What a library answered. `first` is a page of /publications; whatever was not asked or not answered is `None`."""

    api: str
    first: ProbeResponse
    second: ProbeResponse | None = None
    everything: ProbeResponse | None = None
    absent: ProbeResponse | None = None
    beyond: ProbeResponse | None = None
    found: ProbeResponse | None = None
    sought: str = ""
    """The DOI that `found` was asked for."""

    refused: ProbeResponse | None = None
    """What a first page larger than promised was answered with, where that was a refusal."""

    larger: bool = True
    """Whether the first page is the answer to a question for more records than promised."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records of the first page."""
        return self.first.records or []

    @property
    def total(self) -> int | None:
        """X-Total of the first page."""
        return total_of(self.first)


def confirmed(name: str, message: str) -> CheckResult:
    """The service is as we supposed."""
    return ok(name, message, held=True)


def differs(name: str, message: str, meaning: str, *, costs: bool = False) -> CheckResult:
    """The service is otherwise; `meaning` is what that means for us."""
    return (warning if costs else note)(name, message, meaning, held=False)


def untested(name: str, why: str) -> CheckResult:
    """This library's answers say nothing about it."""
    return note(name, f"could not be tested: {why}", held=None)


def total_of(answer: ProbeResponse | None) -> int | None:
    """X-Total of a page, where it is a number."""
    return answer.paging.total if answer is not None and answer.paging is not None else None


def names_of(names: Iterable[str]) -> str:
    """Names from the service, fit for a message."""
    return outside_text(", ".join(sorted(names)), 200)


def ids_of(answer: ProbeResponse | None) -> list[object]:
    """The ids of a page's records."""
    return [record.get("id") for record in (answer.records if answer is not None else None) or []]
