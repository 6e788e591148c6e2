"""The differences that a verification finds, in a table of a database, so that memory does not grow with them (I11)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.comparison_database import append_rows
from pipelines.records.batches import Row
from pipelines.records.tables.description import Column, Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MISSING, DIFFERING, DUPLICATED, UNREAD = "missing", "differing", "duplicated", "unread"
"""Problems. Unread: the bytes of a file could not be fetched, so that nothing is proved of them."""

LACKING = "lacking"
"""A missing file that the plan could not send."""

FILES, COVER = "files", "cover"
"""The field of a discrepancy that is about a file."""

_TEXT, _NUMBER = pa.string(), pa.int64()
FINDINGS = Table(
    "findings",
    "One row for each difference between a plan and the target.",
    (),
    (
        Column("problem", _TEXT, "missing, differing, duplicated, unread or lacking.", required=True),
        Column("source_id", _NUMBER, "The record in the source."),
        Column("target_id", _NUMBER, "The record in the target."),
        Column("field", _TEXT, "The field, or `files` or `cover`; empty where it is the record."),
        Column("wanted", _TEXT, "The value in the plan, in the form in which it is compared."),
        Column("found", _TEXT, "The value in the target."),
        Column("why", _TEXT, "What is known of the reason.", required=True),
    ),
)


class Discrepancy(NamedTuple):
    """A row of `FINDINGS`."""

    problem: str
    source_id: int | None
    target_id: int | None
    field: str | None
    wanted: str | None
    found: str | None
    why: str


class Discrepancies:
    """The differences found so far, in the table `findings` of a database. Several threads may add."""

    def __init__(self, database: DuckDBPyConnection) -> None:
        self.database = database
        self._writer = database.cursor()  # the other one may be reading
        self._unwritten: list[Row] = []
        self._lock = threading.Lock()

    def add(self, discrepancies: Iterable[Discrepancy]) -> None:
        """Add some."""
        with self._lock:
            self._unwritten += discrepancies
            if len(self._unwritten) >= STEP:
                self._flush()

    def _flush(self) -> None:
        rows, self._unwritten = self._unwritten, []
        append_rows(self._writer, FINDINGS, rows)

    def counts(self) -> dict[tuple[str, bool], int]:
        """(problem, whether it is about a file) → records, or files. A record that differs in several fields counts once."""
        with self._lock:
            self._flush()
        rows = self.database.execute(
            "SELECT problem, is_file, CASE WHEN is_file OR problem <> ? THEN count(*) ELSE count(DISTINCT source_id) END "
            "FROM (SELECT *, coalesce(list_contains(?, field), false) AS is_file FROM findings) GROUP BY problem, is_file",
            [DIFFERING, [FILES, COVER]],
        ).fetchall()
        return {(problem, is_file): count for problem, is_file, count in rows}

    def count_lacking_files(self) -> tuple[int, int]:
        """The attached files and the covers that the plan could not send and that are not in the target."""
        counts = dict(
            self.database.execute(
                "SELECT field, count(*) FROM findings WHERE problem = ? GROUP BY field", [LACKING]
            ).fetchall()
        )
        return counts.get(FILES, 0), counts.get(COVER, 0)

    def compared(self) -> int:
        """Records that should be in the target."""
        (count,) = self.database.cursor().execute("SELECT count(*) FROM checked").fetchone() or (0,)
        return int(count)

    def with_titles(self) -> Iterator[tuple[Discrepancy, str | None]]:
        """Each with the title of its record, in the order of the ids in the source."""
        rows = self.database.execute(
            "SELECT f.*, p.title FROM findings AS f LEFT JOIN planned AS p ON p.source_id = f.source_id "
            "ORDER BY f.source_id NULLS LAST, f.field NULLS FIRST, f.target_id, f.wanted"
        )
        while batch := rows.fetchmany(STEP):
            for *row, title in batch:
                yield Discrepancy(*row), title
