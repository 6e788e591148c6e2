"""What there is to tell of the staged tables of one snapshot: verdicts, residue, duplicates, missing files; the numbers and each finding.

All of it happens in DuckDB over the Parquet files, which spills to disk, so that a million records are no Python objects (I11). Nothing of
the people who use the library is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec

from pipelines.records.identifiers.verdicts import VERDICTS
from pipelines.records.tables.publications import PUBLICATION_FILES, PUBLICATION_IDENTIFIERS, PUBLICATIONS
from pipelines.records.tables.registry import PERSONAL, STAGED
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import exactly, read_parquet
from pipelines.store.snapshots.captures import FileTotals
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

MOST_FIELDS = 30
"""Fields of identifiers that are told one by one: version 3 takes any text as the type of one (I13)."""

MOST_RULES = 1000
"""Pairs of a rule and a field, likewise."""

MOST_KEYS = 200
"""Residue keys of a resource that are told one by one."""

MOST_KINDS = 12
"""Kinds of publications that are told one by one."""

OTHERS = "(others)"

FINDINGS = (
    "failed_files",
    "not_identifiers",
    "same_identifiers",
    "same_titles_and_years",
    "without_title",
    "without_readable_date",
    "mended",
)
"""Views of sql/findings.sql with a row for each finding, the most urgent first."""

_LATER = {
    PUBLICATION_IDENTIFIERS.name: ("value", "verdict", "rule"),
    PUBLICATION_FILES.name: ("status", "problem"),
    PUBLICATIONS.name: (),
}
"""Table → columns of text that snapshots of before do not have; there they are empty."""


class Verdicts(msgspec.Struct):
    """How many values of one field have which verdict."""

    valid: int = 0
    repaired: int = 0
    invalid: int = 0
    unrecognised: int = 0

    @property
    def total(self) -> int:
        """All values of the field."""
        return sum(getattr(self, one) for one in VERDICTS)


class Holding(msgspec.Struct):
    """Publications of one kind, and how many of them have no identifier that is one."""

    publications: int
    without_identifier: int


class Duplicates(msgspec.Struct):
    """How many groups of records seem to be of one publication, and how many records are in them."""

    groups: int
    records: int


class Figures(msgspec.Struct, kw_only=True):
    """The numbers of a report. Everything that comes from a library is bounded."""

    publications: int
    without_identifier: int
    """Publications without any identifier that is valid or repaired."""
    without_date: int
    year_or_month: int
    """Publications whose date is only a year or a month."""
    holdings: dict[str, Holding]
    identifiers: int
    judged: bool
    """False for a snapshot of before identifiers were judged."""
    verdicts: dict[str, Verdicts]
    rules: dict[str, dict[str, int]]
    """Rule → field → values."""
    same_identifier: Duplicates
    same_title_and_year: Duplicates
    files: FileTotals
    residue: dict[str, dict[str, int]]
    """Resource → residue key → in how many records."""


class DuplicateGroup(NamedTuple):
    """Some records that seem to be of one publication: what they share, how many they are, and the first ids."""

    type: str
    """Of the identifier; the year, where title and year are the same."""
    value: str
    records: int
    first_records: list[int]
    title: str | None


class IdentifierFinding(NamedTuple):
    """One row that is worth a line. `kind` is file, a verdict, shared, same_title, no_title or no_date; the texts come from outside."""

    kind: str
    record: int | None
    field: str
    type: str
    value: str
    becomes: str
    """What an identifier is brought to."""
    detail: str
    """Rules, a year, or what is wrong with a file."""
    records: list[int]
    many: int


class Findings:
    """An open look at the tables of one snapshot."""

    def __init__(self, database: duckdb.DuckDBPyConnection, snapshot: Snapshot, *, judged: bool) -> None:
        self._database = database
        self._snapshot = snapshot
        self._judged = judged

    def figures(self) -> Figures:
        """The numbers."""
        manifest = self._snapshot.manifest
        totals = dict(zip(_TOTALS, self._rows("SELECT * FROM totals")[0], strict=True))
        return Figures(
            publications=totals["publications"],
            without_identifier=totals["without_identifier"],
            without_date=totals["without_date"],
            year_or_month=totals["year_or_month"],
            holdings=_bounded_holdings(self._rows("SELECT * FROM holdings")),
            identifiers=totals["identifiers"],
            judged=self._judged,
            verdicts=self._verdicts() if self._judged else {},
            rules=self._rules(),
            same_identifier=Duplicates(totals["shared"], totals["shared_records"]),
            same_title_and_year=Duplicates(totals["same_titles"], totals["same_titled_records"]),
            files=msgspec.structs.replace(manifest.files, failures=[]),
            residue={
                resource: dict(list(keys.items())[:MOST_KEYS])
                for resource, keys in manifest.residue.items()
                if keys and resource not in PERSONAL
            },
        )

    def each(self) -> Iterator[IdentifierFinding]:
        """Every finding, the most urgent first; they are not in memory as a whole."""
        for view in FINDINGS:
            answer = self._database.execute(f"SELECT * FROM {view}")  # noqa: S608  a name of ours
            yield from (IdentifierFinding(*row) for rows in iter(lambda: answer.fetchmany(1000), []) for row in rows)  # noqa: B023  used up here

    def shared_identifiers(self) -> list[DuplicateGroup]:
        """The largest groups of records with the same identifier."""
        return [DuplicateGroup(*row) for row in self._rows("SELECT * FROM shared_examples")]

    def same_titles(self) -> list[DuplicateGroup]:
        """The largest groups of records with the same title and year."""
        return [DuplicateGroup(*row) for row in self._rows("SELECT * FROM title_examples")]

    def residue_examples(
        self, residue: Mapping[str, Mapping[str, int]]
    ) -> dict[tuple[str, str], list[tuple[int, str]]]:
        """Resource and key → the first records that have it, and what they have there."""
        return {
            (resource, key): list(zip(ids, values, strict=True))
            for resource, keys in residue.items()
            for key, ids, values in self._examples(resource, list(keys))
        }

    def _examples(self, resource: str, keys: list[str]) -> list[tuple[Any, ...]]:
        facts = self._snapshot.manifest.tables.get(STAGED[resource][0].name) if resource in STAGED else None
        if facts is None or facts.encrypted:
            return []
        self._database.execute(f"CREATE OR REPLACE TEMP VIEW held AS FROM {_source(self._snapshot.address_of(facts))}")
        self._database.execute("CREATE OR REPLACE TEMP TABLE wanted (key VARCHAR)")
        self._database.executemany("INSERT INTO wanted VALUES (?)", [[key] for key in keys])
        return self._rows(_sql("residue_examples"))

    def _verdicts(self) -> dict[str, Verdicts]:
        found: dict[str, Verdicts] = {}
        for field, *counts in self._rows("SELECT * FROM verdicts"):
            name = field if len(found) < MOST_FIELDS else OTHERS
            before = msgspec.structs.astuple(found.get(name, Verdicts()))
            found[name] = Verdicts(*(one + more for one, more in zip(before, counts, strict=True)))
        return found

    def _rules(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for field, rule, values in self._rows("SELECT * FROM rules LIMIT ?", MOST_RULES):
            found.setdefault(rule, {})[field] = values
        return found

    def _rows(self, sql: str, *values: int) -> list[tuple[Any, ...]]:
        return self._database.execute(sql, values or None).fetchall()


_TOTALS = (
    "publications",
    "without_identifier",
    "identifiers",
    "without_date",
    "year_or_month",
    "shared",
    "shared_records",
    "same_titles",
    "same_titled_records",
)


@contextmanager
def open_findings(data: DataFolder, snapshot: Snapshot, room: Path) -> Iterator[Findings]:
    """Look at a snapshot that holds publications, with no more memory than this however large it is; what is spilled goes into `room`."""
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "384MB",
        "threads": 2,
        "preserve_insertion_order": False,
        "temp_directory": str(room),
    }
    with storage_errors(snapshot.address), duckdb.connect(config=limits) as database:
        data.objects.attach(database)
        lacking = {name: _show(database, snapshot, name) for name in _LATER}
        database.execute(_sql("findings"))
        yield Findings(database, snapshot, judged="verdict" not in lacking[PUBLICATION_IDENTIFIERS.name])


def _show(database: duckdb.DuckDBPyConnection, snapshot: Snapshot, table: str) -> list[str]:
    """Make one table a view, without the first word of its name if it has several; the columns that it lacks are told."""
    source = _source(snapshot.address_of(snapshot.manifest.tables[table]))
    there = {row[0] for row in database.execute(f"DESCRIBE FROM {source}").fetchall()}
    lacking = [name for name in _LATER[table] if name not in there]
    columns = ", ".join(["*", *(f"NULL::VARCHAR AS {name}" for name in lacking)])
    view = table.removeprefix("publication_")
    database.execute(f"CREATE TEMP VIEW {view} AS SELECT {columns} FROM {source}")  # noqa: S608  names of ours
    return lacking


def _source(address: str) -> str:
    return read_parquet([exactly(address)])


def _bounded_holdings(rows: list[tuple[str, int, int]]) -> dict[str, Holding]:
    found: dict[str, Holding] = {}
    for kind, publications, without in rows:
        name = kind if len(found) < MOST_KINDS else OTHERS
        before = found.get(name, Holding(0, 0))
        found[name] = Holding(before.publications + publications, before.without_identifier + without)
    return found


def _sql(name: str) -> str:
    return resources.files("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")
