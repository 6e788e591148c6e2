"""Reads a list that each record of a resource has at an address of its own, such as `/collections/17/publications` (service.md#not-shown).

Each of these lists is read and proved as any other (I4). Together they are one resource of the snapshot: one page log, from which an
interrupted run continues (I9), one raw table, and one verdict, which names the record of each list that is not proved.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Self
from urllib.parse import quote

import msgspec
import pyarrow as pa

from pipelines.backup.completeness import prove_listing
from pipelines.backup.read import BATCH_BYTES, WALKS, Progress, finish, goes_on_without, record_unreadable
from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.humanize import counted
from pipelines.inventory import LIST_PATHS, NESTED, nested_address, noun
from pipelines.records.raw import RawRecords
from pipelines.records.tables.registry import TABLES, raw_table
from pipelines.records.values import decode_record, whole_number
from pipelines.service.client import LibraryClient
from pipelines.service.listing.listing import Listing
from pipelines.service.listing.page_checkpoint import walk_of
from pipelines.service.redaction import outside_text
from pipelines.store.parquet import TableWriter, row_batches
from pipelines.store.snapshots.captures import Capture, IdCounts
from pipelines.store.snapshots.facts import ResourceFacts, Unreadable
from pipelines.store.snapshots.page_log import PageLog

MOST_FAILED = 10
"""Lists in a row that cannot be read, after which no further one is asked for."""

BATCH_OVERHEAD = 4096
"""Bytes of memory of the entries of a list, however few they are."""

MOST_NAMED = 20
"""Problems that are named one by one."""

_SUMS = ("distinct_ids", "without_id", "pages", "requests", "seconds", "added", "deleted", "read_again", "resumed")


def read_nested(
    capture: Capture, client: LibraryClient, name: str, on_progress: Callable[[Progress], None] = lambda _: None
) -> ResourceFacts | Unreadable:
    """Read the list of each record of a resource that the capture has. `name`: of these lists, such as `collections/publications`."""
    before, resource = client.requests, NESTED[name]
    parent = name.partition("/")[0]
    records = capture.facts.resources[parent].records
    with capture.page_log(resource) as log, capture.raw_writer(resource) as writer:
        lists = _Lists(client, name, _Walks(log), writer)
        for number, owner in enumerate(_owners(capture, parent), 1):
            requests = client.requests
            try:
                lists.read(owner)
            except (RefusedError, AccessDeniedError, ProtocolError, TemporaryError) as error:
                if not goes_on_without(capture, client, resource, error):
                    raise
                lists.fail(owner, error, client.requests - requests)
                if lists.failed_in_a_row == MOST_FAILED:
                    lists.problems.append(f"{counted(records - number, 'more list')} not asked for after these.")
                    break
            seconds_left = (records - number) * 60 / client.requests_per_minute
            on_progress(Progress(resource, lists.facts.records, None, client.requests - before, seconds_left))
        lists.write()
    if lists.failure is not None and not lists.facts.pages:
        return record_unreadable(capture, resource, lists.failure, asked=True, requests=lists.facts.requests)
    finish(capture, resource, lists.verdict())
    return lists.facts


def _owners(capture: Capture, parent: str) -> Iterator[str]:
    """Yields the id of each record of a resource, as text."""
    with capture.open_file(f"raw_{parent}") as file:
        for batch in row_batches(file, ["id", "payload"]):
            for number, payload in zip(*(batch.column(name).to_pylist() for name in ("id", "payload")), strict=True):
                record_id = number if number is not None else decode_record(payload.encode()).get("id")
                if isinstance(record_id, int | str) and record_id != "":
                    yield str(record_id)


class _Lists:
    """The lists that were read so far, and what is said of them together."""

    def __init__(self, client: LibraryClient, name: str, walks: _Walks, writer: TableWriter) -> None:
        self._client, self._walks, self._writer = client, walks, writer
        self._parent, _, self._below = name.partition("/")
        self._schema = raw_table(NESTED[name]).schema
        self._reference = TABLES[NESTED[name]].columns[-1].name
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self.facts = ResourceFacts(
            endpoint=nested_address(name).removeprefix("/"),
            records=0,
            distinct_ids=0,
            without_id=0,
            pages=0,
            x_total=0,
            requests=0,
            seconds=0.0,
            complete=True,
            problems=[],
        )
        self.problems: list[str] = []
        self.failure: BookferryError | None = None
        self.failed_in_a_row = 0

    def read(self, owner: str) -> None:
        """Read the list of one record; walk over it again where it changed meanwhile. Raises the errors of its pages."""
        endpoint = f"{LIST_PATHS[self._parent]}/{quote(owner, safe='')}/{self._below}"
        requests, may_go_down = 0, True
        for walk in range(1, WALKS + 1):
            log = self._walks.over(endpoint, walk)
            listing = Listing(self._client, [endpoint], log=log, walk=walk, may_go_down=may_go_down)
            facts, may_prove_more = self._walk(owner, listing, is_last=walk == WALKS)
            requests += facts.requests
            if not may_prove_more:
                break
            may_go_down = not listing.is_unsorted
        facts.requests, self.failed_in_a_row = requests, 0
        self._add(owner, facts)

    def _walk(self, owner: str, listing: Listing, *, is_last: bool) -> tuple[ResourceFacts, bool]:
        """Walk once over a list. Returns its facts, and whether another walk may prove more; then its entries are not kept."""
        entries, ids, size, is_long = list[_Entry](), _Ids(), 0, False
        for page in listing.pages():
            for record, number in zip(page.records, page.ids, strict=True):
                key = number if number is not None else _key(record, self._reference)
                entries.append(_Entry(key, whole_number(key), page.number, record))
            size += sum(map(len, page.records))
            if size >= BATCH_BYTES:
                ids.add(entries)
                self._keep(owner, entries)
                entries, size, is_long = [], 0, True
        if listing.facts.followed or listing.facts.again:  # pages were read again; the newest form of an entry counts
            entries = [*{id(entry) if entry.key is None else entry.key: entry for entry in entries}.values()]
        ids.add(entries)
        facts = prove_listing(listing.facts, ids.counts())
        lacks_for_good = listing.facts.gaps or facts.without_id
        may_prove_more = not (facts.complete or is_long or is_last or lacks_for_good)
        if not may_prove_more:
            self._keep(owner, entries)
        return facts, may_prove_more

    def _keep(self, owner: str, entries: Sequence[_Entry]) -> None:
        """Add entries to the raw table."""
        records = RawRecords()
        for entry in entries:
            records.add([entry.record], [entry.number], entry.page, owner)
        self._batches.append(records.batch(self._schema))
        self._bytes += records.size + BATCH_OVERHEAD
        self.facts.records += len(entries)
        if self._bytes >= BATCH_BYTES:
            self.write()

    def write(self) -> None:
        """Write what was kept and is not written yet."""
        if self._batches:
            self._writer.write(pa.Table.from_batches(self._batches))
            self._batches, self._bytes = [], 0

    def _add(self, owner: str, facts: ResourceFacts) -> None:
        total = self.facts
        for name in _SUMS:
            setattr(total, name, getattr(total, name) + getattr(facts, name))
        total.x_total = None if total.x_total is None or facts.x_total is None else total.x_total + facts.x_total
        total.notes = [*dict.fromkeys([*total.notes, *facts.notes])][:MOST_NAMED]
        self.problems += [f"{self._of(owner)}: {problem}" for problem in facts.problems]

    def fail(self, owner: str, error: BookferryError, requests: int) -> None:
        """Note a list that cannot be read."""
        self.failure, self.failed_in_a_row = error, self.failed_in_a_row + 1
        self.facts.requests += requests
        self.problems.append(f"{self._of(owner)}: could not be read. {error}")

    def _of(self, owner: str) -> str:
        return f"{noun(self._parent)} {outside_text(owner, 60)}"

    def verdict(self) -> ResourceFacts:
        """The facts of all lists: complete only if each of them is."""
        more = len(self.problems) - MOST_NAMED
        self.facts.problems = [
            *self.problems[:MOST_NAMED],
            *([f"{more:,} more problems of such lists."] if more > 0 else []),
        ]
        self.facts.complete = not self.problems
        return self.facts


class _Entry(NamedTuple):
    key: int | str | None
    number: int | None
    """The key, if it is a whole number."""
    page: int
    record: msgspec.Raw


def _key(record: msgspec.Raw, reference: str) -> int | str | None:
    """What identifies an entry whose `id` is no whole number: that text, or the number of the record to which it leads."""
    decoded = decode_record(bytes(record))
    keys = (decoded.get(name) for name in ("id", reference))
    return next((key for key in keys if type(key) in (int, str) and key != ""), None)


class _Ids:
    """Counts the different keys of one list, eight bytes each (I11)."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._without = self._texts = 0

    def add(self, entries: Iterable[_Entry]) -> None:
        """Count the keys of some entries."""
        for entry in entries:
            if entry.key is None:
                self._without += 1
            else:
                self._texts += entry.number is None
                self._hashes.append(hash(entry.key))

    def counts(self) -> IdCounts:
        """The counts of the whole list."""
        import pyarrow.compute as pc  # noqa: PLC0415  its import takes long, and few libraries have such lists

        rows, distinct = len(self._hashes), len(pc.unique(pa.array(self._hashes, pa.int64())))
        twice = list[int | str]()
        if distinct < rows:
            twice += [value for value, count in Counter(self._hashes).items() if count > 1][:MOST_NAMED]
        return IdCounts(
            rows + self._without, distinct, self._without, ["(a text)"] if twice and self._texts else twice, self._texts
        )


class _Walks:
    """The page log of all lists, one walk after the other: an interrupted run left it so, and goes on where it ends."""

    def __init__(self, log: PageLog) -> None:
        self._log = log
        self._stored = log.replay()
        self._next = next(self._stored, None)
        self._walk = ("", 0)

    def over(self, endpoint: str, walk: int) -> Self:
        """The pages of one walk over one list."""
        self._walk = (endpoint, walk)
        return self

    def replay(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the stored pages of this walk."""
        while self._next is not None and walk_of(self._next[0]) == self._walk:
            page, self._next = self._next, next(self._stored, None)
            yield page

    def append(self, checkpoint: bytes, body: bytes) -> None:
        """Store one more page. A list that could not be read before later ones were is read anew by each run."""
        if self._next is None:
            self._log.append(checkpoint, body)
