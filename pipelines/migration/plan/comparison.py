"""Compares the publications of two libraries: which are new, which exist, which differ, and what a person must decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa

from pipelines.migration.model.comparable import ComparableLibrary
from pipelines.migration.model.comparison_database import comparison_database, create_table
from pipelines.migration.normalise import normalise
from pipelines.migration.plan.references.contributors import UNKNOWN
from pipelines.migration.plan.references.publications import map_references
from pipelines.migration.plan.three_way_merge import merge_three_ways
from pipelines.publication_fields import REFERENCES
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.tables.description import Column, Table

_NUMBER, _TEXT = pa.int64(), pa.string()
WRITTEN = Table(
    "written",
    "The publications that earlier plans wrote, according to the journal.",
    ("source_id",),
    (
        Column("source_id", _NUMBER, "The publication in the source.", required=True),
        Column("target_id", _NUMBER, "The publication in the target.", required=True),
        Column("wanted", _TEXT, "JSON object: field → `comparable.digest` of what was sent."),
        Column("held", _TEXT, "JSON object: field → `comparable.digest` of what the service then had."),
    ),
)


class WrittenRow(NamedTuple):
    """A row of `WRITTEN`."""

    source_id: int
    target_id: int
    wanted: str
    held: str


WRITTEN_FILES = Table(
    "written_files",
    "The files of publications that earlier plans wrote, according to the journal.",
    (),
    (
        Column("source_id", _NUMBER, "The publication in the source.", required=True),
        Column("number", _NUMBER, "The number of the entry: later writes have greater ones.", required=True),
        Column("kind", _TEXT, "asset or cover.", required=True),
        Column("part", _TEXT, "Which file of the publication (files.py:part_of).", required=True),
        Column("state", _TEXT, "How far the write is.", required=True),
        Column("asset_id", _NUMBER, "The file in the target; empty for a cover."),
        Column("message", _TEXT, "What the service did not keep of it, or why it refused it."),
    ),
)
DECISIONS = Table(
    "decisions",
    "What a person decided about conflicts.",
    ("source_id",),
    (
        Column("source_id", _NUMBER, "The publication in the source.", required=True),
        Column(
            "decision",
            _TEXT,
            "create, skip, match, source (its values count) or target (its values count).",
            required=True,
        ),
        Column("target_id", _NUMBER, "The publication in the target that is meant."),
    ),
)

_STAGES = (
    ("identifier", "FROM {side}_keys", False),
    ("content", "SELECT id, 'content' AS type, content AS value FROM {side}", True),
    (
        "fingerprint",
        "SELECT id, 'fingerprint' AS type, fingerprint AS value FROM {side} WHERE fingerprint IS NOT NULL",
        True,
    ),
)
"""Name, SQL of the keys of a side, and whether contradicting identifiers make a pair two works."""


def normalise_both(
    source: Path,
    target: Path,
    folder: Path,
    kinds: Kinds = STANDARD_KINDS,
    sent: Collection[str] = GOOD,
    *,
    first_day: bool = False,
) -> tuple[ComparableLibrary, ComparableLibrary]:
    """Normalise both sides from their raw tables.

    `kinds`: the identifier types, and the additional fields with the values that the target takes; what it has already is compared whatever
    it is. `sent`: verdicts of the identifiers that are sent. `first_day`: a date of the source that is only a year or a month is sent as
    its first day.
    """
    any_value = kinds.with_additional({name: rule.of_target for name, rule in kinds.additional.items()})
    return (
        normalise(source, folder / "source", kinds, sent, first_day=first_day),
        normalise(target, folder / "target", any_value, sent),
    )


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
    """Open a database with the table `merged` (three_way_merge.py) and the views `source` and `target`. Its files are in `folder`.

    `overwrite`: where both sides have different values, the source's value counts. References to contributors and organizations are
    compared within one library only, whose ids they are (service.md#references); contributors also where the users of both libraries are
    known (references/contributors.py). Links are compared as those of the target (references/publications.py).
    """
    with comparison_database(folder, {"source": source, "target": target}) as database:
        create_table(database, WRITTEN, written)
        create_table(database, DECISIONS, decisions)
        database.execute("CREATE TABLE same_library AS SELECT ? AS yes", [same_library])
        mapped, links = map_references(database, source)
        match(database)
        fields = [
            field for field in source.fields if same_library or field.name not in REFERENCES or field.name in mapped
        ]
        unknown = dict.fromkeys((*mapped, *links), UNKNOWN)
        merge_three_ways(database, fields, overwrite=overwrite, keep_target_at=unknown)
        yield database


def match(database: duckdb.DuckDBPyConnection) -> None:
    """Make the tables `matched` and `ambiguous` from the input of sql/migration/match.sql. A record in neither is new.

    Whole sets are matched, never record by record (I11). The evidence in its order: a person's decision; what earlier plans wrote,
    according to the journal; the id, within one library; identifiers that identify a publication (I8); the whole content; title, year
    and first author.
    """
    _run(database, "match")
    for name, keys, gives_way in _STAGES:
        for side in ("source", "target"):
            database.execute(f"CREATE OR REPLACE TEMP VIEW stage_{side} AS {keys.format(side=side)}")
        database.execute("CREATE OR REPLACE TABLE stage AS SELECT ? AS name, ? AS gives_way", (name, gives_way))
        _run(database, "match_by_keys")


def _run(database: duckdb.DuckDBPyConnection, name: str) -> None:
    database.execute(resources.files("sql").joinpath("migration", f"{name}.sql").read_text(encoding="utf-8"))
