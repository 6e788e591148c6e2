"""Checks before an apply that a plan still fits the target: compared again with a new reading, it must come out the same (I8)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from pipelines.errors import StopError
from pipelines.inventory import plural
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action, Decision
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import SOURCE, Plan, PlanRow
from pipelines.migration.model.resource_types import AUTHORITIES, PUBLICATIONS, WRITING_ORDER, ResourceType, adopts
from pipelines.migration.model.target_reading import TargetNow
from pipelines.migration.plan.comparison import Comparison, Match, compare
from pipelines.migration.plan.conflicts import RecordDecision
from pipelines.migration.plan.record_rows import compared_fields, outcome_of
from pipelines.migration.plan.target_ids import TargetIds
from pipelines.shapes.model import Description, ResourceSchema

EXAMPLES = 5
"""Records that the message names."""


def check_fresh(
    plan: Plan,
    now: Mapping[str, TargetNow],
    workdir: Path,
    ids: TargetIds,
    *,
    journal: Journal,
    begun: Collection[tuple[str, int]],
    description: Description | None,
) -> None:
    """Raise `StopError` where the target as it is `now` needs another plan. `description`: its own one now, if it can be read.

    Checks the records that are still to be written, without those that an apply has `begun`: their matches, and the values to replace. Once
    any publication was written, new authorities may be from the service itself, and are adopted.
    """
    adopting = adopts(plan.facts.counts) and any(entry.resource == PUBLICATIONS for entry in journal.of_plan(plan.name))
    stale, count = [*dict.fromkeys(_described_otherwise(plan, description))], 0
    check = _Check(plan, now, workdir, journal, ids, begun, {AUTHORITIES} if adopting else set())
    for resource in () if stale else WRITING_ORDER:
        if resource in now:
            problems = check.problems(resource)
            first = [*islice(problems, EXAMPLES - len(stale))]
            stale += first
            count += len(first) + sum(1 for _problem in problems)
    if not stale:
        return
    source, target = plan.facts.source.tenant, plan.facts.target.tenant
    resources = [resource for resource in plan.facts.resources if resource != PUBLICATIONS]
    named = f" --resources {','.join(resources)}" if resources else ""
    records = f", and {count:,} of its records need another plan now" if count else ""
    raise StopError(
        f"Plan {plan.name} is stale: '{target}' changed since the plan was made{records}: {'; '.join(stale)}. Nothing was written. Make a "
        f"new plan: `bookferry migrate plan {source} {target}{named}`."
    )


def _described_otherwise(plan: Plan, now: Description | None) -> Iterator[str]:
    """Yield the resources that the plan writes and that the target takes otherwise now, by its description."""
    before = plan.facts.description
    if not before or now is None or before.sha256 == now.sha256:
        return
    for resource in (PUBLICATIONS, *plan.facts.written_other_resources):
        fields, earlier, later = (
            (plan.types[resource].fields if resource in plan.types else ()),
            *(description.resources.get(resource, ResourceSchema()) for description in (before, now)),
        )
        for asked, asks in ((earlier.create, later.create), (earlier.change, later.change)):
            if asked is None or asks is None:
                continue
            if (
                any(asked.fields.get(name) != asks.fields.get(name) for name in fields)
                or not {*asks.required} <= {*asked.required, *fields}
                or (asked.method, asked.wrapped_in) != (asks.method, asks.wrapped_in)
            ):
                yield f"it takes {plural(resource)} otherwise, by its description"


@dataclass(frozen=True)
class _Check:
    """Both sides, and what does not count."""

    plan: Plan
    now: Mapping[str, TargetNow]
    workdir: Path
    journal: Journal
    ids: TargetIds
    begun: Collection[tuple[str, int]]
    may_be_new: Collection[str]

    def problems(self, resource: str) -> Iterator[str]:
        """Yield why each row of a resource that is still to be written does not fit any more."""
        pending = self.plan.columns(resource, ["source_id"], *WRITTEN_ACTIONS)
        numbers = (number for (number,) in pending if (resource, number) not in self.begun)
        if (first := next(numbers, None)) is None:
            return
        plan, reading = self.plan, self.now[resource]
        fields = compared_fields(reading.type, self.ids)
        with compare(
            reading.type,
            plan.side(SOURCE, resource),
            reading.side,
            self.workdir,
            journal=self.journal,
            find_target=self.ids.target_of,
            decisions=self._decided(resource),
            same_library=plan.facts.same_library,
        ) as comparison:
            matches = comparison.matches(chain([first], numbers))
            rows = self.plan.rows(*WRITTEN_ACTIONS, resources=[resource])
            still = (row for row in rows if (resource, row.source_id) not in self.begun)
            for row, match in zip(still, matches, strict=True):
                problem = (
                    _merge_problem(row, comparison)
                    if row.action == Action.MERGE
                    else self._problem(row, match, reading.type, fields)
                )
                if problem:
                    yield problem

    def _decided(self, resource: str) -> Iterator[RecordDecision]:
        """What a person decided about matches, from the rows of the plan: without it, other records would match what these took."""
        names = ("source_id", "target_id", "action", "matched_by")
        for source_id, target_id, action, matched_by in self.plan.columns(resource, names):
            if matched_by == "decision":
                match = Decision.CREATE if target_id is None else Decision.MATCH
                decision = Decision.SKIP if action == Action.SKIPPED else match
                yield RecordDecision(resource, source_id, decision, target_id, "")

    def _problem(self, row: PlanRow, match: Match, resource_type: ResourceType, fields: list[str]) -> str | None:
        is_decided = row.matched_by == "decision"
        outcome = outcome_of(resource_type, match, fields, overwrite=self.plan.facts.overwrite)
        what = f"{row.resource} {row.source_id}"
        if row.action == Action.CREATE:
            if outcome.action in (Action.CREATE, Action.QUARANTINED) or row.resource in self.may_be_new:
                return None
            target_ids = [match.target_id] if match.target_id is not None else match.candidates
            ids = f" ({', '.join(map(str, target_ids[:3]))})" if target_ids else ""
            return f"{what} was to be created, and seems to be there now{ids}"
        change = f"{what} was to change {row.target_id}"
        if match.target_id != row.target_id:
            return f"{change}, which is not there any more, or is another record"
        names = [*row.payload, *row.references]
        if names and not is_decided and outcome.action not in (Action.PATCH, Action.UNCHANGED):
            return f"{change}, and people changed that ({outcome.action})"
        before, now = resource_type.compared_record(row.before), outcome.target
        fits = all(
            now.get(name) == before.get(name) or digest(now.get(name)) == row.expected.get(name, "") for name in names
        )
        return None if fits else f"{change}, and people changed that"


def _merge_problem(row: PlanRow, comparison: Comparison) -> str | None:
    """Why a merge does not fit the records any more; None where all are there, under one name."""
    ids = [row.existing_target_id, *row.candidates]
    if comparison.have_one_name(ids):
        return None
    goes = ", ".join(map(str, row.candidates))
    return f"{row.resource} {goes} were to be merged into {row.target_id}, and they are not all there any more, or have other names"
