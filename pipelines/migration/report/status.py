"""The status of a plan, from the plan and the journal, without a request; and one record in the source, the plan and the target."""

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
from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import RECORDS, ComparableLibrary, column_of, digest
from pipelines.migration.model.formatting import display_text, value_of
from pipelines.migration.model.journal import RECORD_WRITES, Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState
from pipelines.migration.model.lacking import Lacking, lacking_of
from pipelines.migration.model.plan import ROWS, Plan, PlanRow, plan_row
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.verify.verdict import MigrationVerification, read_verification, verifications
from pipelines.store.durable import storage_errors

REQUESTS = {
    WriteKind.CREATE: 1,
    WriteKind.PATCH: 1,
    WriteKind.ADOPT: 1,
    WriteKind.LINK: 1,
    WriteKind.MERGE: 1,
    WriteKind.COVER: 1,
    WriteKind.ASSET: 2,
}
"""Requests of each kind of write, as `files.requests_of` counts them; an adoption takes the place of a create."""

_FIRST_WRITES = f"""
    SELECT action, count(*) FROM file
    WHERE payload IS NOT NULL
        OR ("references" IS NOT NULL AND action = '{Action.CREATE}')
        OR len(json_keys("references")) > len(json_extract("references", '$.*.later'))
    GROUP BY action
"""  # noqa: S608  our own words
"""The rows that send fields of a record with its first request."""

_LINKS = f"""
    SELECT count(*) FROM file
    WHERE len(json_extract("references", '$.*.later')) > 0 AND action IN ('{Action.CREATE}', '{Action.PATCH}')
"""  # noqa: S608

_UNFINISHED = (WriteState.REFUSED, WriteState.PARKED, WriteState.INTENDED)


class Work(msgspec.Struct, kw_only=True):
    """Writes of a plan. `create`: adopted records, too. `merge`: records that are merged into others. `files`: attached files.

    `links`: records whose references are set after those to which they lead are created.
    """

    create: int = 0
    patch: int = 0
    links: int = 0
    merge: int = 0
    files: int = 0
    covers: int = 0


class StatusProblem(msgspec.Struct, kw_only=True):
    """A write that is not done. `state`: refused, parked (a person must look) or intended (the response was lost)."""

    resource: str
    source_id: int
    target_id: int | None
    kind: WriteKind
    state: WriteState
    status: int | None
    message: str


class PlanStatus(msgspec.Struct, kw_only=True):
    """The status of a plan."""

    plan: str
    created_at: str
    planned: Work
    done: Work
    adopted: int
    """Records that the plan would create and the service had made itself."""
    refused: int
    parked: int
    unanswered: int
    undone: int
    """Writes that were taken back."""
    requests_left: int
    minutes_left: float
    last_change: str
    """The moment at which a write was last begun or settled; empty where there is none."""
    problems: list[StatusProblem]
    """The first writes that were refused, are parked or have a lost response."""
    undecided: int
    """Records that wait for a person's decision."""
    lacking: Lacking
    """What the plan could not send, and what the service did not keep of the writes so far."""
    verification: MigrationVerification | None
    """The last one."""

    @property
    def written(self) -> bool:
        """Whether all planned writes are done."""
        return self.planned == self.done

    @property
    def complete(self) -> bool:
        """Whether all planned writes are done, nothing is lacking, and nothing waits for a decision."""
        return self.written and not self.lacking.total and not self.undecided


class FieldView(msgspec.Struct, kw_only=True):
    """One field, as display text; none where a field is not written or a record does not exist."""

    field: str
    source: str
    wanted: str | None
    held: str | None
    """The value in the target right after the write."""
    live: str | None
    equal: bool
    """Whether the target has the wanted value, if there is one."""


class RecordView(msgspec.Struct, kw_only=True):
    """One record in the source, in the plan, right after the write, and in the target now."""

    plan: str
    resource: str
    source_id: int
    target_id: int | None
    action: str
    state: str
    """The state of its write: done, refused, ..., or `not written`."""
    message: str
    is_there: bool
    fields: list[FieldView]


