"""How far a plan is, from the plan and the journal alone, without a request; and one record as source, plan and target have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.errors import ConfigurationError
from pipelines.humanize import MOST_LISTED
from pipelines.migration.model.comparable import RECORDS, ComparableLibrary, digest
from pipelines.migration.model.formatting import display_text, value_of
from pipelines.migration.model.journal import (
    ASSET,
    COVER,
    DONE,
    INTENDED,
    PARKED,
    RECORD_WRITES,
    REFUSED,
    UNDONE,
    Journal,
    JournalEntry,
)
from pipelines.migration.model.journal import CREATE as CREATED
from pipelines.migration.model.journal import PATCH as PATCHED
from pipelines.migration.model.plan import CREATE, PATCH, ROWS, Plan, PlanRow, plan_row
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.verify.run import MigrationVerification, read_verification, verifications
from pipelines.records.forms import WRITTEN
from pipelines.store.durable import storage_errors

REQUESTS = {CREATED: 1, PATCHED: 1, COVER: 1, ASSET: 2}
"""Of each write that is done, so many are not needed any more: as `files.requests_of` counts them."""


class Work(msgspec.Struct, kw_only=True):
    """Writes of a plan. `files`: attached ones."""

    create: int = 0
    patch: int = 0
    files: int = 0
    covers: int = 0


class StatusProblem(msgspec.Struct, kw_only=True):
    """A write that did not come to its end. `state`: refused, parked (a person must look) or intended (its answer was never seen)."""

    resource: str
    source_id: int
    target_id: int | None
    kind: str
    state: str
    status: int | None
    message: str


class PlanStatus(msgspec.Struct, kw_only=True):
    """How far a plan is."""

    plan: str
    created_at: str
    planned: Work
    done: Work
    refused: int
    parked: int
    unanswered: int
    undone: int
    """Writes that were taken back."""
    requests_left: int
    minutes_left: float
    last_change: str
    """When a write was last begun or answered; empty where none was."""
    problems: list[StatusProblem]
    """The first of what was refused, is parked or was never answered."""
    verification: MigrationVerification | None
    """The last one."""

    @property
    def complete(self) -> bool:
        """Whether all that is planned is written."""
        return self.planned == self.done


class FieldView(msgspec.Struct, kw_only=True):
    """One field, in words. Nothing where a side does not speak of it: a field that is not written, a record that is not there."""

    field: str
    source: str
    wanted: str | None
    held: str | None
    """What the target answered when it was written."""
    live: str | None
    equal: bool
    """Whether the target has what is wanted, as far as anything is."""


class RecordView(msgspec.Struct, kw_only=True):
    """One record as the source has it, as it is wanted, as it was written, and as the target has it now."""

    plan: str
    resource: str
    source_id: int
    target_id: int | None
    action: str
    state: str
    """Of its write: done, refused, ..., or `not written`."""
    message: str
    is_there: bool
    fields: list[FieldView]


def status_of(plan: Plan, journal: Journal) -> PlanStatus:
    """How far a plan is."""
    counts, facts = journal.counts(plan.name), plan.facts
    done = {kind: counts.get((kind, DONE), 0) for kind in REQUESTS}
    planned, written = _planned(plan), _work(done)
    left = (
        0
        if planned == written
        else max(1, facts.requests - sum(REQUESTS[kind] * count for kind, count in done.items()))
    )
    kept = verifications(plan)

    def of(state: str) -> int:
        return sum(count for (_kind, its), count in counts.items() if its == state)

    return PlanStatus(
        plan=plan.name,
        created_at=facts.created_at,
        planned=planned,
        done=written,
        refused=of(REFUSED),
        parked=of(PARKED),
        unanswered=of(INTENDED),
        undone=of(UNDONE),
        requests_left=left,
        minutes_left=left / facts.requests_per_minute,
        last_change=journal.last_change(plan.name),
        problems=[_problem(one) for one in islice(journal.of_plan(plan.name, REFUSED, PARKED, INTENDED), MOST_LISTED)],
        verification=read_verification(kept[-1]) if kept else None,
    )


def three_way(
    plan: Plan, journal: Journal, source_id: int, look: Callable[[str], Mapping[str, str] | None]
) -> RecordView:
    """One publication from all sides. `look`: what a path of the target holds, as it is compared; nothing where nothing is there."""
    row = _row(plan, source_id)
    entry = next(
        (
            one
            for one in reversed(journal.of_record(row.resource, source_id))
            if one.plan == plan.name and one.kind in RECORD_WRITES
        ),
        None,
    )
    target_id = row.target_id if entry is None or entry.target_id is None else entry.target_id
    live = None if target_id is None else look(f"{row.resource}/{target_id}")
    source, before = _side(plan.source, source_id), _side(plan.target, row.target_id)
    return RecordView(
        plan=plan.name,
        resource=row.resource,
        source_id=source_id,
        target_id=target_id,
        action=row.action,
        state=entry.state if entry is not None else "not written",
        message=(entry.message if entry is not None else None) or "",
        is_there=live is not None,
        fields=[_view(name, row, entry, (source.get(name), before.get(name)), live) for name in WRITTEN],
    )


def _view(
    name: str, row: PlanRow, entry: JournalEntry | None, known: Sequence[str | None], live: Mapping[str, str] | None
) -> FieldView:
    """A digest is told by the text that has it; there is no other copy of what was written."""
    shown = None if live is None else live.get(name)

    def words(value: str | None) -> str:
        text = next((one for one in (*known, shown) if digest(one) == value), None)
        return (
            display_text(name, value_of(text))
            if text is not None or value is None
            else "(a value that nobody has any more)"
        )

    held = entry.held if entry is not None else {}
    return FieldView(
        field=name,
        source=display_text(name, value_of(known[0])),
        wanted=words(row.expected[name]) if name in row.expected else None,
        held=words(held[name]) if name in held else None,
        live=None if live is None else display_text(name, value_of(shown)),
        equal=name not in row.expected or (live is not None and digest(shown) == row.expected[name]),
    )


def _planned(plan: Plan) -> Work:
    with plan.reading() as rows:
        found = dict(
            rows.execute('SELECT action, count(coalesce(payload, "references")) FROM file GROUP BY action').fetchall()
        )
    files = plan.facts.files
    return Work(
        create=found.get(CREATE, 0), patch=found.get(PATCH, 0), files=files.upload - files.covers, covers=files.covers
    )


def _work(done: Mapping[str, int]) -> Work:
    return Work(create=done[CREATED], patch=done[PATCHED], files=done[ASSET], covers=done[COVER])


def _problem(one: JournalEntry) -> StatusProblem:
    unseen = "its answer was never seen; applying the plan again looks it up"
    return StatusProblem(
        resource=one.resource,
        source_id=one.source_id,
        target_id=one.target_id,
        kind=one.kind,
        state=one.state,
        status=one.status,
        message=one.message or (unseen if one.state == INTENDED else one.state),
    )


def _row(plan: Plan, source_id: int) -> PlanRow:
    found = [one for one in _rows(plan.path(ROWS), "source_id", source_id) if one["resource"] == PUBLICATIONS]
    if not found:
        raise ConfigurationError(f"Plan {plan.name} has no publication {source_id} of '{plan.facts.source.tenant}'.")
    return plan_row(found[0])


def _side(side: ComparableLibrary, number: int | None) -> dict[str, Any]:
    found = _rows(side.path(RECORDS), "id", number) if number is not None else []
    return found[0] if found else {}


def _rows(path: Path, column: str, number: int) -> list[dict[str, Any]]:
    with storage_errors(path):
        rows: list[dict[str, Any]] = pq.read_table(path, filters=pc.field(column) == number).to_pylist()
        return rows
