"""A step of a migration at work: one plan between its two libraries, and what every part of an apply, a verification or an undo needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from pipelines.backup.read import Progress
from pipelines.migration.limits import LIMITS, Limits
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.target_reading import RecordListing
from pipelines.records.values import RecordId
from pipelines.service.client import LibraryClient
from pipelines.service.http.responses import CreationAnswer

ReadListing = Callable[[str], AbstractContextManager[RecordListing]]
"""Lists a resource of the target now, proved complete, for the length of the block."""

OpenBlob = Callable[[str], AbstractContextManager[BinaryIO]]
"""Opens a stored content by its SHA-256."""


class Request(NamedTuple):
    """A request that writes."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    fields: Collection[str] = ()
    """The names of the fields that are sent."""
    answer_id: str = ""
    """As `ResourceType.answer_id`, of a creation."""


@dataclass(frozen=True)
class Step:
    """One step of one plan: the journal of its writes, and its target."""

    plan: Plan
    journal: Journal
    client: LibraryClient
    types: Mapping[str, ResourceType]
    """Resource → how its records are moved, in the form that the operator says."""
    read_listing: ReadListing
    open_blob: OpenBlob
    limits: Limits = LIMITS
    on_progress: Callable[[Progress], None] = lambda _: None

    def intend(self, row: PlanRow, kind: WriteKind, part: str = "", **values: Any) -> int:
        """Enter into the journal that a write of a row is about to be sent; returns the number of its entry."""
        return self.journal.intend(self.plan.name, row.resource, row.source_id, kind, part, **values)

    def entries(self, row: PlanRow) -> dict[tuple[str, str], JournalEntry]:
        """(kind, part) → this plan's write of the record of a row."""
        return self.journal.writes(self.plan.name, row.resource, row.source_id)

    def send(self, request: Request, *numbers: int) -> Any:
        """Send the request of these entries of the journal; returns the response."""
        with self.journal.sending(*numbers) as leave:
            return self.client.write(request.method, request.path, request.body, on_leave=leave)

    def create(self, request: Request, number: int, row: PlanRow | None = None) -> dict[str, Any]:
        """Send the request of an entry that creates a record; returns that, with its id. `row`: of the record; none of a file.

        An id that the target had before, or that became another record's, is not that of the new one: the answer does not name it.
        """

        def is_new(target_id: RecordId) -> bool:
            if row is None:
                return True
            ids, resource = [target_id], row.resource
            known = self.journal.known_ids(resource, ids, besides=row.source_id)
            return not (known or self.plan.ids_when_planned(resource, ids))

        answer = CreationAnswer(request.fields, row.resource if row else "", request.answer_id, is_new)
        with self.journal.sending(number) as leave:
            return self.client.create(request.path, request.body or {}, answer, on_leave=leave)
