"""Staging: makes the tables of a resource from its raw records alone, so that it can be repeated.

Large listings are staged while they are read, by a second process: reading and staging keep one core each busy. The process receives raw
batches as an Arrow IPC stream. If it fails, nothing is lost: `stage` makes the tables from the raw file instead.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from io import IOBase
from pathlib import Path
from typing import Self, cast

import msgspec
import pyarrow as pa

from pipelines.python_process import NUMPY_THREADS, end, hide_unused, python_command
from pipelines.records.batches import StagedBatch
from pipelines.records.flat_records import RecordStager
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.residue import bounded
from pipelines.records.rules import name_of_rules
from pipelines.records.shapes.columns import ObservedColumn, observe_columns, with_columns
from pipelines.records.shapes.observation import Observer
from pipelines.records.staging.publication_stager import RECORDS_PER_STEP, PublicationStager, in_steps
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import STAGED, raw_table
from pipelines.records.values import decode_record
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.parquet import TableWriter, row_batches
from pipelines.store.snapshots.captures import Capture

LARGE = 20_000
"""Records from which a second process is worth its start, which takes about half a second."""

KEY_VARIABLE = "BOOKFERRY_STAGING_KEY"
"""Passes the key for personal data to the staging process. Unlike arguments, the environment is hidden from other users."""

_ENVIRONMENT = {
    NUMPY_THREADS: "1",
    "ARROW_DEFAULT_MEMORY_POOL": "jemalloc",  # where Arrow has it: the default keeps a fifth more of what is no longer needed
}

GROUP_BYTES = 8 * 1024 * 1024
"""Bytes of raw records per row group of the staged tables: each of their seventy columns has its own cost in every row group."""

PIPE_BYTES = 1024 * 1024
"""Bytes that wait between the two processes, where the system can do that: the more, the less often they wake each other."""

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
        with capture.open_file(f"raw_{resource}") as file:
            record_tables(
                capture, resource, stage_batches(capture, resource, row_batches(file, ["payload", "sha256"]), kinds)
            )
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


def stage_batches(
    capture: Capture, resource: str, batches: Iterable[pa.RecordBatch], kinds: Kinds, *, at_once: bool = False
) -> StagedFacts:
    """Write the staged tables of raw batches with the columns `payload` and `sha256`.

    `at_once`: Arrow may read the JSON of a batch of publications at once. Only the second process asks for that, so that a mistake of
    Arrow that ends the process costs no backup.
    """
    observed = capture.facts.observed.get(resource, ())
    stage_some = PublicationStager(kinds) if resource == DESCRIBED else RecordStager(resource, observed)
    stager: Callable[[pa.RecordBatch], list[StagedBatch]] = partial(in_steps, stage_some)
    if at_once and isinstance(stage_some, PublicationStager):
        stager = stage_some.stage
    raw_rows, residue = 0, Counter[str]()
    with ExitStack() as stack:
        writers = {table.name: stack.enter_context(capture.writer(table)) for table in staged_tables(capture, resource)}
        behind = stack.enter_context(background_thread())
        stack.enter_context(_no_cycle_collection())
        group, size = list[StagedBatch](), 0
        for batch in batches:
            steps = stager(batch)
            raw_rows, size = raw_rows + batch.num_rows, size + batch.nbytes
            for staged in steps:
                residue = bounded(residue + staged.residue)
            group += steps
            if size >= GROUP_BYTES:
                behind(partial(_write_all, writers, group))
                group, size = [], 0
            del batch, steps  # before the next batch takes memory
        if group:
            behind(partial(_write_all, writers, group))
    rows = {name: writer.rows for name, writer in writers.items()}
    rules = name_of_rules(_CODE, kinds.described, list(kinds.additional.items()), observed)
    return StagedFacts(raw_rows, rows, dict(residue.most_common()), rules)


def record_tables(capture: Capture, resource: str, facts: StagedFacts) -> None:
    """Record finished tables in the capture."""
    for table in STAGED[resource]:
        capture.add_table(table.name, capture.table_path(table), facts.rows[table.name])
    capture.facts.residue[resource] = facts.residue
    capture.facts.staging_rules[resource] = facts.rules
    capture.save()


class StagingProcess:
    """Stages a resource in a second process while it is read: `start_if_large`, `send` the batches, then `finish`.

    It is optional: on any failure `finish` returns None, and `stage` does the work. The columns of undescribed resources depend on all of
    their records, so that those are staged afterwards.
    """

    def __init__(self, capture: Capture, resource: str, kinds: Kinds = STANDARD_KINDS) -> None:
        self._command = python_command("-m", "pipelines.backup.staging", str(capture.path), resource, kinds.described)
        self._key = {KEY_VARIABLE: capture.key.text} if capture.key else {}
        self._schema = raw_table(resource).schema
        self._decided = resource != DESCRIBED
        self._process: subprocess.Popen[bytes] | None = None
        self._stream: pa.ipc.RecordBatchStreamWriter | None = None

    def start_if_large(self, expected: int | None) -> None:
        """Start if the listing is large and the machine has a second core. Only the first call counts; it comes before any `send`."""
        decided, self._decided = self._decided, True
        if not decided and (expected or 0) >= LARGE and _cores() > 1:
            # A session of its own: Ctrl-C goes to the parent, which ends this process by closing the stream.
            with suppress(OSError):
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    pipesize=PIPE_BYTES,
                    env=os.environ | _ENVIRONMENT | self._key,
                    start_new_session=True,
                )
                self._stream = pa.ipc.new_stream(pa.PythonFile(cast("IOBase", self._process.stdin), "w"), self._schema)

    def send(self, batch: pa.RecordBatch) -> None:
        """Send one raw batch. Waits while the process is busy."""
        if self._stream is None:
            return
        try:
            self._stream.write_batch(batch)
        except (OSError, pa.ArrowException):
            self._stream = None

    def finish(self, raw_rows: int) -> StagedFacts | None:
        """Returns the result if it covers all `raw_rows`, else None."""
        if self._stream is None or self._process is None:
            return None
        with suppress(OSError, pa.ArrowException, msgspec.MsgspecError):
            self._stream.close()
            output, _ = self._process.communicate()
            facts = _STAGED_FACTS_DECODER.decode(output)
            if self._process.returncode == 0 and facts.raw_rows == raw_rows:
                return facts
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            with suppress(OSError):
                self._process.communicate()


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


@contextmanager
def _no_cycle_collection() -> Iterator[None]:
    """Turns off Python's cycle collector.

    Staging makes millions of containers without cycles. Searching them took a third of its time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _write_all(writers: Mapping[str, TableWriter], steps: Sequence[StagedBatch]) -> None:
    for name, writer in writers.items():
        writer.write(pa.Table.from_batches([staged.tables[name] for staged in steps]))


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _kinds(described: str) -> Kinds:
    if not described:
        return STANDARD_KINDS
    from pipelines.records.identifiers.configured import kinds_described  # noqa: PLC0415  pydantic takes as long as all else together

    return kinds_described(described)


def main(path: str, resource: str, described: str) -> None:
    """The staging process: raw batches on stdin, `StagedFacts` in JSON on stdout."""
    hide_unused()
    keys = PersonalKeys([PersonalKey.parse(text) for text in os.environ.get(KEY_VARIABLE, "").split()])
    with pa.ipc.open_stream(pa.PythonFile(cast("IOBase", sys.stdin.buffer), "r")) as stream:
        facts = stage_batches(Capture.open(Path(path), keys), resource, stream, _kinds(described), at_once=True)
    sys.stdout.buffer.write(msgspec.json.encode(facts))


_STAGED_FACTS_DECODER = msgspec.json.Decoder(StagedFacts)


if __name__ == "__main__":
    main(*sys.argv[1:])
    end(0)
