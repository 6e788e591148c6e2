"""Reads a resource into raw Parquet, and proves what was read.

The next steps are `staging.stage` and `DataFolder.publish`. Each step takes a `Capture` and leaves its result there, so that an
orchestrator can run, show and repeat the steps one by one. `flow.Backup` combines them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import chain, islice

import msgspec
import pyarrow as pa

from pipelines.backup.completeness import prove_listing
from pipelines.backup.staging import DESCRIBED, StagedWriter, background_thread, staged_writer
from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    ForeignOriginError,
    InsufficientScopeError,
    ProtocolError,
    RefusedError,
    SignInPageError,
    TemporaryError,
)
from pipelines.humanize import counted
from pipelines.inventory import LIST_PATHS, NESTED
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.raw import RawRecords
from pipelines.records.shapes.observation import Observer
from pipelines.records.tables.registry import PERSONAL, raw_table
from pipelines.records.values import decode_record
from pipelines.service.client import LibraryClient
from pipelines.service.end_of_v2 import end_of_v2_explained
from pipelines.service.listing.listing import Listing, earlier_pages
from pipelines.service.listing.listing_facts import ListingFacts, Page
from pipelines.service_limits import PER_PAGE
from pipelines.store.duplicates import add_missing, drop_duplicates
from pipelines.store.parquet import TableWriter, table_writer
from pipelines.store.snapshots.captures import Capture, count_ids
from pipelines.store.snapshots.facts import ResourceFacts, Unreadable

BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of JSON per row group: they bound the memory of a backup, and each of the seventy staged columns costs something per row group."""

SAMPLE = 100
"""Publications of each row group whose fields are counted: the service documents these fields, so that a part of the records will do."""

ENDPOINTS = {resource: (path,) for resource, path in LIST_PATHS.items()} | {
    "publications": ("publications/all", "publications")
}
"""Resource → its list endpoints, the best first. `/publications/all` is made for backups (service.md#lists)."""

WITH_NUMBERS_AS_IDS = frozenset({"publications"})
"""Resources with integer ids by definition (service.md#identifiers). The ids of all others may be texts, too."""

INDISPENSABLE = frozenset({"publications"})
"""A snapshot without these is always partial."""


@dataclass(frozen=True)
class Progress:
    """Progress of a listing, or of the files that were left after it. `expected` is X-Total, if the service sends it."""

    resource: str
    records: int
    expected: int | None
    requests: int
    seconds_left: float = 0.0
    """Until the end by the request budget, which does not limit files."""
    done: str = "read"
    afterwards: str = "making the tables"


WALKS = 3
"""How often a listing is begun at most when records move and cannot be followed."""


def read_raw(
    capture: Capture,
    client: LibraryClient,
    resource: str,
    on_progress: Callable[[Progress], None] = lambda _: None,
    *,
    asked: bool = False,
    alone: bool = False,
    before_page: Callable[[], None] = lambda: None,
    on_page: Callable[[Sequence[msgspec.Raw], str], None] = lambda _records, _page: None,
    kinds: Kinds = STANDARD_KINDS,
) -> ResourceFacts | Unreadable:
    """List `resource` into raw/<resource>.parquet, with each record as received, and prove what was read (I4).

    An interrupted earlier run is continued (I9).

    A service may lack a resource, and an account may not see it. A resource that is refused before its first page is recorded and left
    out. So is one that the service cannot send, while it answers another list, so that what was read of others is not lost: the snapshot
    is partial then. `asked`: the resource was asked for by name, so that the snapshot is partial without it. `alone`: nothing else is read,
    so that the refusal is raised. `before_page` is called when a page has arrived, before it is kept. `on_page` receives each page's
    records and address; reading continues when it returns.
    `kinds`: the identifier types of the library.
    """
    requests_before = client.requests

    def walk(listing: Listing) -> _Walk:
        pages = _watched(listing, resource, client, on_progress, on_page)
        return _walk(capture, resource, kinds, listing, pages)

    try:
        with end_of_v2_explained(client, capture.facts.tenant):
            return _read(capture, client, resource, walk, before_page)
    except (RefusedError, AccessDeniedError, ProtocolError, TemporaryError) as error:
        begun = capture.has_pages(resource)
        goes_on = not alone and goes_on_without(capture, client, resource, error)
        if begun and (goes_on or isinstance(error, RefusedError | ProtocolError)):
            capture.delete_pages(resource)  # continuing from them would fail in the same way
        if not goes_on:
            raise
        asked = asked or begun or resource in INDISPENSABLE
        return record_unreadable(capture, resource, error, asked=asked, requests=client.requests - requests_before)


