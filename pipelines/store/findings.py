"""Findings about the staged tables of one snapshot, as totals and row by row: verdicts, residue, duplicates, missing files.

DuckDB computes them over the Parquet files and spills to disk, so that a million records never become Python objects (I11). Tables about
people are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec

from pipelines.errors import StorageError
from pipelines.records.identifiers.rules import SPELLING
from pipelines.records.identifiers.verdicts import VERDICTS
from pipelines.records.tables.publications import PUBLICATION_FILES, PUBLICATION_IDENTIFIERS, PUBLICATIONS
from pipelines.records.tables.registry import STAGED, is_personal
from pipelines.store.parquet import escaped, literal, read_parquet
from pipelines.store.snapshots.facts import FileTotals
from pipelines.store.snapshots.manifest import Manifest
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot, reading

MOST_FIELDS = 30
"""Identifier fields that are listed one by one: version 3 accepts any text as the type of an identifier (I13)."""

MOST_RULES = 1000
"""Pairs of a rule and a field that are listed."""

MOST_KEYS = 200
"""Residue keys of a resource that are listed."""

MOST_KINDS = 12
"""Kinds of publications that are listed one by one."""

OTHER = "(others)"

FINDING_VIEWS = (
    "failed_files",
    "not_identifiers",
    "same_identifiers",
    "same_titles_and_years",
    "without_title",
    "without_readable_date",
    "repaired",
)
"""Views of sql/findings.sql with one row per finding, the most urgent first."""


class Verdicts(msgspec.Struct):
    """The values of one field, counted by verdict."""

    valid: int = 0
    repaired: int = 0
    invalid: int = 0
    unrecognised: int = 0

    @property
    def total(self) -> int:
        """All values of the field."""
        return sum(getattr(self, verdict) for verdict in VERDICTS)


class KindCounts(msgspec.Struct):
    """The publications of one kind, and how many of them have no valid or repaired identifier."""

    publications: int
    without_identifier: int


class DuplicateCounts(msgspec.Struct):
    """Groups of records that seem to be duplicates, and the records in them."""

    groups: int
    records: int


class Figures(msgspec.Struct, kw_only=True):
    """The totals of a report. Lists of values from a library are bounded."""

    publications: int
    without_identifier: int
    """Publications without any identifier that is valid or repaired."""
    without_date: int
    year_or_month: int
    """Publications whose date is only a year or a month."""
    unreadable_date: int
    """Publications whose date is neither a day nor a year or a month."""
    holdings: dict[str, KindCounts]
    identifiers: int
    verdicts: dict[str, Verdicts]
    rules: dict[str, dict[str, int]]
    """Rule → field → values."""
    same_identifier: DuplicateCounts
    same_title_and_year: DuplicateCounts
    files: FileTotals
    residue: dict[str, dict[str, int]]
    """Resource → residue key → number of records with it."""


class DuplicateGroup(NamedTuple):
    """Records that seem to be duplicates: their common value, their number, and the first ids."""

    type: str
    """Type of the identifier; the year, where title and year are the same."""
    value: str
    records: int
    first_records: list[int]
    title: str | None


class IdentifierFinding(NamedTuple):
    """One finding. `kind` is file, a verdict, shared, same_title, no_title or no_date; the texts come from outside."""

    kind: str
    record: int | None
    field: str
    type: str
    value: str
    becomes: str
    """The repaired value of an identifier."""
    detail: str
    """Rules, a year, or the problem of a file."""
    records: str
    """The ids of the first records that look alike, with blanks between them."""
    many: int
    title: str | None
    """Title of the record."""


class Findings:
    """The findings of one snapshot. Made by `open_findings`."""

    def __init__(self, database: duckdb.DuckDBPyConnection, snapshot: Snapshot) -> None:
        self._database = database
        self._snapshot = snapshot

    def figures(self) -> Figures:
        """Returns the totals."""
        manifest = self._snapshot.manifest
        [totals] = self._named("totals")
        figures = {
            **totals,
            "holdings": self._bounded("holdings", MOST_KINDS),
            "verdicts": self._bounded("verdicts", MOST_FIELDS),
            "rules": self._rules(),
            "files": msgspec.structs.replace(manifest.files, failures=[]),
            "residue": shown_residue(manifest),
        }
        return msgspec.convert(figures, Figures)

    def each(self) -> Iterator[IdentifierFinding]:
        """Yields every finding, the most urgent first; memory does not grow with their number."""
        for view in FINDING_VIEWS:
            result = self._database.execute(f"SELECT * FROM {view}")  # noqa: S608  a name of ours
            while rows := result.fetchmany(1000):
                yield from map(IdentifierFinding._make, rows)

    def shared_identifiers(self) -> list[DuplicateGroup]:
        """Returns the largest groups of records with the same identifier."""
        return [DuplicateGroup(*row) for row in self._rows("SELECT * FROM shared_examples")]

    def same_titles(self) -> list[DuplicateGroup]:
        """Returns the largest groups of records with the same title and year."""
        return [DuplicateGroup(*row) for row in self._rows("SELECT * FROM title_examples")]

    def _bounded(self, view: str, most: int) -> dict[str, dict[str, int]]:
        """The counts of each name, which is the first column of a view; those of all after the first ones together."""
        bounded: dict[str, dict[str, int]] = {}
        for row in self._named(view):
            (_, value), *counts = row.items()
            name = value if len(bounded) < most else OTHER
            before = bounded.get(name, {})
            bounded[name] = {column: before.get(column, 0) + count for column, count in counts}
        return bounded

    def _rules(self) -> dict[str, dict[str, int]]:
        rules: dict[str, dict[str, int]] = {}
        for field, rule, values in self._rows("SELECT * FROM rules LIMIT ?", MOST_RULES):
            rules.setdefault(rule, {})[field] = values
        return rules

    def _named(self, view: str) -> list[dict[str, Any]]:
        """The rows of a view, by column."""
        result = self._database.execute(f"SELECT * FROM {view}")  # noqa: S608  a name of ours
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def _rows(self, sql: str, *values: int) -> list[tuple[Any, ...]]:
        return self._database.execute(sql, values or None).fetchall()


def shown_residue(manifest: Manifest) -> dict[str, dict[str, int]]:
    """Resource → residue key → number of records with it, of the tables that are not about people; at most `MOST_KEYS` of a resource."""
    return {
        resource: dict(list(keys.items())[:MOST_KEYS])
        for resource, keys in manifest.residue.items()
        if keys and not is_personal(resource)
    }


def residue_examples(
    data: DataFolder, snapshot: Snapshot, residue: Mapping[str, Mapping[str, int]], workdir: Path
) -> dict[tuple[str, str], list[tuple[int, str]]]:
    """Returns (resource, key) → the first records with that residue key: id and value. DuckDB spills into `workdir`."""
    with data.duckdb("192MB", 2, workdir) as database, reading(snapshot):
        return {
            (resource, key): list(zip(ids, values, strict=True))
            for resource, keys in residue.items()
            for key, ids, values in _examples(database, snapshot, resource, list(keys))
        }


def _examples(
    database: duckdb.DuckDBPyConnection, snapshot: Snapshot, resource: str, keys: list[str]
) -> list[tuple[Any, ...]]:
    facts = snapshot.manifest.tables.get(STAGED[resource][0].name) if resource in STAGED else None
    if facts is None or facts.encrypted:
        return []
    database.execute(f"CREATE OR REPLACE TEMP VIEW held AS FROM {_source(snapshot.sound_address_of(facts))}")
    database.execute("CREATE OR REPLACE TEMP TABLE wanted (key VARCHAR)")
    database.executemany("INSERT INTO wanted VALUES (?)", [[key] for key in keys])
    return database.execute(_sql("residue_examples")).fetchall()


@contextmanager
def open_findings(data: DataFolder, snapshot: Snapshot, workdir: Path) -> Iterator[Findings]:
    """Open the findings of a snapshot with publications. Memory is bounded, however large the snapshot; DuckDB spills into `workdir`."""
    with data.duckdb("192MB", 2, workdir) as database, reading(snapshot):
        for table in (PUBLICATIONS, PUBLICATION_IDENTIFIERS, PUBLICATION_FILES):
            source = _source(snapshot.sound_address_of(snapshot.manifest.tables[table.name]))
            database.execute(f"CREATE TEMP VIEW {table.name.removeprefix('publication_')} AS FROM {source}")
        database.execute(f"SET VARIABLE spelling = [{', '.join(map(literal, SPELLING))}]")
        try:
            database.execute(_sql("findings"))
        except duckdb.BinderException:  # a column is not there
            raise StorageError(
                f"The tables of snapshot {snapshot.manifest.snapshot} were made by another version of Bookferry, and it has no report. "
                "Its raw tables can be read and queried; the next backup has one."
            ) from None
        yield Findings(database, snapshot)


def _source(address: str) -> str:
    return read_parquet([escaped(address)])


def _sql(name: str) -> str:
    return resources.files("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")
