"""The result for one assumption of docs/assumptions.md: true, false or untested; and the responses that show it.

A false assumption is a warning if it costs the backup something. Otherwise the client copes with it, and it is a note.
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
    """The responses of a library. `first` is a page of /publications; a request that was not sent or not answered is `None`."""

    api: str
    first: ProbeResponse
    second: ProbeResponse | None = None
    everything: ProbeResponse | None = None
    absent: ProbeResponse | None = None
    beyond: ProbeResponse | None = None
    found: ProbeResponse | None = None
    sought: str = ""
    """The DOI of the search `found`."""

    refused: ProbeResponse | None = None
    """The refusal of a first page with more records than the service grants, if it was refused."""

    larger: bool = True
    """Whether `first` was requested with more records than the service grants."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records of the first page."""
        return self.first.records or []

    @property
    def total(self) -> int | None:
        """X-Total of the first page."""
        return total_of(self.first)


def confirmed(name: str, message: str) -> CheckResult:
    """The assumption is true."""
    return ok(name, message, held=True)


def differs(name: str, message: str, meaning: str, *, costs: bool = False) -> CheckResult:
    """The assumption is false; `meaning` is the consequence for a backup or a migration."""
    return (warning if costs else note)(name, message, meaning, held=False)


def untested(name: str, why: str) -> CheckResult:
    """The responses of this library do not show it."""
    return note(name, f"could not be tested: {why}", held=None)


def total_of(answer: ProbeResponse | None) -> int | None:
    """X-Total of a page; `None` if it is no number."""
    return answer.paging.total if answer is not None and answer.paging is not None else None


def names_of(names: Iterable[str]) -> str:
    """Names from the service as text for a message."""
    return outside_text(", ".join(sorted(names)), 200)


def ids_of(answer: ProbeResponse | None) -> list[object]:
    """The ids of a page's records."""
    return [record.get("id") for record in (answer.records if answer is not None else None) or []]
