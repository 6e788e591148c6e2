"""The findings of a plan: one pass over its rows, for its page, its tables of issues, its status and its verification.

DuckDB selects the rows, and only their needed columns are decoded. Every text of a record is made safe to display (I10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from pipelines.migration.model.actions import PRESENT_ACTIONS, Action, FileAction
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.findings import Finding, StepResult
from pipelines.migration.model.formatting import differences, display_both, target_numbers, value_of
from pipelines.migration.model.journal import RECORD_WRITES, Journal
from pipelines.migration.model.journal_entries import WriteState
from pipelines.migration.model.plan import Plan, PlannedFile
from pipelines.migration.model.reasons import FILE, REASONS, Kind, Reason, reason_of, reason_unsent
from pipelines.records.advice import field_name
from pipelines.records.files import COVER
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import compact_json
from pipelines.report.issues import safe_text
from pipelines.report.rendering import NOT_SHOWN, names_a_person
from pipelines.report.tables import CACHED_TEXTS

MOST_NUMBERS = 20
"""Of a reference to several records."""

_FILES = msgspec.json.Decoder(list[PlannedFile])

_ROWS = f"""
    SELECT
        resource, source_id, target_id, action, title, reason, candidates, differing, unsent, why, kept,
        CASE WHEN files LIKE '%"{FileAction.MISSING}"%' OR files LIKE '%"kept":%' THEN files END AS files
    FROM file
    WHERE action IN ('{Action.CONFLICT}', '{Action.QUARANTINED}') OR unsent IS NOT NULL OR kept IS NOT NULL
        OR files LIKE '%"{FileAction.MISSING}"%' OR files LIKE '%"kept":%'
"""  # noqa: S608  our own words


def findings_of(plan: Plan) -> Iterator[Finding]:
    """Yield what a plan cannot send, asks about, or knows to be kept otherwise, in the order of its rows.

    Records without an id are in `PlanFacts.unfit` only.
    """
    findings = _RowFindings()
    with plan.reading() as database:
        for batch in database.sql(_ROWS).to_arrow_reader(STEP):
            for row in batch.to_pylist():
                yield from findings.of_row(row)


def add_lacking(result: StepResult, plan: Plan, journal: Journal) -> None:
    """Add what a plan could not send, and what the service did not keep of its writes: a finished write has a message for that."""
    not_moved = plan.facts.not_moved
    result.lacking = msgspec.structs.replace(not_moved.lacking)
    result.findings += not_moved.first
    columns = ("state", "message", "resource", "source_id", "target_id", "kind")
    entries: Iterable[tuple[Any, ...]] = journal.columns_of_plan(plan.name, columns)
    for state, message, resource, source_id, target_id, kind in entries:
        if state == WriteState.DONE and message:
            finding = Finding(
                code="kept_otherwise",
                resource=resource,
                source_id=source_id,
                target_id=target_id,
                field="" if kind in RECORD_WRITES else kind,
                problem=message,
                suggestion=REASONS["kept_otherwise"].suggestion,
                lacking=True,
            )
            result.add(finding)


class _RowFindings:
    """Makes the findings of rows. Repeated values and texts are cached."""

    def __init__(self) -> None:
        self._show = lru_cache(CACHED_TEXTS)(safe_text)
        self._reason = lru_cache(CACHED_TEXTS)(reason_unsent)

    def of_row(self, row: Mapping[str, Any]) -> Iterator[Finding]:
        """Yield those of one row. Of a record that cannot be sent, or is not to be, nothing else is lacking."""
        if row["action"] in (Action.CONFLICT, Action.QUARANTINED):
            yield self._unwritten(row)
        is_present = row["action"] in PRESENT_ACTIONS
        if row["kept"]:
            problem = f"{_kept_fields(row)} {REASONS['kept_otherwise'].problem}"
            yield self._finding(row, REASONS["kept_otherwise"], problem=problem, lacking=True)
        if row["unsent"]:
            why = msgspec.json.decode(row["why"])
            for path, value in msgspec.json.decode(row["unsent"]).items():
                yield self._unsent(row, path, value, why[path], is_present=is_present)
        if row["files"]:
            for file in _FILES.decode(row["files"]):
                if file.action == FileAction.MISSING:
                    name = self._show(file.filename or file.name or "")
                    problem = self._show(file.problem or "")
                    yield self._finding(row, REASONS[FILE], file.kind, name, problem=problem, lacking=is_present)
                elif file.kept:
                    yield self._kept_file(row, file)

    def _finding(
        self,
        row: Mapping[str, Any],
        reason: Reason,
        field: str = "",
        wanted: str = "",
        problem: str = "",
        *,
        lacking: bool = False,
    ) -> Finding:
        return Finding(
            code=reason.code,
            resource=row["resource"],
            source_id=row["source_id"],
            target_id=row["target_id"],
            title="" if row["resource"] in PERSONAL else self._show(row["title"] or ""),
            field=field,
            wanted=wanted,
            problem=problem or reason.problem,
            suggestion=reason.suggestion,
            lacking=lacking,
        )

    def _unwritten(self, row: Mapping[str, Any]) -> Finding:
        """The finding of a conflict, or of a record that cannot be sent."""
        fields = msgspec.json.decode(row["differing"]) if row["differing"] else {}
        candidates = msgspec.json.decode(row["candidates"]) if row["candidates"] else []
        if row["target_id"] is not None:
            candidates = [row["target_id"]]
        is_shown = fields and row["resource"] not in PERSONAL
        details = differences(fields) if is_shown else target_numbers(candidates)
        names = ", ".join(field_name(self._show(name)) for name in fields)
        reason = reason_of(row["reason"], row["resource"])
        return self._finding(row, reason, names, details, lacking=row["action"] == Action.QUARANTINED)

    def _unsent(self, row: Mapping[str, Any], path: str, value: Any, why: str, *, is_present: bool) -> Finding:
        """The finding of a value. Of a reference it has the numbers, because the rest may name a person."""
        text = value if isinstance(value, str) else None
        reason = self._reason(why, path, text)
        is_reference = reason.kind == Kind.REFERENCES
        shown = _numbers(value) if is_reference else ""
        if not shown and (row["resource"] in PERSONAL or names_a_person(path)):
            shown = NOT_SHOWN
        elif not shown:
            shown = self._show(compact_json(value) if text is None else text)
        return self._finding(row, reason, self._show(path), shown, lacking=is_present and is_reference)

    def _kept_file(self, row: Mapping[str, Any], file: PlannedFile) -> Finding:
        name = self._show(file.filename or file.name or "")
        noun = file.kind if file.kind == COVER else "file"
        problem = f"The {noun} {name}: the service keeps another {file.kept} than was sent."
        return self._finding(row, REASONS["kept_otherwise"], problem=problem, lacking=True)


def _numbers(value: object) -> str:
    """The numbers of a reference; empty where it has none."""
    if isinstance(value, dict):
        value = value.get("id")
    if isinstance(value, list):
        return ", ".join(filter(None, map(_numbers, value[:MOST_NUMBERS])))
    return str(value) if isinstance(value, int) else ""


def _kept_fields(row: Mapping[str, Any]) -> str:
    """What the service keeps otherwise of a record: each field with both values; of a person only the names of fields."""
    fields = msgspec.json.decode(row["kept"])
    if row["resource"] in PERSONAL:
        return f"{', '.join(fields)}."
    texts = (
        f"{safe_text(name)}: «{kept}» for «{sent}»"
        for name, values in fields.items()
        for sent, kept in [display_both(name, *map(value_of, values))]
    )
    return f"{'; '.join(texts)}."
