"""Holds the rows of other resources against the target's lists as they are now: what is missing, differs, or is there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from pipelines.migration.apply.other_resources import TargetLists, read_target_lists
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal import CREATE as CREATED
from pipelines.migration.model.journal import DONE, UNDONE, Journal
from pipelines.migration.model.journal import PATCH as PATCHED
from pipelines.migration.model.plan import CREATE, PRESENT_ACTIONS, UNCHANGED, Plan, PlanRow
from pipelines.migration.model.resource_types import RESOURCE_TYPES, USERS
from pipelines.migration.plan.match_store import TargetListing
from pipelines.migration.verify.discrepancies import DIFFERING, DUPLICATED, MISSING
from pipelines.migration.verify.run import VerificationFinding
from pipelines.report.issues import LONGEST, shown
from pipelines.report.rendering import NOT_SHOWN


@contextmanager
def compare_other_resources(
    plan: Plan, journal: Journal, room: Path, listed: Mapping[str, TargetListing]
) -> Iterator[OtherResourcesComparison]:
    """The other resources of a plan, and how the target lists them now; what that takes is in `room` for the length of the block."""
    with read_target_lists(room, listed) as now:
        yield OtherResourcesComparison(plan, journal, now, tuple(listed))


@dataclass(frozen=True)
class OtherResourcesComparison:
    """What the other resources of a plan come to in the target as it is listed `now`. `resources`: those that are listed."""

    plan: Plan
    journal: Journal
    now: TargetLists
    resources: tuple[str, ...]

    @property
    def compared(self) -> int:
        """Records that should be there."""
        counts = self.plan.facts.counts
        return sum(counts[one].get(action, 0) for one in self.resources for action in PRESENT_ACTIONS)

    def counts(self) -> Counter[str]:
        """Problem → records; one that differs in several fields counts once."""
        records = groupby(self.findings(), key=lambda one: (one.problem, one.resource, one.source_id, one.target_id))
        return Counter(problem for (problem, *_which), _fields in records)

    def findings(self) -> Iterator[VerificationFinding]:
        """Every difference, in the plan's order."""
        if not self.resources:
            return
        for row in self.plan.rows(*PRESENT_ACTIONS, resources=self.resources):
            target_id, why = self._became(row)
            record = None if target_id is None else self.now.record(row.resource, target_id)
            if record is None:
                yield _finding(row, MISSING, target_id, why=why)
            else:
                yield from self._differing(row, target_id, record, why)
                yield from self._doubles(row)

    def _became(self, row: PlanRow) -> tuple[int | None, str]:
        """The record that it should be, and what is known of how that went."""
        kind = CREATED if row.action == CREATE else PATCHED
        entries = self.journal.of_record(row.resource, row.source_id)
        entry = next((one for one in entries if (one.plan, one.kind) == (self.plan.name, kind)), None)
        if row.action == UNCHANGED or (entry is not None and entry.state == DONE):
            number = entry.target_id if entry is not None and row.action == CREATE else row.target_id
            return number, "changed since it was written" if entry else "changed since the plan was made"
        if entry is None:
            return row.target_id, "it was not written yet"
        told = "it was created, and taken back" if entry.state == UNDONE else entry.message or entry.state
        return row.target_id, told

    def _differing(
        self, row: PlanRow, target_id: int | None, record: Mapping[str, Any], why: str
    ) -> Iterator[VerificationFinding]:
        compared = RESOURCE_TYPES[row.resource].compared
        now, payload = compared(record), dict(row.payload)
        expected = dict(row.expected)
        for name, reference in row.references.items():
            ids = [
                known or self.journal.became(reference.resource, number)
                for number, known in zip(reference.source_ids, reference.target_ids, strict=True)
            ]
            payload[name] = ids if reference.many else ids[0]
            expected[name] = digest(compared({name: payload[name]}).get(name))
        wanted = compared(payload)
        for name, value in expected.items():
            if digest(now.get(name)) != value:
                texts = wanted.get(name, ""), now.get(name, "")
                yield _finding(row, DIFFERING, target_id, name, *texts, why=why)

    def _doubles(self, row: PlanRow) -> Iterator[VerificationFinding]:
        if row.action == CREATE:
            for number in self.now.new_alike(self.plan, self.journal, row):
                yield _finding(row, DUPLICATED, number, why="nobody knows who made it, and it has the same name")


def _finding(  # noqa: PLR0917  a row
    row: PlanRow, problem: str, target_id: int | None, field: str = "", wanted: str = "", found: str = "", *, why: str
) -> VerificationFinding:
    """Of people, no value is told."""
    hidden = row.resource == USERS
    texts = [NOT_SHOWN if hidden and text else shown(text, LONGEST) for text in (row.title or "", wanted, found)]
    return VerificationFinding(
        problem=problem,
        resource=row.resource,
        source_id=row.source_id,
        target_id=target_id,
        title=texts[0],
        field=field,
        wanted=texts[1],
        found=texts[2],
        why=shown(why, LONGEST),
    )
