"""Compares the records of resources other than publications with the target's lists: missing, differing and duplicated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.migration.apply.target_lists import TargetLists, read_target_lists
from pipelines.migration.model.actions import PRESENT_ACTIONS, Action
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.findings import Finding
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState, is_done
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.migration.model.reasons import DIFFERING, DUPLICATED, MISSING
from pipelines.migration.model.resource_types import RESOURCE_TYPES
from pipelines.migration.model.target_reading import TargetListing
from pipelines.migration.model.wording import noun
from pipelines.migration.plan.field_merge import FieldVerdict, merge_field
from pipelines.migration.verify.discrepancies import MOST_CHARACTERS
from pipelines.records.tables.registry import PERSONAL
from pipelines.report.issues import safe_text
from pipelines.report.rendering import NOT_SHOWN


@contextmanager
def compare_other_resources(
    plan: Plan, journal: Journal, workdir: Path, listed: Mapping[str, TargetListing]
) -> Iterator[OtherResourcesComparison]:
    """Compares a plan with the target's lists `listed`; its temporary file is in `workdir` for the length of the block."""
    with read_target_lists(workdir, listed) as lists:
        yield OtherResourcesComparison(plan, journal, lists, tuple(listed))


@dataclass(frozen=True)
class OtherResourcesComparison:
    """The comparison of a plan with the target's `lists` of these `resources`."""

    plan: Plan
    journal: Journal
    lists: TargetLists
    resources: tuple[str, ...]

    @property
    def compared(self) -> int:
        """Records that should be in the target."""
        counts = self.plan.facts.counts
        return sum(counts[resource].get(action, 0) for resource in self.resources for action in PRESENT_ACTIONS)

    def findings(self) -> Iterator[Finding]:
        """Yield every difference, in the order of the plan."""
        if not self.resources:
            return
        for row in self.plan.rows(*PRESENT_ACTIONS, resources=self.resources):
            target_id, why = self._target_of(row)
            record = None if target_id is None else self.lists.record(row.resource, target_id)
            if target_id is None or record is None:
                yield _finding(row, MISSING, target_id, why=why)
            else:
                yield from self._differing(row, target_id, record, why)
                yield from self._duplicates(row, target_id)

    def _target_of(self, row: PlanRow) -> tuple[int | None, str]:
        """Id of the record in the target, and what the journal says of the write."""
        entry = self._written(row)
        if row.action == Action.UNCHANGED or (entry is not None and entry.state == WriteState.DONE):
            number = entry.target_id if entry is not None and row.action == Action.CREATE else row.target_id
            return number, "changed since it was written" if entry else "changed since the plan was made"
        if entry is None:
            return row.target_id, "it was not written yet"
        return (
            row.target_id,
            "it was created, and taken back" if entry.state == WriteState.UNDONE else entry.message or entry.state,
        )

    def _written(self, row: PlanRow) -> JournalEntry | None:
        """The write of the record by the plan; of an adoption and a creation, the one that is done."""
        kinds = {
            Action.CREATE: (WriteKind.CREATE, WriteKind.ADOPT),
            Action.PATCH: (WriteKind.PATCH,),
            Action.MERGE: (WriteKind.MERGE,),
        }.get(row.action, ())
        entries = self.journal.of_record(row.resource, row.source_id)
        written = [entry for entry in entries if entry.plan == self.plan.name and entry.kind in kinds]
        return max(written, key=lambda entry: (is_done(entry), entry.number), default=None)

    def _differing(self, row: PlanRow, target_id: int | None, record: Mapping[str, Any], why: str) -> Iterator[Finding]:
        compared = (row.type or RESOURCE_TYPES[row.resource]).compared_record
        now, payload = compared(record), dict(row.payload)
        expected = dict(row.expected)
        if row.action == Action.MERGE:  # which may have added to its fields
            merge = self._written(row)
            expected = dict(merge.held) if merge is not None else {}
        for name, reference in row.references.items():
            ids = [
                planned_id or self.journal.target_id_of(reference.resource, source_id)
                for source_id, planned_id in zip(reference.source_ids, reference.target_ids, strict=True)
            ]
            payload[name] = ids if reference.many else ids[0]
            expected[name] = digest(compared({name: payload[name]}).get(name))
        kept = {name: text for name, (text, _found) in row.kept.items() if text is not None}
        wanted, adopted = {**compared(payload), **kept}, self._is_adopted(row)
        for name, value in expected.items():
            if digest(now.get(name)) != value and not (adopted and _is_contained(row, name, wanted, now)):
                texts = wanted.get(name, ""), now.get(name, "")
                is_kept = name in row.kept and row.kept[name][1] == now.get(name)
                known = "the service keeps it otherwise than an earlier plan sent it"
                yield _finding(row, DIFFERING, target_id, name, *texts, why=known if is_kept else why)

    def _is_adopted(self, row: PlanRow) -> bool:
        entry = self._written(row)
        return entry is not None and entry.kind == WriteKind.ADOPT

    def _duplicates(self, row: PlanRow, target_id: int) -> Iterator[Finding]:
        if (first := self.lists.first_source(row, target_id)) != row.source_id:
            why = f"{noun(row.resource)} {first} of the source became the same record"
            yield _finding(row, DUPLICATED, target_id, why=why)
        if row.action == Action.MERGE:
            for number in row.candidates:
                if self.lists.record(row.resource, number) is not None:
                    yield _finding(row, DUPLICATED, number, why=f"it was to be merged into {row.target_id}")
        if row.action == Action.CREATE:
            for number in self.lists.new_matches(self.plan, self.journal, row):
                yield _finding(row, DUPLICATED, number, why="it is unknown who created it, and it has the same name")


def _is_contained(row: PlanRow, name: str, wanted: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a field of an adopted record has at least what the source has, so that a plan would leave it."""
    is_set = row.type is not None and name in row.type.lists
    return merge_field(wanted.get(name), now.get(name), is_set=is_set) == FieldVerdict.KEEP


def _finding(  # noqa: PLR0917  the columns of a finding
    row: PlanRow, code: str, target_id: int | None, field: str = "", wanted: str = "", found: str = "", *, why: str
) -> Finding:
    """Without the values of people, which are personal data."""
    is_personal = row.resource in PERSONAL
    title, wanted, found = (
        NOT_SHOWN if is_personal and text else safe_text(text, MOST_CHARACTERS)
        for text in (row.title or "", wanted, found)
    )
    return Finding(
        code=code,
        resource=row.resource,
        source_id=row.source_id,
        target_id=target_id,
        title=title,
        field=field,
        wanted=wanted,
        found=found,
        problem=why,
    )
