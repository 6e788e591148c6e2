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

from pipelines.backup.staging import StagedFacts, StagingProcess, note, work_behind
from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    InsufficientScopeError,
    ProtocolError,
    RefusedError,
)
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.raw import RawRecords
from pipelines.records.tables import PERSONAL, raw_table
from pipelines.service.client import LibraryClient
from pipelines.service.listing.completeness import ListingFacts, Page
from pipelines.service.listing.drift import PAGES_REMEMBERED
from pipelines.service.listing.listing import CollectionMovedError, Listing
from pipelines.service.redaction import outside_text
from pipelines.service_limits import PER_PAGE
from pipelines.store.duplicates import DuplicateIds, drop_duplicates
from pipelines.store.parquet import TableWriter
from pipelines.store.snapshots.captures import Capture, IdCounts, ResourceFacts, Unreadable, count_ids

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
    done: str = "read"
    afterwards: str = "making the tables"

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
    walks: int = 1,
    asked: bool = False,
    alone: bool = False,
    on_page: Callable[[Sequence[msgspec.Raw]], None] = lambda _: None,
    kinds: Kinds = STANDARD_KINDS,
) -> ResourceFacts | Unreadable:
    """List `resource` into raw/<resource>.parquet, record by record as received, and prove what was read (I4).

    What an earlier run has read of it, and was broken off, is gone on with (I9). `walks`: how often the listing is begun, at most, because
    nobody can tell what moved while it was read; with 1, nothing is read again, and a collection that moves makes the snapshot partial.

    A service need not have every resource, and an account need not see it: what is refused before its first page is told and left out.
    `asked`: somebody wants it by name, so that the snapshot is partial without it. `alone`: there is nothing else to read, so the refusal
    is raised. `on_page` is given the records of each page as it is read; reading goes on when it returns. `kinds`: the types of identifiers
    that the library has.
    """
    sent = client.requests
    try:
        walk = partial(_walk, capture, resource, kinds)
        facts = _read(
            capture,
            client,
            resource,
            walks,
            lambda listing: walk(listing, _watched(listing, resource, client, on_progress, on_page)),
        )
    except (RefusedError, AccessDeniedError, ProtocolError) as error:
        if capture.has_pages(resource) or alone:
            if isinstance(error, RefusedError | ProtocolError):
                capture.forget_pages(resource)  # going on from them would end as this did
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


def _read(
    capture: Capture, client: LibraryClient, resource: str, walks: int, walk_over: Callable[[Listing], _Walk]
) -> ResourceFacts:
    """Walk over the listing until a walk says what it holds, or until it was begun `walks` times."""
    known, before, last_page = capture.facts, None, None
    while True:
        walk, spent = known.walks.get(resource, 1), known.spent.get(resource, 0)
        with capture.page_log(resource) as log:
            listing = Listing(
                client,
                ENDPOINTS[resource],
                log=log,
                may_restart=walk < walks,
                may_go_back=walks > 1,
                last_page=last_page,
            )
            try:
                facts, staged, restless = walk_over(listing)
            except CollectionMovedError:
                before = None
            else:
                facts.walks, facts.requests = walk, facts.requests + spent
                found = facts.records, facts.distinct_ids, facts.x_total
                if not restless or walk >= walks or found == before:  # what comes again is how the service is
                    _finish(capture, resource, facts, staged)
                    return facts
                before = found
            last_page = listing.last_page
            known.walks[resource], known.spent[resource] = min(walk + 1, walks), spent + listing.facts.requests
            capture.save()
            log.clear()


_Walk = tuple[ResourceFacts, StagedFacts | None, bool]


def _walk(capture: Capture, resource: str, kinds: Kinds, listing: Listing, pages: Iterator[Page]) -> _Walk:
    """One walk into the raw file: its facts, what was staged on the way, and whether another walk may prove more."""
    schema, texts, key = raw_table(resource).schema, resource not in NUMBERED, capture.key_of(f"raw_{resource}")
    with capture.raw_writer(resource) as writer, StagingProcess(capture, resource, kinds) as staging:
        with work_behind() as behind:
            for records in _batches(pages):
                staging.start_if_large(listing.facts.last_total)
                behind(partial(_keep, records, schema, writer, staging))
        staged = staging.finish(writer.rows)
    path = capture.raw_path(resource)
    repeats = drop_duplicates(path, resource, key, texts=texts) if listing.facts.settled else DuplicateIds()
    ids = count_ids(path, key, texts=texts)
    if resource in PERSONAL:  # a text that tells people apart may be their address
        ids.twice = [one if isinstance(one, int) else "(not shown)" for one in ids.twice]
    facts = prove(listing.facts, ids, repeats)
    restless = bool(ids.twice) or (listing.facts.totals_seen > 1 and not facts.complete)
    return facts, None if repeats.rows else staged, restless


def _finish(capture: Capture, resource: str, facts: ResourceFacts, staged: StagedFacts | None) -> None:
    """Enter what was read into the capture; from now on its pages are not needed."""
    capture.facts.unreadable.pop(resource, None)  # it may have been refused to an earlier run
    capture.facts.resources[resource] = facts
    capture.add_table(f"raw_{resource}", capture.raw_path(resource), facts.records)
    capture.save()
    if staged is not None:
        note(capture, resource, staged)
    capture.forget_pages(resource)


def _keep(records: RawRecords, schema: pa.Schema, writer: TableWriter, staging: StagingProcess) -> None:
    batch = records.batch(schema)
    staging.send(batch)
    writer.write(batch)


def prove(listing: ListingFacts, ids: IdCounts, repeats: DuplicateIds = DuplicateIds()) -> ResourceFacts:  # noqa: B008  a value
    """The verdict on one listing (I4): complete only if distinct ids = X-Total and the collection did not move.

    Where it moved and the affected pages were read again until they fitted together, records that were deleted meanwhile may be in the
    snapshot, and records that were added need not be: then the ids are at most that many more or fewer than X-Total.
    """
    added, deleted = (listing.added, listing.deleted) if listing.settled else (0, 0)
    problems, notes = [], []
    if listing.unsettled and not ids.twice:
        problems.append(f"{_movement(listing)} What moved was not found out: run it again at a quieter hour.")
    elif listing.settled:
        notes.append(
            f"{_movement(listing)} {listing.again:,} of its pages were read again until all fitted together: every record that was there "
            "from the beginning to the end is in it, once; one that was deleted meanwhile may be."
        )
    if repeats.apart > PAGES_REMEMBERED:
        problems.append("Records changed their places while the listing ran, so that one may have been missed.")
    if ids.twice:
        problems.append(
            f"{ids.rows - ids.without - ids.distinct:,} records were listed twice, for example id {_some(ids.twice)}."
        )
    if ids.without:
        problems.append(f"{ids.without:,} records have no id that is a whole number; they are kept in the raw table.")
    if listing.last_total is not None and not -added <= ids.distinct - listing.last_total <= deleted:
        problems.append(
            f"The service announced {listing.last_total:,} records (X-Total) and sent {ids.distinct:,} different ones."
        )
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
        added=added,
        deleted=deleted,
        read_again=listing.again,
        resumed=listing.resumed,
    )


def _movement(listing: ListingFacts) -> str:
    first, last = f"{listing.first_total or 0:,}", f"{listing.last_total or 0:,}"
    return f"X-Total changed while the listing ran ({first} at first, {last} at last): people added or deleted records."


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
