"""The findings of a plan: one pass over its rows, for its page, its tables of issues, its status and its verification.

DuckDB selects the rows and their needed columns. Every text of a record is made safe to display (I10).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from pipelines.migration.model.actions import PRESENT_ACTIONS, Action, FileAction
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.findings import Finding, StepResult
from pipelines.migration.model.formatting import differences, display_both, target_numbers, value_of
from pipelines.migration.model.journal import RECORD_WRITES, Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteState
from pipelines.migration.model.plan import Plan, PlanRow, plan_row
from pipelines.migration.model.reasons import FILE, REASONS, Reason, ReasonKind, reason_of, reason_unsent
from pipelines.records.advice import field_name
from pipelines.records.files import COVER
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import compact_json
from pipelines.report.issues import safe_text
from pipelines.report.rendering import NOT_SHOWN, names_a_person
from pipelines.report.tables import CACHED_TEXTS

MOST_NUMBERS = 20
"""Of a reference to several records."""

_ROWS = f"""
    SELECT * EXCLUDE (payload, before, expected, "references", "after")
    FROM file
    WHERE action IN ('{Action.CONFLICT}', '{Action.QUARANTINED}') OR unsent IS NOT NULL OR kept IS NOT NULL
        OR files LIKE '%"{FileAction.MISSING}"%' OR files LIKE '%"kept":%'
"""  # noqa: S608  our own words

_show = lru_cache(CACHED_TEXTS)(safe_text)
_reason = lru_cache(CACHED_TEXTS)(reason_unsent)


def findings_of(plan: Plan) -> Iterator[Finding]:
    """Yield what a plan cannot send, asks about, or knows to be kept otherwise, in the order of its rows.

    Records without an id are in `PlanFacts.unfit` only.
    """
    with plan.reading() as database:
        for batch in database.sql(_ROWS).to_arrow_reader(STEP):
            for row in batch.to_pylist():
                yield from _findings_of_row(plan_row(row))


def add_lacking(result: StepResult, plan: Plan, journal: Journal) -> None:
    """Add what a plan could not send, and what the service did not keep of its writes: a finished write has a message for that."""
    not_moved = plan.facts.not_moved
    result.lacking = msgspec.structs.replace(not_moved.lacking)
    result.findings += not_moved.first
    for entry in journal.of_plan(plan.name, WriteState.DONE, with_message=True):
        field = "" if entry.kind in RECORD_WRITES else entry.kind
        result.add(finding_of(entry, "kept_otherwise", field=field, lacking=True))


def finding_of(entry: JournalEntry, code: str, **values: Any) -> Finding:
    """A finding on a write."""
    record = {name: getattr(entry, name) for name in ("resource", "source_id", "target_id")}
    reason = REASONS[code]
    return Finding(
        code=code, problem=entry.message or reason.problem, suggestion=reason.suggestion, **(record | values)
    )


def _findings_of_row(row: PlanRow) -> Iterator[Finding]:
    """Yield those of one row. Of a record that cannot be sent, or is not to be, nothing else is lacking."""
    if row.action in (Action.CONFLICT, Action.QUARANTINED):
        yield _unwritten(row)
    is_present = row.action in PRESENT_ACTIONS
    if row.kept:
        problem = f"{_kept_fields(row)} {REASONS['kept_otherwise'].problem}"
        yield _finding(row, REASONS["kept_otherwise"], problem=problem, lacking=True)
    for path, value in row.unsent.items():
        yield _unsent(row, path, value, is_present=is_present)
    for file in row.files:
        name = _show(file.filename or file.name or "")
        if file.action == FileAction.MISSING:
            problem = _show(file.problem or "")
            yield _finding(row, REASONS[FILE], file.kind, name, problem=problem, lacking=is_present)
        elif file.kept:
            noun = file.kind if file.kind == COVER else "file"
            problem = f"The {noun} {name}: the service keeps another {file.kept} than was sent."
            yield _finding(row, REASONS["kept_otherwise"], problem=problem, lacking=True)


def _finding(
    row: PlanRow, reason: Reason, field: str = "", wanted: str = "", problem: str = "", *, lacking: bool = False
) -> Finding:
    texts = {"field": field, "wanted": wanted, "suggestion": reason.suggestion}
    return row.finding(reason.code, problem or reason.problem, **texts, lacking=lacking)


def _unwritten(row: PlanRow) -> Finding:
    """The finding of a conflict, or of a record that cannot be sent."""
    is_shown = row.differing and row.resource not in PERSONAL
    candidates = row.candidates if row.target_id is None else [row.target_id]
    details = differences(row.differing) if is_shown else target_numbers(candidates)
    names = ", ".join(field_name(_show(name)) for name in row.differing)
    return _finding(row, reason_of(row.reason, row.resource), names, details, lacking=row.action == Action.QUARANTINED)


def _unsent(row: PlanRow, path: str, value: Any, *, is_present: bool) -> Finding:
    """The finding of a value. Of a reference it has the numbers, because the rest may name a person."""
    text = value if isinstance(value, str) else None
    reason = _reason(row.why[path], path, text)
    is_reference = reason.kind == ReasonKind.REFERENCES
    shown = _numbers(value) if is_reference else ""
    if not shown and (row.resource in PERSONAL or names_a_person(path)):
        shown = NOT_SHOWN
    elif not shown:
        shown = _show(compact_json(value) if text is None else text)
    return _finding(row, reason, _show(path), shown, lacking=is_present and is_reference)


def _numbers(value: object) -> str:
    """The numbers of a reference; empty where it has none."""
    if isinstance(value, dict):
        value = value.get("id")
    if isinstance(value, list):
        return ", ".join(filter(None, map(_numbers, value[:MOST_NUMBERS])))
    return str(value) if isinstance(value, int) else ""


def _kept_fields(row: PlanRow) -> str:
    """What the service keeps otherwise of a record: each field with both values; of a person only the names of fields."""
    if row.resource in PERSONAL:
        return f"{', '.join(row.kept)}."
    texts = (
        f"{safe_text(name)}: «{kept}» for «{sent}»"
        for name, values in row.kept.items()
        for sent, kept in [display_both(name, *map(value_of, values))]
    )
    return f"{'; '.join(texts)}."