def goes_on_without(capture: Capture, client: LibraryClient, resource: str, error: BookferryError) -> bool:
    """Whether the backup goes on without a resource: it was refused at once, or fails while a list that was read whole still answers."""
    if resource in INDISPENSABLE and isinstance(error, SignInPageError):
        return False  # nothing else would be read, either
    if not capture.has_pages(resource) and not isinstance(error, TemporaryError):
        return True
    # Each list of a record has rights of its own
    denied = isinstance(error, AccessDeniedError) and resource not in NESTED.values()
    if resource in INDISPENSABLE or denied or isinstance(error, ForeignOriginError):
        return False
    other = next((name for name in capture.facts.resources if name != resource), None)
    if other is None:
        return False
    try:
        return client.ask(f"{client.api_url}/{LIST_PATHS[other]}", {"per_page": 1}).status_code == HTTPStatus.OK
    except BookferryError:
        return False


def record_unreadable(
    capture: Capture, resource: str, error: BookferryError, *, asked: bool, requests: int
) -> Unreadable:
    """Record that the snapshot lacks a resource, and why."""
    status = error.status if isinstance(error, RefusedError) else None
    if isinstance(error, AccessDeniedError):
        status = HTTPStatus.FORBIDDEN
    unreadable = Unreadable(
        status=status,
        message=str(error),
        missing_scopes=list(error.scopes) if isinstance(error, InsufficientScopeError) else [],
        partial=asked or status is None,
        requests=requests,
    )
    capture.raw_path(resource).unlink(missing_ok=True)
    capture.facts.unreadable[resource] = unreadable
    capture.save()
    return unreadable


def _read(
    capture: Capture,
    client: LibraryClient,
    resource: str,
    walk_over: Callable[[Listing], _Walk],
    before_page: Callable[[], None],
) -> ResourceFacts:
    """Walk over the listing until a walk proves its result, or until it was begun `WALKS` times."""
    counts_before = None
    while True:
        walk, spent = capture.facts.walks.get(resource, 1), capture.facts.spent.get(resource, 0)
        with capture.page_log(resource, before_page) as log:
            listing = Listing(
                client,
                ENDPOINTS[resource],
                log=log,
                walk=walk,
                may_go_down=resource not in capture.facts.unsorted,
            )
            facts, staged, may_prove_more = walk_over(listing)
            facts.walks, facts.requests = walk, facts.requests + spent
            counts = facts.records, facts.distinct_ids, facts.x_total
            if not facts.complete:
                facts, added = _add_earlier(capture, resource, listing.facts, facts, earlier_pages(log, walk))
                staged = staged if walk == 1 else None
                may_prove_more = may_prove_more and not facts.complete and (added > 0 or counts != counts_before)
            if not may_prove_more or walk >= WALKS:
                finish(capture, resource, facts, staged)
                return facts
            counts_before = counts
            capture.facts.walks[resource] = min(walk + 1, WALKS)
            capture.facts.spent[resource] = spent + listing.facts.requests
            if listing.is_unsorted:
                capture.facts.unsorted = [*capture.facts.unsorted, resource]
            capture.save()


def _add_earlier(
    capture: Capture, resource: str, listing: ListingFacts, facts: ResourceFacts, pages: Iterator[Page]
) -> tuple[ResourceFacts, int]:
    """Add the records that only earlier walks read to a listing without a proof. Return the verdict on all, and the number of those."""
    totals, text_ids = set[int | None](), resource not in WITH_NUMBERS_AS_IDS

    def noted() -> Iterator[Page]:
        for page in pages:
            totals.add(page.total)
            yield page

    path, key = capture.raw_path(resource), capture.key_of(f"raw_{resource}")
    earlier, schema = path.with_suffix(".earlier"), raw_table(resource).schema
    with table_writer(earlier, raw_table(resource), key) as writer:
        for records in _batches(noted()):
            writer.write(records.batch(schema))
    added = add_missing(path, earlier, resource, key, text_ids=text_ids) if writer.rows else 0
    earlier.unlink()
    stands_still = listing.totals_seen == 1 and totals == {facts.x_total} and not listing.moved
    if stands_still:
        united = prove_listing(listing, count_ids(path, key, text_ids=text_ids), walks=facts.walks)
        united.walks, united.requests = facts.walks, facts.requests
        facts = united
    else:
        facts.records, facts.distinct_ids = facts.records + added, facts.distinct_ids + added
    if facts.complete:
        facts.notes.append(
            f"Records changed their places during the listing: its {facts.walks} walks together have each of the {facts.x_total:,} records "
            "that the service announced (X-Total)."
        )
    elif added:
        are, they = ("is", "it was") if added == 1 else ("are", "they were")
        facts.notes.append(
            f"{counted(added, 'record')} that only an earlier walk read {are} in it as well: {they} deleted meanwhile, or changed places."
        )
    return facts, added


