"""Plans for tests: rows and facts with the values that a test needs, and defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import Side, digest
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState
from pipelines.migration.model.plan import ROWS, TARGET, End, FileCounts, Plan, PlanFacts, PlanRow, stored_row
from pipelines.migration.model.plan_folders import seal_plan
from pipelines.migration.model.plan_table import PLAN
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.reasons import REASONS, ReasonKind
from pipelines.migration.model.resource_types import PUBLICATIONS, RESOURCE_TYPES
from pipelines.migration.plan.comparison import write_side
from pipelines.records.batches import batch_of_rows
from pipelines.records.forms import NAMED, form_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.left_out import why_unknown
from pipelines.store.durable import sha256_of
from pipelines.store.parquet import table_writer

TYPES = {PUBLICATIONS: publication_type(STANDARD_KINDS), **RESOURCE_TYPES}
"""How a plan moves its records where nothing is learned."""

IN_ISSUES = frozenset(
    code for code, reason in REASONS.items() if reason.kind not in (ReasonKind.STEPS, ReasonKind.TARGET)
)
"""The codes in the table of issues of a plan."""

OLD, NEW = "https://library.example.org", "https://new.example.org"


def row(source_id: int, action: Action, **values: Any) -> PlanRow:
    empty: dict[str, Any] = {
        "resource": "publications",
        "target_id": None,
        "matched_by": None,
        "title": f"Title {source_id}",
        "payload": {},
        "before": {},
        "expected": {},
        "differing": {},
        "reason": None,
        "candidates": [],
        "files": [],
        "unsent": {},
        "why": {path: why_of(path, value) for path, value in values.get("unsent", {}).items()},
    }
    return PlanRow(source_id=source_id, action=action, **{**empty, **values})


def digests(
    fields: Mapping[str, Any], names: Iterable[str] | None = None, *, resource: str = "publications"
) -> dict[str, str | None]:
    """Name of a field → the digest of its value, as a plan expects it and the journal has it; of all fields by default."""
    compared = TYPES[resource].compared_record(fields)
    return {name: digest(compared.get(name)) for name in names or fields}


def why_of(path: str, value: Any) -> str:
    """The reason why a publication goes without a value, or without an entry of a list."""
    name, bracket, rest = path.partition("[")
    is_entry = bool(bracket) and rest.endswith("]")
    reasons = form_of({name: [value]} if is_entry else {path: value}).why
    return NAMED.get(path) or reasons.get(f"{name}[0]" if is_entry else path) or why_unknown(path, value)


def journal_entry(kind: WriteKind, part: str = "", state: WriteState = WriteState.DONE, **values: Any) -> JournalEntry:
    """A write of a plan that was made earlier."""
    defaults: dict[str, Any] = {
        "number": 1,
        "plan": "earlier",
        "resource": "publications",
        "source_id": 1,
        "target_id": 5,
        "asset_id": None,
        "wanted": {},
        "held": {},
        "status": None,
        "message": None,
        "begun_at": "",
        "ended_at": None,
        "sent_at": None,
    }
    return JournalEntry(kind=kind, part=part, state=state, **{**defaults, **values})


def facts(name: str = "old-to-new-20261121T203000Z", **values: Any) -> PlanFacts:
    empty: dict[str, Any] = {
        "plan": name,
        "tool": "Bookferry 0",
        "created_at": "2026-11-21T20:30:00+00:00",
        "source": End(tenant="old", base_url=OLD, api="v2", snapshot="20261121T200000Z", records={"publications": 5}),
        "target": End(tenant="new", base_url=NEW, api="v3", snapshot="20261121T201000Z", records={"publications": 2}),
        "same_library": False,
        "resources": ["publications"],
        "counts": {},
        "matched_by": {},
        "files": FileCounts(),
        "requests": 60,
        "requests_per_minute": 60,
        "rows_sha256": "",
    }
    return PlanFacts(**{**empty, **values})


def plan_of(
    folder: Path, rows: Iterable[PlanRow] = (), in_target: Iterable[dict[str, Any]] = (), **values: Any
) -> Plan:
    """A sealed plan in a folder. `in_target`: the publications that the target had when it was made."""
    folder.mkdir(parents=True)
    rows = [*rows]
    lines = [*map(stored_row, rows)]
    for resource in {row.resource for row in rows}:
        write_side(Side(folder / TARGET, resource), in_target if resource == PUBLICATIONS else (), TYPES[resource])
    with table_writer(folder / ROWS, PLAN) as writer:
        if lines:
            writer.write(batch_of_rows(PLAN, lines))
    return seal_plan(folder, facts(folder.name, rows_sha256=sha256_of(folder / ROWS), **values))
