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
from pathlib import Path

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
from pipelines.inventory import LIST_PATHS, parent_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.raw import RawRecords
from pipelines.records.shapes.observation import Observer
from pipelines.records.tables.registry import is_personal, raw_table
from pipelines.records.values import decode_record
from pipelines.service.client import LibraryClient
from pipelines.service.end_of_v2 import end_of_v2_explained
from pipelines.service.listing.listing import Listing
from pipelines.service.listing.listing_facts import ListingFacts, Page
from pipelines.service.listing.page_checkpoint import WalkLog
from pipelines.service_limits import PER_PAGE
from pipelines.store.duplicates import add_missing, drop_duplicates
from pipelines.store.parquet import TableWriter
from pipelines.store.snapshots.captures import Capture, IdCounts, count_ids
from pipelines.store.snapshots.facts import ResourceFacts, Unreadable
from pipelines.store.snapshots.page_log import PageLog

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
    on_page: Callable[[Sequence[msgspec.Raw], str], None] | None = None,
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

    def pages_of(listing: Listing) -> Iterator[Page]:
        return _watched(listing, resource, client, on_progress, on_page)

    try:
        with end_of_v2_explained(client, capture.facts.tenant):
            with capture.page_log(resource, before_page) as log:
                reader = ListReader(capture, client, resource, log, kinds=kinds)
                facts, staged = reader.read(ENDPOINTS[resource], pages_of)
            finish(capture, resource, facts, staged)
            return facts
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
    denied = isinstance(error, AccessDeniedError) and parent_of(resource) is None
    if resource in INDISPENSABLE or denied or isinstance(error, ForeignOriginError):
        return False
    another_list = next((name for name in capture.facts.resources if name != resource), None)
    if another_list is None:
        return False
    try:
        return client.ask(f"{client.api_url}/{LIST_PATHS[another_list]}", {"per_page": 1}).status_code == HTTPStatus.OK
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