_Walk = tuple[ResourceFacts, StagedWriter | None, bool]


def _walk(capture: Capture, resource: str, kinds: Kinds, listing: Listing, pages: Iterator[Page]) -> _Walk:
    """Walk once into the raw file. Returns its facts, its staged tables, and whether another walk may prove more."""
    schema, text_ids = raw_table(resource).schema, resource not in WITH_NUMBERS_AS_IDS
    key, observer = capture.key_of(f"raw_{resource}"), Observer()
    pages = chain([*islice(pages, 1)], pages)  # the first page names the snapshot, whose name is in each staged row
    described = staged_writer(capture, resource, kinds) if resource == DESCRIBED else nullcontext()
    with capture.raw_writer(resource) as writer, described as staging:
        with background_thread() as behind:
            for records in _batches(pages):
                if staging is not None:
                    observer.observe(decode_record(bytes(record)) for record in records.payloads[:SAMPLE])
                behind(partial(_write_batch, records, schema, writer, staging))
        if staging is not None:
            observer.shape.sampled = observer.shape.records < writer.rows
            capture.facts.shapes[resource] = observer.shape
    path = capture.raw_path(resource)
    read_again = listing.facts.followed or (listing.facts.again > 0 and listing.facts.last_total is not None)
    repeated = drop_duplicates(path, resource, key, text_ids=text_ids) if read_again else 0
    ids = count_ids(path, key, text_ids=text_ids)
    if resource in PERSONAL:  # an id that is a text may be an address
        ids.duplicates = [number if isinstance(number, int) else "(not shown)" for number in ids.duplicates]
    facts = prove_listing(listing.facts, ids)
    if ids.duplicates:  # they are counted: what changed its place, or was changed, is in the snapshot as it came last
        repeated = drop_duplicates(path, resource, key, text_ids=text_ids)
        facts.records -= repeated
    # a record that the service cannot send, or that has no id, is lacking in each walk
    lacks_for_good = listing.facts.gaps or ids.without_id
    may_prove_more = not facts.complete and (
        bool(ids.duplicates) or listing.facts.totals_seen > 1 or not lacks_for_good
    )
    return facts, None if repeated else staging, may_prove_more


def finish(capture: Capture, resource: str, facts: ResourceFacts, staged: StagedWriter | None = None) -> None:
    """Record the result in the capture, and delete its pages."""
    capture.facts.unreadable.pop(resource, None)  # an earlier run may have been refused
    capture.facts.resources[resource] = facts
    capture.add_table(f"raw_{resource}", capture.raw_path(resource), facts.records)
    capture.save()
    if staged is not None:
        staged.record()
    capture.delete_pages(resource)


def _write_batch(records: RawRecords, schema: pa.Schema, writer: TableWriter, staging: StagedWriter | None) -> None:
    batch = records.batch(schema)
    writer.write(batch)
    if staging is not None:
        staging.write(batch)


def _watched(
    listing: Listing,
    resource: str,
    client: LibraryClient,
    on_progress: Callable[[Progress], None],
    on_page: Callable[[Sequence[msgspec.Raw], str], None],
) -> Iterator[Page]:
    for page in listing.pages():
        on_page(page.records, page.url)
        yield page
        facts = listing.facts
        pages = max(0, (facts.last_total or 0) - facts.records) / PER_PAGE
        seconds_left = pages * 60 / client.requests_per_minute
        on_progress(Progress(resource, facts.records, facts.last_total, facts.requests, seconds_left))


def _batches(pages: Iterator[Page]) -> Iterator[RawRecords]:
    """Yields the records of the pages, about `BATCH_BYTES` of JSON at a time."""
    records = RawRecords()
    for page in pages:
        records.add(page.records, page.ids, page.number)
        if records.size >= BATCH_BYTES:
            yield records
            records = RawRecords()
    if records.payloads:
        yield records
