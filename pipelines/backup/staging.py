"""Staging: makes the tables of a resource from its raw records alone, so that it can be repeated.

Publications are staged while they are read, in the thread that writes their raw file: the reading one waits for the service most of its
time. The columns of other resources depend on all of their records, so that those are staged afterwards, from the raw file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime

import msgspec
import pyarrow as pa

from pipelines.records.batches import StagedBatch
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.residue import bounded
from pipelines.records.rules import name_of_rules
from pipelines.records.shapes.columns import ObservedColumn, observe_columns, with_columns
from pipelines.records.shapes.observation import Observer
from pipelines.records.stager import RECORDS_PER_STEP, Stager, in_steps
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import STAGED
from pipelines.records.values import decode_record
from pipelines.store.parquet import TableWriter, row_batches
from pipelines.store.snapshots.captures import Capture

GROUP_BYTES = 8 * 1024 * 1024
"""Bytes of raw records per row group of the staged tables: each of their seventy columns has its own cost in every row group."""

_CODE = ("records", "publication_fields.py", "backup/staging.py")
"""What of `pipelines` has a part in a staged row."""

DESCRIBED = "publications"
"""The resource whose fields the service documents. Its tables have the described columns only, so that it is staged while it is read."""


class StagedFacts(msgspec.Struct):
    """The result of staging one resource."""

    raw_rows: int
    rows: dict[str, int]
    """Table → rows."""
    residue: dict[str, int]
    rules: str
    """Name of the rules: equal records have equal rows where it is the same (pipelines/records/rules.py)."""


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
                writer.write(batch)
        record_tables(capture, resource, writer.facts)
    return {table.name: capture.facts.tables[table.name].rows for table in tables}


def _observe(capture: Capture, resource: str, earlier: Iterable[ObservedColumn]) -> None:
    """Count the fields of all raw records, and choose the columns of their table."""
    facts, observer = capture.facts, Observer()
    with capture.open_file(f"raw_{resource}") as file:
        for batch in row_batches(file, ["payload"], RECORDS_PER_STEP):
            payloads = batch.column("payload").cast(pa.binary()).to_pylist()
            observer.observe(decode_record(payload or b"") for payload in payloads)
    today = f"{datetime.fromisoformat(facts.started_at):%Y-%m-%d}"
    found = observe_columns(observer.shape, STAGED[resource], earlier=earlier, today=today)
    facts.shapes[resource], facts.observed[resource] = observer.shape, [*found.columns]


def staged_tables(capture: Capture, resource: str) -> tuple[Table, ...]:
    """The tables of a resource with their observed columns."""
    table, *lists = STAGED[resource]
    return with_columns(table, capture.facts.observed.get(resource, ())), *lists


class StagedWriter:
    """Stages raw batches of one resource, and writes its tables. `staged_writer` opens one."""

    def __init__(self, capture: Capture, resource: str, kinds: Kinds, writers: Mapping[str, TableWriter]) -> None:
        observed = capture.facts.observed.get(resource, ())
        self._stager, self._writers = Stager(resource, observed, kinds), writers
        self._rules = name_of_rules(_CODE, kinds.described, list(kinds.additional.items()), observed)
        self._raw_rows, self._residue = 0, Counter[str]()
        self._group, self._size = list[StagedBatch](), 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage a raw batch with the columns `payload` and `sha256`."""
        for staged in in_steps(self._stager, batch):
            self._residue = bounded(self._residue + staged.residue)
            self._group.append(staged)
        self._raw_rows, self._size = self._raw_rows + batch.num_rows, self._size + batch.nbytes
        if self._size >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what was staged as one row group of each table."""
        group, self._group, self._size = self._group, [], 0
        for name, writer in self._writers.items() if group else ():
            writer.write(pa.Table.from_batches([staged.tables[name] for staged in group]))

    @property
    def facts(self) -> StagedFacts:
        """What was staged."""
        rows = {name: writer.rows for name, writer in self._writers.items()}
        return StagedFacts(self._raw_rows, rows, dict(self._residue.most_common()), self._rules)


@contextmanager
def staged_writer(capture: Capture, resource: str, kinds: Kinds) -> Iterator[StagedWriter]:
    """Opens the staged tables of a resource. They are complete when the block ends without an error."""
    with ExitStack() as stack:
        writers = {table.name: stack.enter_context(capture.writer(table)) for table in staged_tables(capture, resource)}
        writer = StagedWriter(capture, resource, kinds, writers)
        yield writer
        writer.flush()


def record_tables(capture: Capture, resource: str, facts: StagedFacts) -> None:
    """Record finished tables in the capture."""
    for table in STAGED[resource]:
        capture.add_table(table.name, capture.table_path(table), facts.rows[table.name])
    capture.facts.residue[resource] = facts.residue
    capture.facts.staging_rules[resource] = facts.rules
    capture.save()


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
