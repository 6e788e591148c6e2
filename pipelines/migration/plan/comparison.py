"""Compares the publications of two snapshots as a migration would: what is new, what is there, what differs, what a person must decide."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.migration.model.comparable import CONTRIBUTOR, FIELDS, ComparableLibrary, normalise
from pipelines.migration.plan.contributors import UNKNOWN, show_contributors
from pipelines.migration.plan.matching import match
from pipelines.migration.plan.three_way_merge import merge_three_ways
from pipelines.publication_fields import REFERENCES
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.tables.description import Column, Table
from pipelines.store.durable import storage_errors

_NUMBER, _TEXT = pa.int64(), pa.string()
WRITTEN = Table(
    "written",
    "What the journal tells of the publications that earlier plans wrote.",
    ("source_id",),
    (
        Column("source_id", _NUMBER, "The publication in the source.", required=True),
        Column("target_id", _NUMBER, "The one that it became.", required=True),
        Column("wanted", _TEXT, "JSON object: field → `classifying.digest` of what was sent."),
        Column("held", _TEXT, "JSON object: field → `classifying.digest` of what the service then held."),
    ),
)
DECISIONS = Table(
    "decisions",
    "What a person decided of conflicts.",
    ("source_id",),
    (
        Column("source_id", _NUMBER, "The publication in the source.", required=True),
        Column(
            "decision", _TEXT, "create, skip, match, source (ours counts) or target (theirs counts).", required=True
        ),
        Column("target_id", _NUMBER, "The publication in the target that is meant."),
    ),
)


WORTH_A_PROCESS = 20_000
"""Records of both sides from which on a process of its own for each is quicker than none."""


def normalise_both(
    source: Path, target: Path, folder: Path, kinds_text: str = "", sent: Sequence[str] = tuple(GOOD)
) -> tuple[ComparableLibrary, ComparableLibrary]:
    """Both sides from their raw tables, large ones each in a process of its own; `sent`: verdicts of the identifiers that are sent."""
    given = ((source, folder / "source"), (target, folder / "target"))
    with storage_errors(folder):
        rows = sum(pq.read_metadata(raw).num_rows for raw, _ in given)
    if rows < WORTH_A_PROCESS:
        one, other = (normalise(raw, to, kinds_text, tuple(sent)) for raw, to in given)
        return one, other
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        begun = [processes.submit(normalise, raw, to, kinds_text, tuple(sent)) for raw, to in given]
        one, other = (each.result() for each in begun)
        return one, other


@contextmanager
def compare_libraries(
    source: ComparableLibrary,
    target: ComparableLibrary,
    folder: Path,
    *,
    written: Iterable[pa.RecordBatch] = (),
    decisions: Iterable[pa.RecordBatch] = (),
    same_library: bool = False,
    overwrite: bool = False,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the table `classified` (see classifying.py) and the views `source` and `target`; what it holds is in `folder`.

    `overwrite`: where both sides hold something else, the source's counts.
    References to contributors and organizations count within one library only, whose ids they are (trap A15), and contributors also where
    it is known what they became (contributors.py).
    """
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "1200MB",
        "threads": 2,
        "preserve_insertion_order": False,
        "temp_directory": str(folder / "spilled"),
    }
    with storage_errors(folder), duckdb.connect(str(folder / "comparison.duckdb"), config=limits) as database:
        for name, side in (("source", source), ("target", target)):
            for view in side.views(name):
                database.execute(view)
        for table, batches in ((WRITTEN, written), (DECISIONS, decisions)):
            database.register("given", pa.RecordBatchReader.from_batches(table.schema, iter(batches)))
            database.execute(f"CREATE TABLE {table.name} AS FROM given")
            database.unregister("given")
        database.execute("CREATE TABLE same_library AS SELECT ? AS yes", [same_library])
        led = show_contributors(database, source)
        match(database)
        fields = [one for one in FIELDS if same_library or one.name not in REFERENCES or one.name in led]
        merge_three_ways(database, fields, overwrite=overwrite, kept={CONTRIBUTOR: UNKNOWN} if led else {})
        yield database
