"""The status of a plan, from the plan and the journal, without a request; and one record in the source, the plan and the target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.errors import ConfigurationError
from pipelines.humanize import MOST_LISTED
from pipelines.inventory import record_path
from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import Side, digest
from pipelines.migration.model.findings import StepResult
from pipelines.migration.model.formatting import display_text, value_of
from pipelines.migration.model.journal import RECORD_WRITES, Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteState
from pipelines.migration.model.plan import ROWS, SOURCE, TARGET, Plan, PlanRow, plan_row
from pipelines.migration.model.plan_findings import add_lacking, finding_of
from pipelines.migration.model.resource_types import PUBLICATIONS, ResourceType
from pipelines.migration.model.row_writes import WORK, requests_of
from pipelines.migration.verify.verdict import MigrationVerification, read_verification, verifications
from pipelines.records.values import RecordId
from pipelines.service.client import LibraryClient
from pipelines.store.durable import storage_errors

_UNFINISHED = (WriteState.REFUSED, WriteState.PARKED, WriteState.INTENDED)


class PlanStatus(StepResult, kw_only=True):
    """The status of a plan. Its first findings are writes that were refused, are parked or have a lost response."""

    created_at: str
    planned: dict[str, int]
    """Work → writes, as in `PlanFacts.work`."""
    done: dict[str, int]
    refused: int
    parked: int
    unanswered: int
    undone: int
    """Writes that were taken back."""
    requests_left: int
    minutes_left: float
    last_change: str
    """The moment at which a write was last begun or settled; empty where there is none."""
    undecided: int
    """Records that wait for a person's decision."""
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
    source_id: RecordId
    target_id: RecordId | None
    action: str
    state: str
    """The state of its write: done, refused, ..., or `not written`."""
    message: str
    is_there: bool
    fields: list[FieldView]


def status_of(plan: Plan, journal: Journal) -> PlanStatus:
    """The status of a plan."""
    counts, facts = journal.counts(plan.name), plan.facts
    done, requests = dict.fromkeys(facts.work, 0), 0
    for kind, name in WORK.items():
        number = counts.get((kind, WriteState.DONE), 0)
        if number or name in done:
            done[name] = done.get(name, 0) + number
        requests += number * requests_of(kind, is_new=True)
    remaining = 0 if facts.work == done else max(1, facts.requests - requests)
    stored = verifications(plan)
    states = Counter[WriteState]()
    for (_kind, state), number in counts.items():
        states[state] += number
    status = PlanStatus(
        plan=plan.name,
        created_at=facts.created_at,
        planned=facts.work,
        done=done,
        refused=states[WriteState.REFUSED],
        parked=states[WriteState.PARKED],
        unanswered=states[WriteState.INTENDED],
        undone=states[WriteState.UNDONE],
        requests_left=remaining,
        minutes_left=remaining / facts.requests_per_minute,
        last_change=journal.last_change(plan.name),
        undecided=facts.count(Action.CONFLICT),
        verification=read_verification(stored[-1]) if stored else None,
    )
    for entry in islice(journal.of_plan(plan.name, *_UNFINISHED), MOST_LISTED):
        code = "unanswered" if entry.state == WriteState.INTENDED else entry.state
        status.add(finding_of(entry, code, field=entry.kind))
    add_lacking(status, plan, journal)
    return status


def three_way(
    plan: Plan,
    journal: Journal,
    source_id: RecordId,
    publications: ResourceType,
    client: LibraryClient,
) -> RecordView:
    """One publication from all sides. `publications`: how the plan moves them."""
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
    record = None if target_id is None else client.find_record(record_path(row.resource, target_id))
    live = None if record is None else publications.compared_record(record)
    source, before = (
        _side(publications, plan.side(name), number) for name, number in ((SOURCE, source_id), (TARGET, row.target_id))
    )
    return RecordView(
        plan=plan.name,
        resource=row.resource,
        source_id=source_id,
        target_id=target_id,
        action=row.action,
        state=entry.state if entry is not None else "not written",
        message=(entry.message if entry is not None else None) or "",
        is_there=live is not None,
        fields=[_view(name, row, entry, (source.get(name), before.get(name)), live) for name in publications.fields],
    )


def _view(
    name: str, row: PlanRow, entry: JournalEntry | None, values: Sequence[str | None], live: Mapping[str, str] | None
) -> FieldView:
    """A written value is stored as a digest only, so its text is found among the values of the source and the target."""
    live_value = None if live is None else live.get(name)

    def text_of(value: str | None) -> str:
        text = next((text for text in (*values, live_value) if digest(text) == value), None)
        return (
            display_text(name, value_of(text))
            if text is not None or value is None
            else "(a value that no longer exists on either side)"
        )

    after_write = entry.held if entry is not None else {}
    return FieldView(
        field=name,
        source=display_text(name, value_of(values[0])),
        wanted=text_of(row.expected[name]) if name in row.expected else None,
        held=text_of(after_write[name]) if name in after_write else None,
        live=None if live is None else display_text(name, value_of(live_value)),
        equal=name not in row.expected or (live is not None and digest(live_value) == row.expected[name]),
    )


def _row(plan: Plan, source_id: RecordId) -> PlanRow:
    condition = (pc.field("resource") == PUBLICATIONS) & (pc.field("source_id") == str(source_id))
    with storage_errors(plan.folder):
        rows = pq.read_table(plan.path(ROWS), filters=condition).to_pylist()
    if not rows:
        raise ConfigurationError(f"Plan {plan.name} has no publication {source_id} of '{plan.facts.source.tenant}'.")
    return plan_row(rows[0])


def _side(publications: ResourceType, side: Side, number: RecordId | None) -> Mapping[str, str]:
    forms = side.forms([] if number is None else [number])
    return publications.compared(forms[number].values) if number in forms else {}
