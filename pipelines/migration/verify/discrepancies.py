"""The findings of a verification, in a table of a database, so that memory does not grow with them (I11)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.comparison_database import append_rows, create_table, scratch_table
from pipelines.migration.model.findings import Finding
from pipelines.migration.model.reasons import DIFFERING
from pipelines.migration.model.resource_types import PUBLICATIONS, WRITING_ORDER
from pipelines.records.batches import Row
from pipelines.records.files import COVER
from pipelines.records.values import RecordId, record_id
from pipelines.report.issues import safe_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_CHARACTERS = 300
"""Of a text in a finding."""

FILES = "files"
"""The field of a finding that is about a file; of one that is about a cover, it is `COVER`."""

FINDINGS = scratch_table("findings", dict.fromkeys(Finding.__struct_fields__, pa.string()) | {"lacking": pa.bool_()})
"""The findings; SQL leaves some columns empty."""

INSERT = "INSERT INTO findings (code, resource, source_id, target_id, problem, title)"
"""How SQL adds findings on records."""


def file_finding(
    code: str,
    record: tuple[RecordId, RecordId],
    kind: str,
    texts: tuple[str, str],
    problem: str,
    *,
    lacking: bool = False,
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
        create_table(database, FINDINGS)
        self._writer = database.cursor()  # the other one may be reading
        self._unwritten: list[Row] = []
        self._lock = threading.Lock()

    def add(self, findings: Iterable[Finding]) -> None:
        """Add some."""
        for finding in findings:
            with self._lock:
                self._unwritten.append(msgspec.structs.astuple(finding))
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
            "SELECT * FROM findings ORDER BY lacking NULLS FIRST, resource <> ?, list_position(?, resource), "
            "length(source_id) NULLS LAST, source_id, field NULLS FIRST, target_id, wanted",
            [PUBLICATIONS, list(WRITING_ORDER)],
        )
        while batch := rows.fetchmany(STEP):
            for row in batch:
                values = {
                    name: value for name, value in zip(FINDINGS.schema.names, row, strict=True) if value is not None
                }
                texts = {name: safe_text(values.get(name, ""), MOST_CHARACTERS) for name in ("title", "problem")}
                ids = {name: record_id(values.get(name)) for name in ("source_id", "target_id")}
                yield Finding(**{**values, **texts, **ids})
