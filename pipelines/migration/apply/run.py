"""Applies a plan: writes exactly its rows, as fast as the budget allows. It may be stopped at any instant and run again (I8, I9)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import msgspec

from pipelines.errors import SafetyLimitError
from pipelines.inventory import plural
from pipelines.migration.apply.executor import FEW, Executor
from pipelines.migration.apply.references import own_references
from pipelines.migration.apply.row_result import RowResult
from pipelines.migration.apply.writer import Writer
from pipelines.migration.limits import Limits
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action, FileAction
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.findings import Finding, StepResult
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.migration.model.resource_types import AUTHORITIES, may_appear
from pipelines.migration.model.row_writes import LINK, writes_of
from pipelines.records.values import RecordId
from pipelines.service.threads import WorkerPool


@dataclass(frozen=True)
class Selection:
    """The part of a plan to write: at most `limit` rows, some actions (create, patch, merge, files)."""

    limit: int | None = None
    actions: Collection[str] = ()

    def wants(self, row: PlanRow) -> bool:
        """Whether a row is to be written."""
        if not self.actions:
            return True
        is_sent = row.writes or row.references or row.action == Action.MERGE
        actions: set[str] = {row.action} if is_sent else set()
        if (row.action == Action.PATCH or not row.writes) and any(
            file.action == FileAction.UPLOAD for file in row.files
        ):
            actions.add("files")
        return not actions.isdisjoint(self.actions)


EVERYTHING = Selection()


class ApplyResult(StepResult, kw_only=True):
    """The result of an apply."""

    created: int = 0
    patched: int = 0
    linked: int = 0
    """Records whose references to records that were created after them are set."""
    appeared: int = 0
    """Of the rows that are left, those whose record the target has by now, although the plan creates it: the next plan takes it."""
    unchanged: int = 0
    """Rows that need no write, or were written before."""
    failed: int = 0
    files_uploaded: int = 0
    merged: int = 0
    """Records of the target that were merged into others."""
    quarantined: int = 0
    undecided: int = 0
    """Records that wait for a person's decision."""
    left: int = 0
    """Rows outside the selection, those that wait for such a row, and those of a resource whose requests the target refuses."""
    waiting: int = 0
    """Of these, the rows of the selection that refer to records outside of it."""

    @property
    def failures(self) -> list[Finding]:
        """The first rows that could not be written, or not completely."""
        return [finding for finding in self.findings if finding.code == "failed"]

    @property
    def complete(self) -> bool:
        """Whether the target has everything of the source that this plan is about."""
        return not (self.failed or self.left or self.quarantined or self.undecided or self.lacking.total)


def check_limits(plan: Plan, limits: Limits) -> None:
    """Raise `SafetyLimitError` for a plan that changes too many records of the target."""
    for resource, counts in plan.facts.counts.items():
        records, touched = (
            plan.facts.target.records.get(resource, 0),
            counts.get(Action.PATCH, 0) + counts.get(Action.MERGE, 0),
        )
        if records and touched > FEW and touched * 100 > limits.touched_percent * records:
            raise SafetyLimitError(
                f"Plan {plan.name} would change {touched:,} of the {records:,} {plural(resource)} in '{plan.facts.target.tenant}', "
                f"{touched * 100 / records:.0f} %, and the limit is {limits.touched_percent:g} %. Nothing was written. To allow it: "
                "--force."
            )


class ApplyRun(Executor[ApplyResult]):
    """One run over the rows of a plan.

    `appeared`: reads the target's authorities; returns those of the source that the plan creates and the target has by now.
    """

    command, verb, code = "apply", "written", "failed"

    def __init__(
        self,
        writer: Writer,
        selection: Selection = EVERYTHING,
        appeared: Callable[[], Collection[RecordId]] = list,
    ) -> None:
        facts = writer.step.plan.facts
        result = ApplyResult(
            plan=facts.plan,
            unchanged=facts.count(Action.UNCHANGED),
            quarantined=facts.count(Action.QUARANTINED) + facts.unfit,
            undecided=facts.count(Action.CONFLICT),
        )
        super().__init__(writer, result)
        self._appeared = appeared
        self._selection = selection

    def has_work(self) -> bool:
        """Whether any row of the selection is pending; where none is, `run` only counts."""
        return any(self._selection.wants(row) and not (written and linked) for row, written, linked in self._states())

    def run(self) -> ApplyResult:
        """Write every pending row of the selection. A problem of one row is in the result; any other error is raised.

        One resource after the other, so that the records to which the next one refers exist; links follow at the end.
        """
        for resource, rows in groupby(self._unwritten(), key=attrgetter("resource")):
            self._write_resource(resource, self._not_there(resource, rows))
        unlinked = (
            row for row, written, linked in self._states() if written and not linked and self._selection.wants(row)
        )
        for resource, rows in groupby(unlinked, key=attrgetter("resource")):
            self._write_resource(resource, rows, links=True)
        return self.result

    def _not_there(self, resource: str, rows: Iterable[PlanRow]) -> Iterator[PlanRow]:
        """The rows without authorities that the service seems to have made itself, of the authors of publications (I8)."""
        may_be_there = resource == AUTHORITIES and may_appear(self._plan.facts.counts)
        appeared = self._appeared() if may_be_there else ()
        for row in rows:
            if row.source_id in appeared:
                self._add(left=1, appeared=1)
            else:
                yield row

    def _states(self) -> Iterator[tuple[PlanRow, bool, bool]]:
        """Yield each row, whether it is written, and whether its links are."""
        for resource, rows in groupby(self._plan.rows(*WRITTEN_ACTIONS), key=attrgetter("resource")):
            while step := list(islice(rows, STEP)):
                done = self._journal.done_writes(self._plan.name, resource, [row.source_id for row in step])
                for row in step:
                    pending = {*writes_of(row)} - done.get(row.source_id, set())
                    yield row, pending <= {LINK}, LINK not in pending

    def _unwritten(self) -> Iterator[PlanRow]:
        """The rows of the selection that are not written yet; counts the others."""
        chosen = 0
        for row, written, linked in self._states():
            is_beyond = not written and chosen == self._selection.limit
            if written and linked:
                self.result.unchanged += 1
            elif is_beyond or not self._selection.wants(row):
                self._add(left=1)
            elif not written:
                chosen += 1
                yield row

    def _rows(self, resource: str) -> Iterator[PlanRow]:
        return self._plan.rows(*WRITTEN_ACTIONS, resources=[resource])

    def _has_to_wait(self, result: RowResult, pool: WorkerPool[RowResult]) -> bool:
        """Waits for the records of its own resource to which a row refers; where one is missing, the row has the second turn."""
        row, referred = result.row, own_references(result.row)
        if not referred or result.links:
            return False
        pool.wait_until(lambda: referred.isdisjoint(self._in_flight))
        if self._turn > 1 or all(self._journal.target_id_of(row.resource, number) for number in referred):
            return False
        self._postpone(result)
        return True

    def _send(self, result: RowResult) -> None:
        self._writer.write(result.row, result)


def as_json(applied: ApplyResult) -> dict[str, Any]:
    """The JSON of an apply; its keys are stable."""
    return {**msgspec.to_builtins(applied), "complete": applied.complete}
