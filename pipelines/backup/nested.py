"""Reads a list that each record of a resource has at an address of its own, such as `/collections/17/publications` (service.md#not-shown).

Each of these lists is read and proved as any other (I4). Together they are one resource of the snapshot: one page log, from which an
interrupted run continues (I9), one raw table, and one verdict, which names the record of each list that is not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.backup.read import BATCH_BYTES, ListReader, Progress, finish, goes_on_without, record_unreadable
from pipelines.errors import AccessDeniedError, BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.humanize import counted
from pipelines.inventory import LIST_PATHS, nested_address, nested_resource, noun
from pipelines.records.tables.registry import id_at, leading_key
from pipelines.records.values import decode_record, whole_number
from pipelines.service.client import LibraryClient
from pipelines.service.listing.listing import Listing
from pipelines.service.listing.listing_facts import Page
from pipelines.service.redaction import outside_text
from pipelines.store.parquet import TableWriter, open_table, row_batches
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import ResourceFacts, Unreadable

MOST_FAILED = 10
"""Lists in a row that cannot be read, after which no further one is asked for."""

BATCH_OVERHEAD = 4096
"""Bytes of memory of the entries of a list, however few they are."""

MOST_NAMED = 20
"""Problems that are named one by one."""

_SUMS = (
    "records",
    "distinct_ids",
    "without_id",
    "pages",
    "requests",
    "seconds",
    "added",
    "deleted",
    "read_again",
    "resumed",
)


def read_nested(
    capture: Capture, client: LibraryClient, name: str, on_progress: Callable[[Progress], None] = lambda _: None
) -> ResourceFacts | Unreadable:
    """Read the list of each record of a resource that the capture has. `name`: of these lists, such as `collections/publications`."""
    resource, (parent, _, below) = nested_resource(name), name.partition("/")
    before, records = client.requests, capture.facts.resources[parent].records
    path, key = capture.raw_path(resource).with_suffix(".list"), capture.key_of(f"raw_{resource}")
    verdict, failed_in_a_row = _Verdict(name), 0
    with capture.page_log(resource) as pages, capture.raw_writer(resource) as writer:
        reader, entries = ListReader(capture, client, resource, pages, path=path), _Entries(writer)
        for number, owner in enumerate(_owners(capture, parent), 1):
            requests = client.requests
            endpoints = (f"{LIST_PATHS[parent]}/{quote(owner, safe='')}/{below}",)
            try:
                facts, _ = reader.read(endpoints, partial(_pages_of, resource, owner))
            except (RefusedError, AccessDeniedError, ProtocolError, TemporaryError) as error:
                if not goes_on_without(capture, client, resource, error):
                    raise
                verdict.fail(owner, error, client.requests - requests)
                failed_in_a_row += 1
                if failed_in_a_row == MOST_FAILED:
                    verdict.problems.append(f"{counted(records - number, 'more list')} not asked for after these.")
                    break
            else:
                failed_in_a_row = 0
                verdict.add(owner, facts)
                with open_table(path, key) as file:
                    entries.add(file)
            seconds_left = (records - number) * 60 / client.requests_per_minute
            on_progress(Progress(resource, verdict.facts.records, None, client.requests - before, seconds_left))
        entries.write()
    path.unlink(missing_ok=True)
    if verdict.failure is not None and not verdict.facts.pages:
        return record_unreadable(capture, resource, verdict.failure, asked=True, requests=verdict.facts.requests)
    finish(capture, resource, verdict.whole())
    return verdict.facts


def _owners(capture: Capture, parent: str) -> Iterator[str]:
    """Yields the id of each record of a resource, as text."""
    with capture.open_file(f"raw_{parent}") as file:
        for batch in row_batches(file, ["id", "payload"]):
            for number, payload in zip(*(batch.column(name).to_pylist() for name in ("id", "payload")), strict=True):
                record_id = number if number is not None else decode_record(payload.encode()).get("id")
                if isinstance(record_id, int | str) and record_id != "":
                    yield str(record_id)


def _pages_of(resource: str, owner: str, listing: Listing) -> Iterator[Page]:
    """Yields the pages of one record's list. An entry without an id has the number of the record to which it leads."""

    def number_of(record: msgspec.Raw) -> int | None:
        entry = decode_record(bytes(record))
        return whole_number(id_at(leading_key(resource, entry), entry)) if entry.get("id") in (None, "") else None

    for page in listing.pages():
        ids = [
            number_of(record) if number is None else number
            for record, number in zip(page.records, page.ids, strict=True)
        ]
        yield replace(page, ids=ids, owner=owner)


class _Entries:
    """The entries of the lists for their raw table, which gets those of many short lists at a time."""

    def __init__(self, writer: TableWriter) -> None:
        self._writer = writer
        self._tables: list[pa.Table] = []
        self._bytes = 0

    def add(self, file: pq.ParquetFile) -> None:
        """Add the raw file of one list."""
        for group in range(file.num_row_groups):
            self._tables.append(file.read_row_group(group))
            self._bytes += self._tables[-1].nbytes + BATCH_OVERHEAD
            if self._bytes >= BATCH_BYTES:
                self.write()

    def write(self) -> None:
        """Write what is not written yet."""
        if self._tables:
            self._writer.write(pa.concat_tables(self._tables))
            self._tables, self._bytes = [], 0


class _Verdict:
    """What is said of the lists together: they are complete only if each of them is."""

    def __init__(self, name: str) -> None:
        self._noun = noun(name.partition("/")[0])
        self.facts = ResourceFacts(
            endpoint=nested_address(name).removeprefix("/"),
            x_total=0,
            complete=True,
            problems=[],
            **dict.fromkeys(_SUMS, 0),  # type: ignore[arg-type]  # counts, and seconds
        )
        self.problems: list[str] = []
        self.failure: BookferryError | None = None

    def add(self, owner: str, facts: ResourceFacts) -> None:
        """Add one list."""
        total = self.facts
        for name in _SUMS:
            setattr(total, name, getattr(total, name) + getattr(facts, name))
        total.x_total = None if total.x_total is None or facts.x_total is None else total.x_total + facts.x_total
        total.notes = [*dict.fromkeys([*total.notes, *facts.notes])][:MOST_NAMED]
        self.problems += [f"{self._of(owner)}: {problem}" for problem in facts.problems]

    def fail(self, owner: str, error: BookferryError, requests: int) -> None:
        """Note a list that cannot be read."""
        self.failure = error
        self.facts.requests += requests
        self.problems.append(f"{self._of(owner)}: could not be read. {error}")

    def _of(self, owner: str) -> str:
        return f"{self._noun} {outside_text(owner, 60)}"

    def whole(self) -> ResourceFacts:
        """The facts of all lists."""
        more = len(self.problems) - MOST_NAMED
        self.facts.problems = [
            *self.problems[:MOST_NAMED],
            *([f"{more:,} more problems of such lists."] if more > 0 else []),
        ]
        self.facts.complete = not self.problems
        return self.facts