class ListReader:
    """Reads lists of a resource, each into a raw file with a proof (I4). `path`: of that file, where it is a part of the resource's."""

    def __init__(
        self,
        capture: Capture,
        client: LibraryClient,
        resource: str,
        log: PageLog,
        *,
        path: Path | None = None,
        kinds: Kinds = STANDARD_KINDS,
    ) -> None:
        self._capture, self._client, self._resource, self._kinds = capture, client, resource, kinds
        self._log = WalkLog(log)
        self.path = path or capture.raw_path(resource)
        self._key, self._text_ids = capture.key_of(f"raw_{resource}"), resource not in WITH_NUMBERS_AS_IDS
        self._ids_before: IdCounts | None = None
        """Those of the walk before."""

    def read(
        self, endpoints: Sequence[str], pages_of: Callable[[Listing], Iterator[Page]]
    ) -> tuple[ResourceFacts, StagedWriter | None]:
        """Walk over a list until a walk proves its result, or until it was begun `WALKS` times.

        Returns the verdict, and the staged tables unless they lack a record of the raw file.
        """
        walks, requests, may_go_down, counts_before = list[ListingFacts](), 0, True, None
        self._ids_before = None
        earlier = self.path.with_suffix(".earlier")
        try:
            for walk in range(1, WALKS + 1):
                if walk > 1:
                    self.path.replace(earlier)
                listing = Listing(self._client, endpoints, log=self._log, walk=walk, may_go_down=may_go_down)
                facts, staged, may_prove_more = self._walk(listing, pages_of(listing))
                requests, may_go_down = requests + facts.requests, may_go_down and not listing.is_unsorted
                counts, added = (facts.records, facts.distinct_ids, facts.x_total), 0
                walks.append(listing.facts)
                if not facts.complete and walk > 1:
                    facts, added = self._add_earlier(walks, facts, earlier)
                    staged = None
                facts.walks, facts.requests = walk, requests
                if facts.complete or not may_prove_more or not (added or counts != counts_before):
                    break
                counts_before = counts
            return facts, staged
        finally:
            earlier.unlink(missing_ok=True)

    def _add_earlier(
        self, walks: Sequence[ListingFacts], facts: ResourceFacts, earlier: Path
    ) -> tuple[ResourceFacts, int]:
        """Add the records that only earlier walks read to a walk without a proof. Return the verdict on all, and the number of those."""
        added = add_missing(self.path, earlier, self._resource, self._key, text_ids=self._text_ids)
        stand_still = {(walk.totals_seen, walk.last_total) for walk in walks} == {(1, facts.x_total)}
        if stand_still and not walks[-1].moved:
            facts = prove_listing(walks[-1], self._count_ids(), walks=len(walks))
        else:
            facts.records, facts.distinct_ids = facts.records + added, facts.distinct_ids + added
        if facts.complete:
            facts.notes.append(
                f"Records changed their places during the listing: its {len(walks)} walks together have each of the {facts.x_total:,} "
                "records that the service announced (X-Total)."
            )
        elif added:
            facts.notes.append(
                f"{counted(added, 'record')} that only an earlier walk read in it as well, deleted meanwhile or in other places by now."
            )
        return facts, added

    def _walk(self, listing: Listing, pages: Iterator[Page]) -> tuple[ResourceFacts, StagedWriter | None, bool]:
        """Walk once into the raw file. Returns its facts, its staged tables, and whether another walk may prove more."""
        capture, resource, observer = self._capture, self._resource, Observer()
        schema = raw_table(resource).schema
        pages = chain([*islice(pages, 1)], pages)  # the first page names the snapshot, whose name is in each staged row
        described = staged_writer(capture, resource, self._kinds) if resource == DESCRIBED else nullcontext()
        with capture.raw_writer(resource, self.path) as writer, described as staging:
            with background_thread() as behind:
                for records in _batches(pages):
                    if staging is not None:
                        observer.observe(map(decode_record, records.payloads[:SAMPLE]))
                    behind(partial(_write_batch, records, schema, writer, staging))
            if staging is not None:
                observer.shape.sampled = observer.shape.records < writer.rows
                capture.facts.shapes[resource] = observer.shape
        read_again = listing.facts.followed or (listing.facts.again > 0 and listing.facts.last_total is not None)
        repeated = self._drop_duplicates() if read_again else 0
        ids = self._count_ids()
        if is_personal(resource):  # an id that is a text may be an address
            ids.duplicates = [number if isinstance(number, int) else "(not shown)" for number in ids.duplicates]
        is_confirmed = self._ids_before is not None and self._ids_before.digest == ids.digest
        facts, self._ids_before = prove_listing(listing.facts, ids, confirmed=is_confirmed), ids
        if (
            ids.duplicates
        ):  # they are counted: what changed its place, or was changed, is in the snapshot as it came last
            repeated = self._drop_duplicates()
            facts.records -= repeated
        # a record that the service cannot send, or that has no id, is lacking in each walk
        lacks_for_good = listing.facts.gaps or ids.without_id
        may_prove_more = bool(ids.duplicates) or listing.facts.totals_seen > 1 or not lacks_for_good
        return facts, None if repeated else staging, may_prove_more

    def _drop_duplicates(self) -> int:
        return drop_duplicates(self.path, self._resource, self._key, text_ids=self._text_ids)

    def _count_ids(self) -> IdCounts:
        return count_ids(self.path, self._key, text_ids=self._text_ids)


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
    writer.write(records.batch(schema))
    if staging is not None:
        staging.write(records.payloads, records.hashes)


def _watched(
    listing: Listing,
    resource: str,
    client: LibraryClient,
    on_progress: Callable[[Progress], None],
    on_page: Callable[[Sequence[msgspec.Raw], str], None] | None,
) -> Iterator[Page]:
    for page in listing.pages():
        if on_page is not None:
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
        records.add(page.records, page.ids, page.number, page.owner)
        if records.size >= BATCH_BYTES:
            yield records
            records = RawRecords()
    if records.payloads:
        yield records
