"""Settles writes without a response that must not happen twice, all of a resource at once: each had its effect, or had none (I8).

Assets and merges are looked up in their records. A create takes the record that it made, or is known to have made none: that is certain
once their requests can take no effect any more (`late_effects.py`) and while none of the resource is under way. Then a new record of the
target that no entry accounts for is from one of them, or from people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from pipelines.errors import RefusedError
from pipelines.inventory import LIST_PATHS
from pipelines.migration.apply.digests import enter_done
from pipelines.migration.apply.references import References
from pipelines.migration.model.actions import WRITTEN_ACTIONS
from pipelines.migration.model.comparable import STEP, digest
from pipelines.migration.model.journal_entries import (
    FailedWriteError,
    JournalEntry,
    WriteKind,
    WriteState,
    is_unsettled,
    was_accepted,
)
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.step import Step
from pipelines.migration.model.target_reading import numbered
from pipelines.records.values import RecordId, id_order


class NewRecord(NamedTuple):
    """A record of the target that no entry accounts for. `number`: its id; `digests`: of all its fields."""

    number: RecordId
    record: Mapping[str, Any]
    digests: Mapping[str, str | None]


class UnclearCreate(NamedTuple):
    """A create without a response. `expected`: field → digest of what was sent, without the references that were left out."""

    row: PlanRow
    entry: JournalEntry
    expected: Mapping[str, str | None]


Settle = Callable[[PlanRow, JournalEntry], bool]
"""Enters a write as done if it had its effect, and returns whether it had. Raises `FailedWriteError` where that stays unknown."""

Fits = Callable[[UnclearCreate, NewRecord], bool]


class UnclearWrites:
    """Settles the writes of one plan. `settles`: how those of other kinds than creates are."""

    def __init__(self, step: Step, references: References, settles: Mapping[WriteKind, Settle]) -> None:
        self._step = step
        self._plan = step.plan
        self._journal = step.journal
        self._types = step.types
        self._references = references
        self._settles = settles

    def settle(self, resource: str = "") -> None:
        """Settle the writes of a resource, or of all; those of which it stays unknown are parked for a person."""
        entries: dict[str, dict[RecordId, list[JournalEntry]]] = defaultdict(lambda: defaultdict(list))
        for entry in self._journal.of_plan(self._plan.name, WriteState.INTENDED, WriteState.PARKED):
            is_settled = entry.kind == WriteKind.CREATE or entry.kind in self._settles
            if is_settled and is_unsettled(entry) and resource in {"", entry.resource}:
                entries[entry.resource][entry.source_id].append(entry)
        for name, of_resource in entries.items():
            creates = []
            for row in self._plan.rows(*WRITTEN_ACTIONS, resources=[name]):
                for entry in of_resource.get(row.source_id, ()):
                    if entry.kind == WriteKind.CREATE:
                        resolved = self._references.resolve(row, [])
                        creates.append(UnclearCreate(resolved, entry, entry.wanted or resolved.expected))
                    else:
                        self._settle_one(replace(row, target_id=entry.target_id or row.target_id), entry)
            if creates:
                since = min(create.entry.begun_at for create in creates)
                self._settle(creates, self._new_records(creates[0].row, since))

    def _settle_one(self, row: PlanRow, entry: JournalEntry) -> None:
        try:
            if not self._settles[entry.kind](row, entry):
                self._without_effect(entry)
        except RefusedError as refusal:
            self._journal.refused(entry.number, str(refusal), refusal.status)
        except FailedWriteError:
            pass  # it is parked

    def _without_effect(self, entry: JournalEntry) -> None:
        """Nothing of a write is there: it may be sent again, unless it was answered with success."""
        if was_accepted(entry):
            self._journal.parked(entry.number, entry.message or "")
        else:
            self._journal.absent(entry.number)

    def _settle(self, creates: list[UnclearCreate], unaccounted: list[NewRecord]) -> None:
        fitting: tuple[Fits, ...] = (self._equals, self._is_alike)
        for fits in fitting:
            creates, unaccounted = self._adopt(creates, unaccounted, fits)
        for create in creates:
            equal = [new.number for new in unaccounted if self._equals(create, new)]
            doubtful = [new.number for new in unaccounted if self._may_be(create, new)]
            if equal or doubtful:
                self._park(create, equal or doubtful, "which differ from it")
            else:
                self._without_effect(create.entry)

    def _adopt(
        self, creates: list[UnclearCreate], unaccounted: list[NewRecord], fits: Fits
    ) -> tuple[list[UnclearCreate], list[NewRecord]]:
        """Of creates with the same content, each takes another record that fits, the lowest id first; returns what is left."""
        groups: dict[tuple[tuple[str, str | None], ...], list[UnclearCreate]] = defaultdict(list)
        for create in creates:
            groups[tuple(sorted(create.expected.items()))].append(create)
        unsettled: list[UnclearCreate] = []
        for group in groups.values():
            fitting = [new for new in unaccounted if fits(group[0], new)]
            if len(fitting) > len(group):
                for create in group:
                    self._park(create, [new.number for new in fitting], "more than were sent")
                continue
            for create, new in zip(group, fitting, strict=False):
                self._enter(create, new)
            unsettled += group[len(fitting) :]
            adopted_ids = {new.number for new in fitting}
            unaccounted = [new for new in unaccounted if new.number not in adopted_ids]
        return unsettled, unaccounted

    def _enter(self, create: UnclearCreate, new: NewRecord) -> None:
        row = replace(create.row, target_id=new.number)
        enter_done(self._step, create.entry.number, row, new.record, row.expected)

    def _park(self, create: UnclearCreate, ids: Sequence[RecordId], reason: str) -> None:
        lost = "its answer did not name it" if was_accepted(create.entry) else "the response was lost"
        self._journal.parked(
            create.entry.number,
            f"It is unknown whether it was created: {lost}, and the target now has {', '.join(map(str, ids[:5]))}, {reason}. A person must "
            "look: if one of them is it, plan again, and the new plan compares the two; if not, delete there what is superfluous, then "
            "apply this plan again.",
        )

    def _new_records(self, row: PlanRow, since: str) -> list[NewRecord]:
        """The records that no entry accounts for: at the ends of the list, where new ones appear; in all of it where these are not known.

        `row`: of the resource. `since`: when the first of the creates was begun.
        """
        resource, in_order = row.resource, True

        def reaches_back(page: Sequence[Mapping[str, Any]]) -> bool:
            nonlocal in_order
            ids = [number for number, _record in numbered(page)]
            numbers = [number for number in ids if isinstance(number, int)]
            in_order &= len(ids) == 1 or ids in (sorted(numbers), sorted(numbers, reverse=True))  # texts have none
            older = self._plan.ids_when_planned(resource, ids) or self._journal.created_before(resource, ids, since)
            return bool(ids and older)

        ends = self._step.client.list_ends(LIST_PATHS[resource], reaches_back)
        if in_order and ends.are_both:
            return self._unaccounted(row, ends.records)
        unaccounted: list[NewRecord] = []
        with self._step.read_listing(resource) as listing:
            listed = iter(listing.records())
            while batch := list(islice(listed, STEP)):
                unaccounted += self._unaccounted(row, batch)
        return unaccounted

    def _unaccounted(self, row: PlanRow, records: Sequence[Mapping[str, Any]]) -> list[NewRecord]:
        by_id = dict(numbered(records))
        ids = {*by_id}
        if ids:
            ids -= self._plan.ids_when_planned(row.resource, ids) | self._journal.known_ids(row.resource, ids)
        compared = self._types[row.resource].compared_record
        return [
            NewRecord(number, by_id[number], {name: digest(text) for name, text in compared(by_id[number]).items()})
            for number in sorted(ids, key=id_order)
        ]

    @staticmethod
    def _equals(create: UnclearCreate, new: NewRecord) -> bool:
        return all(new.digests.get(name) == value for name, value in create.expected.items())

    def _is_alike(self, create: UnclearCreate, new: NewRecord) -> bool:
        return self._types[create.row.resource].is_alike(create.row.payload, new.record)

    def _may_be(self, create: UnclearCreate, new: NewRecord) -> bool:
        return self._types[create.row.resource].may_be(create.row.payload, new.record)