def status_of(plan: Plan, journal: Journal) -> PlanStatus:
    """The status of a plan."""
    counts, facts = journal.counts(plan.name), plan.facts
    done = {kind: counts.get((kind, WriteState.DONE), 0) for kind in REQUESTS}
    planned, written = _planned(plan), _work(done)
    remaining = (
        0
        if planned == written
        else max(1, facts.requests - sum(REQUESTS[kind] * count for kind, count in done.items()))
    )
    stored = verifications(plan)

    def of(state: WriteState) -> int:
        return sum(count for (_kind, its), count in counts.items() if its == state)

    return PlanStatus(
        plan=plan.name,
        created_at=facts.created_at,
        planned=planned,
        done=written,
        adopted=done[WriteKind.ADOPT],
        refused=of(WriteState.REFUSED),
        parked=of(WriteState.PARKED),
        unanswered=of(WriteState.INTENDED),
        undone=of(WriteState.UNDONE),
        requests_left=remaining,
        minutes_left=remaining / facts.requests_per_minute,
        last_change=journal.last_change(plan.name),
        problems=[_problem(entry) for entry in islice(journal.of_plan(plan.name, *_UNFINISHED), MOST_LISTED)],
        undecided=facts.count(Action.CONFLICT),
        lacking=lacking_of(plan, journal),
        verification=read_verification(stored[-1]) if stored else None,
    )


def three_way(
    plan: Plan, journal: Journal, source_id: int, find: Callable[[str], Mapping[str, str] | None]
) -> RecordView:
    """One publication from all sides. `find`: gets a record of the target by its path, in compared form; none where it does not exist."""
    row = _row(plan, source_id)
    entry = next(
        (
            entry
            for entry in reversed(journal.of_record(row.resource, source_id))
            if entry.plan == plan.name and entry.kind in RECORD_WRITES
        ),
        None,
    )
    target_id = row.target_id if entry is None or entry.target_id is None else entry.target_id
    live = None if target_id is None else find(f"{row.resource}/{target_id}")
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
        fields=[
            _view(name, row, entry, (source.get(column_of(name)), before.get(column_of(name))), live)
            for name in plan.source.names
        ],
    )


def _view(
    name: str, row: PlanRow, entry: JournalEntry | None, known: Sequence[str | None], live: Mapping[str, str] | None
) -> FieldView:
    """A written value is stored as a digest only, so its text is found among the values of the source and the target."""
    live_value = None if live is None else live.get(name)

    def text_of(value: str | None) -> str:
        text = next((text for text in (*known, live_value) if digest(text) == value), None)
        return (
            display_text(name, value_of(text))
            if text is not None or value is None
            else "(a value that no longer exists on either side)"
        )

    after_write = entry.held if entry is not None else {}
    return FieldView(
        field=name,
        source=display_text(name, value_of(known[0])),
        wanted=text_of(row.expected[name]) if name in row.expected else None,
        held=text_of(after_write[name]) if name in after_write else None,
        live=None if live is None else display_text(name, value_of(live_value)),
        equal=name not in row.expected or (live is not None and digest(live_value) == row.expected[name]),
    )


def _planned(plan: Plan) -> Work:
    with plan.reading() as rows:
        found = dict(rows.execute(_FIRST_WRITES).fetchall())
        ((links,),) = rows.execute(_LINKS).fetchall()
        merges = "SELECT coalesce(sum(json_array_length(candidates)), 0) FROM file WHERE action = ?"
        ((merged,),) = rows.execute(merges, [Action.MERGE]).fetchall()
    files = plan.facts.files
    return Work(
        create=found.get(Action.CREATE, 0),
        patch=found.get(Action.PATCH, 0),
        links=links,
        merge=int(merged),
        files=files.upload - files.covers,
        covers=files.covers,
    )


def _work(done: Mapping[WriteKind, int]) -> Work:
    return Work(
        create=done[WriteKind.CREATE] + done[WriteKind.ADOPT],
        patch=done[WriteKind.PATCH],
        links=done[WriteKind.LINK],
        merge=done[WriteKind.MERGE],
        files=done[WriteKind.ASSET],
        covers=done[WriteKind.COVER],
    )


def _problem(entry: JournalEntry) -> StatusProblem:
    lost = "its response was lost; applying the plan again looks it up"
    return StatusProblem(
        resource=entry.resource,
        source_id=entry.source_id,
        target_id=entry.target_id,
        kind=entry.kind,
        state=entry.state,
        status=entry.status,
        message=entry.message or (lost if entry.state == WriteState.INTENDED else entry.state),
    )


def _row(plan: Plan, source_id: int) -> PlanRow:
    found = [row for row in _rows(plan.path(ROWS), "source_id", source_id) if row["resource"] == PUBLICATIONS]
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
