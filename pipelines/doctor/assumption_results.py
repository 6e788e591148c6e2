"""The result for one assumption of docs/assumptions.md: confirmed, different or untested; and the service's responses to test by.

A different service is a warning only if it costs the backup something. Otherwise the client copes with it, and it is a note.
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
    """The responses of a library. `first` is a page of /publications; a request that was not sent or had no response is `None`."""

    api: str
    first: ProbeResponse
    second: ProbeResponse | None = None
    everything: ProbeResponse | None = None
    absent: ProbeResponse | None = None
    beyond: ProbeResponse | None = None
    found: ProbeResponse | None = None
    sought: str = ""
    """The DOI of the search with the response `found`."""

    refused: ProbeResponse | None = None
    """The response to a request for a larger first page than promised, if the service refused it."""

    larger: bool = True
    """Whether `first` is the response to a request for more records than promised."""

    @property
    def records(self) -> list[dict[str, Any]]:
        """The records of the first page."""
        return self.first.records or []

    @property
    def total(self) -> int | None:
        """X-Total of the first page."""
        return total_of(self.first)


def confirmed(name: str, message: str) -> CheckResult:
    """The service is as assumed."""
    return ok(name, message, held=True)


def differs(name: str, message: str, meaning: str, *, costs: bool = False) -> CheckResult:
    """The service is different; `meaning` is the consequence for Bookferry. `costs`: a backup suffers from it."""
    return (warning if costs else note)(name, message, meaning, held=False)


def untested(name: str, why: str) -> CheckResult:
    """The responses of this library do not show it."""
    return note(name, f"could not be tested: {why}", held=None)


def total_of(answer: ProbeResponse | None) -> int | None:
    """X-Total of a page, if it is a number."""
    return answer.paging.total if answer is not None and answer.paging is not None else None


def names_of(names: Iterable[str]) -> str:
    """Names from the service, safe for a message."""
    return outside_text(", ".join(sorted(names)), 200)


def ids_of(answer: ProbeResponse | None) -> list[object]:
    """The ids of a page's records."""
    return [record.get("id") for record in (answer.records if answer is not None else None) or []]
