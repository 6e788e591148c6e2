"""Staging: makes the tables of a resource from its raw records alone, so that it can be repeated.

Publications are staged while they are read, in the thread that writes their raw file: the reading one waits for the service most of its
time. The columns of other resources depend on all of their records, so that those are staged afterwards, from the raw file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import cast

import pyarrow as pa

from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.residue import MAX_RESIDUE_KEYS, bounded, record_json
from pipelines.records.shapes.observation import ObservedColumn, Observer, RecordShape
from pipelines.records.stager import RECORDS_PER_STEP, Stager, in_steps
from pipelines.records.tables.description import Table
from pipelines.records.tables.observed_columns import observe_columns, with_columns
from pipelines.records.tables.registry import STAGED, TABLES, table_named
from pipelines.records.values import decode_record
from pipelines.store.entries import LED_TO, leading_key_of
from pipelines.store.parquet import TableWriter, open_in_duckdb, row_batches
from pipelines.store.snapshots.captures import Capture

DESCRIBED = "publications"
"""The resource whose fields the service documents. Its tables have the described columns only, so that it is staged while it is read."""

ROWS_PER_GROUP = 100_000

_OTHER_KEYS = """
SELECT key, count(*) AS entries
FROM (SELECT unnest(json_keys(as_json(payload))) AS key FROM file)
WHERE NOT list_contains(?, key) GROUP BY key ORDER BY entries DESC, key LIMIT ?"""
"""Keys of entries that neither a column nor the records have to which they lead."""


def stage(
    capture: Capture, resource: str, kinds: Kinds = STANDARD_KINDS, *, earlier: Iterable[ObservedColumn] = ()
) -> dict[str, int]:
    """Make the staged tables of `resource` from its raw file, unless they exist. Returns table → rows.

    `kinds`: the identifier types of the library; `earlier`: the observed columns of the snapshot before.
    """
    tables = STAGED[resource]
    if any(table.name not in capture.facts.tables for table in tables):
        if resource != DESCRIBED:
            _observe(capture, resource, earlier)
        with capture.open_file(f"raw_{resource}") as file, staged_writer(capture, resource, kinds) as writer:
            for batch in row_batches(file, ["payload", "sha256"]):
                writer.write(payloads_of(batch), cast("list[str]", batch.column("sha256").to_pylist()))
        writer.record()
    return {table.name: capture.facts.tables[table.name].rows for table in tables}


def stage_entries(capture: Capture, resource: str) -> None:
    """Make the table of lists at addresses of their own; a described one takes the place of that which the records fill themselves."""
    table = table_named(resource)
    owner, position, value, *_entry = (column.name for column in table.columns)
    number = "CASE WHEN regexp_full_match({0}, '-?[0-9]{{1,18}}') THEN CAST({0} AS BIGINT) END"
    with (
        open_in_duckdb(capture.raw_path(resource), capture.key_of(f"raw_{resource}")) as database,
        capture.writer(table) as writer,
    ):
        key = leading_key_of(database, resource)
        rows = database.sql(
            f"SELECT {number.format('owner')} AS {owner}, "  # noqa: S608  names of our descriptions
            f"CAST(row_number() OVER (PARTITION BY owner ORDER BY page, place) - 1 AS INTEGER) AS {position}, value AS {value}, payload "
            "FROM (SELECT *, row_number() OVER () AS place FROM "
            f"(SELECT owner, page, payload, coalesce({number.format(LED_TO.format(key=key))}, id) AS value FROM file)) "
            "ORDER BY min(place) OVER (PARTITION BY owner), 2"
        ).to_arrow_reader(ROWS_PER_GROUP if table.name in TABLES else RECORDS_PER_STEP)
        for batch in rows:
            *columns, payloads = batch.columns
            if _entry:
                entries = [record_json(decode_record(payload)) for payload in payloads.cast(pa.binary()).to_pylist()]
                columns.append(pa.array(entries, pa.string()))
            writer.write(pa.RecordBatch.from_arrays(columns, schema=table.schema))
        of_records = capture.facts.shapes.get(table.columns[2].references.partition(".")[0], RecordShape()).fields
        residue = database.execute(_OTHER_KEYS, [["id", key, *of_records], MAX_RESIDUE_KEYS]).fetchall()
        capture.facts.residue[resource] = dict(residue)
    capture.add_table(table.name, capture.table_path(table), writer.rows)
    capture.save()


def _observe(capture: Capture, resource: str, earlier: Iterable[ObservedColumn]) -> None:
    """Count the fields of all raw records, and choose the columns of their table."""
    facts, observer = capture.facts, Observer()
    with capture.open_file(f"raw_{resource}") as file:
        for batch in row_batches(file, ["payload"], RECORDS_PER_STEP):
            observer.observe(map(decode_record, payloads_of(batch)))
    today = f"{datetime.fromisoformat(facts.started_at):%Y-%m-%d}"
    observed = observe_columns(observer.shape, STAGED[resource], earlier=earlier, today=today)
    facts.shapes[resource], facts.observed[resource] = observer.shape, observed


def payloads_of(batch: pa.RecordBatch) -> list[bytes]:
    """The JSON of the records of a raw batch."""
    return cast("list[bytes]", batch.column("payload").view(pa.binary()).to_pylist())


def staged_tables(capture: Capture, resource: str) -> tuple[Table, ...]:
    """The tables of a resource with their observed columns."""
    table, *lists = STAGED[resource]
    return with_columns(table, capture.facts.observed.get(resource, ())), *lists


class StagedWriter:
    """Stages raw batches of one resource, and writes its tables. `staged_writer` opens one."""

    def __init__(self, capture: Capture, resource: str, kinds: Kinds, writers: Mapping[str, TableWriter]) -> None:
        observed = capture.facts.observed.get(resource, ())
        self._stager, self._writers = Stager(resource, observed, kinds), writers
        self._capture, self._resource = capture, resource
        self._residue = Counter[str]()

    def write(self, payloads: Sequence[bytes], hashes: Sequence[str]) -> None:
        """Stage records as one row group of each table. `hashes`: the SHA-256 of each in hexadecimal."""
        steps = [*in_steps(self._stager, payloads, hashes)]
        for staged in steps:
            self._residue = bounded(self._residue + staged.residue)
        for name, writer in self._writers.items() if steps else ():
            writer.write(pa.Table.from_batches([staged.tables[name] for staged in steps]))

    def record(self) -> None:
        """Record the tables in the capture, once they are complete."""
        facts = self._capture.facts
        for table in STAGED[self._resource]:
            self._capture.add_table(table.name, self._capture.table_path(table), self._writers[table.name].rows)
        facts.residue[self._resource] = dict(self._residue.most_common())
        self._capture.save()


@contextmanager
def staged_writer(capture: Capture, resource: str, kinds: Kinds) -> Iterator[StagedWriter]:
    """Opens the staged tables of a resource. They are complete when the block ends without an error."""
    with ExitStack() as stack:
        writers = {table.name: stack.enter_context(capture.writer(table)) for table in staged_tables(capture, resource)}
        yield StagedWriter(capture, resource, kinds, writers)


@contextmanager
def background_thread() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Runs functions in one thread, in order, so that a batch is written while the next one is made. Yields the submitting function.

    None waits, because its batch takes memory: a function is submitted once the one before it has ended. An error ends the block.
    """
    running: Future[None] | None = None

    def submit(work: Callable[[], None]) -> None:
        nonlocal running
        if running is not None:
            running.result()
        running = thread.submit(work)

    with ThreadPoolExecutor(1, thread_name_prefix="writing") as thread:
        yield submit
        if running is not None:
            running.result()
