"""The backup flow: read a resource into raw Parquet and prove what was read.

The steps after it are `staging.stage` and `DataFolder.publish`. Each takes a `Capture` and leaves its result there, so that an orchestrator
can run, show and repeat the steps one by one; `library.Library` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import pyarrow as pa

from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    InsufficientScopeError,
    ProtocolError,
    RefusedError,
)
from pipelines.records.raw import RawRecords
from pipelines.records.tables import raw_table
from pipelines.service.client import LibraryClient
from pipelines.service.listing import PER_PAGE, Listing, ListingFacts, Page
from pipelines.service.redaction import outside_text
from pipelines.staging import StagingProcess, note, work_behind
from pipelines.store.captures import Capture, IdCounts, ResourceFacts, Unreadable, count_ids
from pipelines.store.parquet import TableWriter

BATCH_BYTES = 4 * 1024 * 1024
"""Bytes of JSON gathered before a row group is written: the memory a backup needs, however large the library."""

ENDPOINTS = {
    "publications": ("publications/all", "publications"),
    "users": ("users",),
    "hard_copies": ("hard_copies",),
    "locations": ("hard_copies/locations",),
    "collections": ("collections",),
    "authorities": ("authorities",),
    "tasks": ("tasks",),
}
"""Resource → its list endpoints, the best first (service-api.md: "A backup endpoint /publications/all returns all publications")."""

NUMBERED = frozenset({"publications"})
"""Of these the document says that ids are integers; of the others nothing, so that a text tells a record apart, too."""

FORBIDDEN = 403

INDISPENSABLE = frozenset({"publications"})
"""Without these a snapshot is partial, whoever asked for what."""


@dataclass(frozen=True)
class Progress:
    """How far a listing is. `expected` is X-Total, where the service sends it."""

    resource: str
    records: int
    expected: int | None
    requests: int
    requests_per_minute: int

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the listing ends at the budget's rate."""
        if self.expected is None:
            return None
        return max(0, self.expected - self.records) / PER_PAGE * 60 / self.requests_per_minute


def read_raw(
    capture: Capture,
    client: LibraryClient,
    resource: str,
    on_progress: Callable[[Progress], None] = lambda _: None,
    *,
    asked: bool = False,
    alone: bool = False,
    on_page: Callable[[Sequence[msgspec.Raw]], None] = lambda _: None,
) -> ResourceFacts | Unreadable:
    """List `resource` into raw/<resource>.parquet, record by record as received, and prove what was read (I4).

    A service need not have every resource, and an account need not see it: what is refused before its first page is told and left out.
    `asked`: somebody wants it by name, so that the snapshot is partial without it. `alone`: there is nothing else to read, so the refusal
    is raised. `on_page` is given the records of each page as it is read; reading goes on when it returns.
    """
    listing = Listing(client, ENDPOINTS[resource])
    sent = client.requests
    try:
        facts = _read(capture, resource, listing, _watched(listing, resource, client, on_progress, on_page))
    except (RefusedError, AccessDeniedError, ProtocolError) as error:
        if listing.facts.pages or alone:
            raise
        asked = asked or resource in INDISPENSABLE
        return _leave_out(capture, resource, error, asked=asked, requests=client.requests - sent)
    return facts


def _leave_out(capture: Capture, resource: str, error: BookferryError, *, asked: bool, requests: int) -> Unreadable:
    """Note that a resource is not in the snapshot, and why."""
    status = error.status if isinstance(error, RefusedError) else None
    if isinstance(error, AccessDeniedError):
        status = FORBIDDEN
    found = Unreadable(
        status=status,
        message=str(error),
        missing_scopes=list(error.scopes) if isinstance(error, InsufficientScopeError) else [],
        partial=asked or status is None,
        requests=requests,
    )
    capture.raw_path(resource).unlink(missing_ok=True)
    capture.facts.unreadable[resource] = found
    capture.save()
    return found


def _read(capture: Capture, resource: str, listing: Listing, pages: Iterator[Page]) -> ResourceFacts:
    schema = raw_table(resource).schema
    with capture.raw_writer(resource) as writer, StagingProcess(capture, resource) as staging:
        with work_behind() as behind:
            for records in _batches(pages):
                staging.start_if_large(listing.facts.last_total)
                behind(partial(_keep, records, schema, writer, staging))
        staged = staging.finish(writer.rows)
    path = capture.raw_path(resource)
    facts = prove(listing.facts, count_ids(path, capture.key_of(f"raw_{resource}"), texts=resource not in NUMBERED))
    capture.facts.resources[resource] = facts
    capture.add_table(f"raw_{resource}", path, writer.rows)
    capture.save()
    if staged is not None:
        note(capture, resource, staged)
    return facts


def _keep(records: RawRecords, schema: pa.Schema, writer: TableWriter, staging: StagingProcess) -> None:
    batch = records.batch(schema)
    staging.send(batch)
    writer.write(batch)


def prove(listing: ListingFacts, ids: IdCounts) -> ResourceFacts:
    """The verdict on one listing (I4): complete only if distinct ids = X-Total and the collection did not move."""
    problems = []
    if listing.totals_seen > 1:
        problems.append(
            f"X-Total changed while the listing ran ({listing.first_total:,} at first, {listing.last_total:,} at last): people added or "
            "deleted records."
        )
    if ids.twice:
        problems.append(
            f"{ids.rows - ids.without - ids.distinct:,} records were listed twice, for example id {_some(ids.twice)}."
        )
    if ids.without:
        problems.append(f"{ids.without:,} records have no id that is a whole number; they are kept in the raw table.")
    if listing.last_total is not None and ids.distinct != listing.last_total:
        problems.append(
            f"The service announced {listing.last_total:,} records (X-Total) and sent {ids.distinct:,} different ones."
        )
    notes = []
    if ids.texts:
        notes.append(
            f"{ids.texts:,} records have ids that are no whole numbers: the column id of their table is empty, their residue has them."
        )
    if listing.last_total is None:
        notes.append("The service sent no X-Total: nothing but the end of the listing says how many records there are.")
    return ResourceFacts(
        endpoint=listing.endpoint,
        records=ids.rows,
        distinct_ids=ids.distinct,
        without_id=ids.without,
        pages=listing.pages,
        x_total=listing.last_total,
        requests=listing.requests,
        seconds=round(listing.seconds, 3),
        complete=not problems,
        problems=problems,
        notes=notes,
    )


def _some(ids: Sequence[int | str]) -> str:
    return ", ".join(outside_text(one, 60) for one in ids)


def _watched(
    listing: Listing,
    resource: str,
    client: LibraryClient,
    on_progress: Callable[[Progress], None],
    on_page: Callable[[Sequence[msgspec.Raw]], None],
) -> Iterator[Page]:
    for page in listing.pages():
        on_page(page.records)
        yield page
        facts = listing.facts
        on_progress(Progress(resource, facts.records, facts.last_total, facts.requests, client.requests_per_minute))


def _batches(pages: Iterator[Page]) -> Iterator[RawRecords]:
    """The records of some pages, about `BATCH_BYTES` of JSON at a time."""
    records = RawRecords()
    for page in pages:
        records.add(page.records, page.ids, page.number)
        if records.size >= BATCH_BYTES:
            yield records
            records = RawRecords()
    if records.payloads:
        yield records
