"""The findings of a verification: the table of all beside the plan, their number, and the first ones."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import IO

import msgspec

from pipelines.migration.model.findings import Finding, StepResult
from pipelines.migration.model.reasons import DIFFERING
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.records.files import COVER
from pipelines.records.values import RecordId
from pipelines.report.issues import safe_text
from pipelines.report.tables import write_line, write_lines

COLUMNS = ("code", "resource", "record", "in the target", "title", "field", "wanted", "found", "what is known")

MOST_CHARACTERS = 300
"""Of a text in a finding."""

FILES = "files"
"""The field of a finding that is about a file; of one that is about a cover, it is `COVER`."""


def file_finding(
    record: tuple[RecordId, RecordId],
    code: str,
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
    """Writes each finding into a table as it is found, so that memory does not grow with them (I11). Several threads may add."""

    def __init__(self, result: StepResult, table: IO[str]) -> None:
        self._result = result
        self._table = table
        self._lock = threading.Lock()
        self.counts = Counter[tuple[str, bool]]()
        """(code, whether it is about a file) → records, or files, without what the plan could not send.

        Who finds a record that differs counts it here, because it may differ in several fields.
        """
        write_lines(COLUMNS, (), table)

    def add(self, findings: Iterable[Finding]) -> None:
        """Add some."""
        for finding in findings:
            texts = {name: safe_text(getattr(finding, name), MOST_CHARACTERS) for name in ("title", "problem")}
            with self._lock:
                self._add(msgspec.structs.replace(finding, **texts))

    def _add(self, finding: Finding) -> None:
        self._result.add(finding)
        ids = ("" if number is None else number for number in (finding.source_id, finding.target_id))
        values = (finding.title, finding.field, finding.wanted, finding.found)
        message = f"{finding.problem} {finding.suggestion}".strip()
        write_line((finding.code, finding.resource, *ids, *values, message), self._table)
        if finding.lacking:
            return
        is_file = finding.field in {FILES, COVER}
        if is_file or finding.code != DIFFERING:
            self.counts[finding.code, is_file] += 1
