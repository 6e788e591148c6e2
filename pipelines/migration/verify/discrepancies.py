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
from pipelines.migration.model.reasons import DIFFERING
from pipelines.migration.model.resource_types import PUBLICATIONS, WRITING_ORDER
from pipelines.records.batches import Row
from pipelines.records.files import COVER
from pipelines.records.tables.description import Column, Table
from pipelines.report.issues import safe_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_CHARACTERS = 300
"""Of a text in a finding."""

FILES = "files"
"""The field of a finding that is about a file; of one that is about a cover, it is `COVER`."""

_TEXT, _NUMBER = pa.string(), pa.int64()
FINDINGS = Table(
    "findings",
    "One row for each finding; SQL leaves the last columns empty.",
    (),
    (
        Column("code", _TEXT, "As in a `Finding`.", required=True),
        Column("resource", _TEXT, "The resource.", required=True),
        Column("source_id", _NUMBER, "The record in the source."),
        Column("target_id", _NUMBER, "The record in the target."),
        Column("field", _TEXT, "The field, or `files` or `cover`; empty where it is the record."),
        Column("wanted", _TEXT, "The value in the plan."),
        Column("found", _TEXT, "The value in the target."),
        Column("problem", _TEXT, "What is known of the reason.", required=True),
        Column("title", _TEXT, "The title of the record."),
        Column("suggestion", _TEXT, "What to do."),
        Column("lacking", pa.bool_(), "Whether the plan could not send it."),
    ),
)

INSERT = "INSERT INTO findings (code, resource, source_id, target_id, problem, title)"
"""How SQL adds findings on records."""

_row = attrgetter(*(column.name for column in FINDINGS.columns))


def file_finding(
    code: str, record: tuple[int, int], kind: str, texts: tuple[str, str], problem: str, *, lacking: bool = False
) -> Finding:
    """A finding on a file. `record`: its ids in the source and in the target; `texts`: the planned file, and the one that is there."""
    return Finding(
        code=code,
        resource=PUBLICATIONS,
        source_id=record[0],
        target_id=record[1],
        field=COVER if kind == COVER else FILES,
        wanted=texts[0],
        found=texts[1],
        problem=problem,
        lacking=lacking,
    )


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

    def findings(self) -> Iterator[Finding]:
        """Yield all, publications first, and what the plan could not send last."""
        rows = self.database.execute(
            "SELECT * FROM findings ORDER BY lacking NULLS FIRST, resource <> ?, list_position(?, resource), source_id NULLS LAST, "
            "field NULLS FIRST, target_id, wanted",
            [PUBLICATIONS, list(WRITING_ORDER)],
        )
        names = [column.name for column in FINDINGS.columns]
        while batch := rows.fetchmany(STEP):
            for row in batch:
                values = {name: value for name, value in zip(names, row, strict=True) if value is not None}
                texts = {name: safe_text(values.get(name, ""), MOST_CHARACTERS) for name in ("title", "problem")}
                yield Finding(**{**values, **texts})
