"""The findings of a verification, in a table of a database, so that memory does not grow with them (I11)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.comparison_database import append_rows
from pipelines.migration.model.findings import Finding
from pipelines.migration.model.formatting import display_both, value_of
from pipelines.migration.model.reasons import DIFFERING
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.records.batches import Row
from pipelines.records.tables.description import Column, Table
from pipelines.report.issues import safe_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_CHARACTERS = 300
"""Of a text in a finding."""

FILES, COVER = "files", "cover"
"""The field of a finding that is about a file."""

_TEXT, _NUMBER = pa.string(), pa.int64()
FINDINGS = Table(
    "findings",
    "One row for each finding; SQL over publications fills the first columns only, with values as they are compared.",
    (),
    (
        Column("code", _TEXT, "As in a `Finding`.", required=True),
        Column("source_id", _NUMBER, "The record in the source."),
        Column("target_id", _NUMBER, "The record in the target."),
        Column("field", _TEXT, "The field, or `files` or `cover`; empty where it is the record."),
        Column("wanted", _TEXT, "The value in the plan."),
        Column("found", _TEXT, "The value in the target."),
        Column("problem", _TEXT, "What is known of the reason.", required=True),
        Column("resource", _TEXT, "The resource; empty for publications that SQL found."),
        Column("title", _TEXT, "The title of the record."),
        Column("suggestion", _TEXT, "What to do."),
        Column("lacking", pa.bool_(), "Whether the plan could not send it."),
    ),
)

INSERT = "INSERT INTO findings (code, source_id, target_id, field, wanted, found, problem)"
"""How SQL over publications adds findings."""

_row = attrgetter(*(column.name for column in FINDINGS.columns))


class Discrepancies:
    """The findings so far, in the table `findings` of a database. Several threads may add."""

    def __init__(self, database: DuckDBPyConnection) -> None:
        self.database = database
        self._writer = database.cursor()  # the other one may be reading
        self._unwritten: list[Row] = []
        self._lock = threading.Lock()

    def add(self, findings: Iterable[Finding]) -> None:
        """Add some."""
        for finding in findings:
            with self._lock:
                self._unwritten.append(_row(finding))
                if len(self._unwritten) >= STEP:
                    self._flush()

    def _flush(self) -> None:
        rows, self._unwritten = self._unwritten, []
        append_rows(self._writer, FINDINGS, rows)

    def counts(self) -> dict[tuple[str, bool], int]:
        """(code, whether it is about a file) → records, or files, without what the plan could not send.

        A record that differs in several fields counts once.
        """
        with self._lock:
            self._flush()
        rows = self.database.execute(
            "SELECT code, is_file, CASE WHEN is_file OR code <> ? THEN count(*) ELSE count(DISTINCT (resource, source_id)) END "
            "FROM (SELECT *, coalesce(list_contains(?, field), false) AS is_file FROM findings WHERE NOT coalesce(lacking, false)) "
            "GROUP BY code, is_file",
            [DIFFERING, [FILES, COVER]],
        ).fetchall()
        return {(code, is_file): count for code, is_file, count in rows}

    def compared(self) -> int:
        """Publications that should be in the target."""
        (count,) = self.database.cursor().execute("SELECT count(*) FROM checked").fetchone() or (0,)
        return int(count)

    def findings(self, fields: Iterable[str]) -> Iterator[Finding]:
        """Yield all, publications first, and what the plan could not send last. `fields`: those of publications that are compared."""
        compared = frozenset(fields)
        rows = self.database.execute(
            "SELECT f.* REPLACE (coalesce(f.title, p.title) AS title) FROM findings AS f "
            "LEFT JOIN planned AS p ON f.resource IS NULL AND p.source_id = f.source_id "
            "ORDER BY f.lacking NULLS FIRST, f.resource NULLS FIRST, f.source_id NULLS LAST, f.field NULLS FIRST, f.target_id, f.wanted"
        )
        while batch := rows.fetchmany(STEP):
            for row in batch:
                yield _finding(compared, *row)


def _finding(  # noqa: PLR0917  the columns of the table
    compared: frozenset[str],
    code: str,
    source_id: int | None,
    target_id: int | None,
    field: str | None,
    wanted: str | None,
    found: str | None,
    problem: str,
    resource: str | None,
    title: str | None,
    suggestion: str | None,
    lacking: bool | None,
) -> Finding:
    """A row as a finding, with values for display."""
    if resource is None and field is not None and field in compared:
        wanted, found = display_both(field, value_of(wanted), value_of(found), MOST_CHARACTERS)
    return Finding(
        code=code,
        resource=resource or PUBLICATIONS,
        source_id=source_id,
        target_id=target_id,
        title=safe_text(title or "", MOST_CHARACTERS),
        field=field or "",
        wanted=wanted or "",
        found=found or "",
        problem=safe_text(problem, MOST_CHARACTERS),
        suggestion=suggestion or "",
        lacking=bool(lacking),
    )
