"""Applies a plan: writes exactly its rows, as fast as the budget allows. It may be stopped at any instant and run again (I8, I9)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import msgspec

from pipelines.errors import SafetyLimitError, TemporaryError
from pipelines.inventory import plural
from pipelines.migration.apply.authorities.merges import Merges
from pipelines.migration.apply.late_effects import PendingWriteError
from pipelines.migration.apply.references import UntriedReferenceError, links_of, own_references
from pipelines.migration.apply.request_forms import StoppedResourceError
from pipelines.migration.apply.row_result import RowResult, is_written
from pipelines.migration.apply.unclear_creates import UnclearCreates
from pipelines.migration.apply.worker_pool import WorkerPool, worker_count
from pipelines.migration.apply.writer import Writer
from pipelines.migration.limits import Limits
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action, FileAction
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.findings import Finding, StepResult
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.report.issues import safe_text
from pipelines.service.client import Waiting
from pipelines.service.redaction import outside_text

FEW = 100
"""Rows that must have been tried before a percentage of failures means anything."""

TEMPORARY_IN_A_ROW = 6
"""Temporary errors in a row that mean that the service is down: at 60 requests a minute, one outage meets so many rows at once."""

PAUSE = 60.0
"""Seconds until the next row is tried while the service is down, beside the minute for which a request is tried."""


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


LIMITS, EVERYTHING = Limits(), Selection()


class ApplyResult(StepResult, kw_only=True):
    """The result of an apply."""

    created: int = 0
    patched: int = 0
    linked: int = 0
    """Records whose references to records that were created after them are set."""
    adopted: int = 0
    """Records that the plan would create and the service had made itself; they got what they lacked."""
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


@dataclass(frozen=True)
class ApplyProgress:
    """The progress of an apply, in the form of a listing's progress."""

    records: int
    expected: int
    requests: int
    requests_left: int
    requests_per_minute: int
    resource: str = "writing"
    done: str = "written"
    afterwards: str = "finishing"

    @property
    def seconds_left(self) -> float:
        """Seconds that the remaining requests take at the budget's rate."""
        return self.requests_left * 60 / self.requests_per_minute


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


class ApplyRun:
    """One run over the rows of a plan. `on_row` gets the result after each row; `wait` waits for a service that is down.

    `wait_for_effects`: waits until no request without a response can take effect any more. `writing`: entered with the name of each
    resource while its rows are written.
    """

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        writer: Writer,
        merges: Merges,
        unclear: UnclearCreates,
        *,
        limits: Limits,
        selection: Selection,
        wait: Callable[[Waiting], None],
        wait_for_effects: Callable[[], None],
        on_row: Callable[[ApplyResult], None] = lambda _: None,
        writing: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
    ) -> None:
        self._plan = plan
        self._writing = writing
        self._journal = journal
        self._writer = writer
        self._merges = merges
        self._unclear = unclear
        self._wait_for_effects = wait_for_effects
        self._limits = limits
        self._selection = selection
        self._on_row = on_row
        self._wait = wait
        self._lock = threading.Lock()
        self._tried = 0
        self._workers = 1
        self._temporary_errors = 0
        """In a row."""
        self._waited = 0.0
        self._is_first_turn = True
        self._again: dict[int, RowResult] = {}
        """Ids in the source of the rows that have another turn, with what was written of them."""
        self._is_unclear = False
        """Whether any of them has a write without a response."""
        self._in_flight: set[int] = set()
        """Ids in the source of the rows that are being written."""
        self.applied = self._empty_result()

    def has_work(self) -> bool:
        """Whether any row of the selection is pending; where none is, `applied` is the result."""
        if next(self.pending(), None) is None:
            return False
        self.applied = self._empty_result()
        return True

    def _empty_result(self) -> ApplyResult:
        facts = self._plan.facts
        return ApplyResult(
            plan=self._plan.name,
            unchanged=facts.count(Action.UNCHANGED),
            quarantined=facts.count(Action.QUARANTINED) + facts.unfit,
            undecided=facts.count(Action.CONFLICT),
        )

    def run(self, requests_per_minute: int) -> ApplyResult:
        """Write every pending row of the selection. A problem of one row is in the result; any other error is raised.

        One resource after the other, so that the records to which the next one refers exist; links follow at the end. Rows with temporary
        errors have a second turn, and so have those with a write without a response, once these are settled.
        """
        self._workers = worker_count(requests_per_minute)
        first = (row for row in self.pending() if not self._waits_for_links(row))
        for resource, rows in groupby(self._limited(first), key=attrgetter("resource")):
            with self._writing(resource):
                self._write_resource(resource, rows)
        for resource, rows in groupby(self._unlinked(), key=attrgetter("resource")):
            self._write_resource(resource, rows, links=True)
        return self.applied

    def _unlinked(self) -> Iterator[PlanRow]:
        """The rows of the selection that are written, and whose links are not."""
        for row in self._plan.rows(Action.CREATE, Action.PATCH):
            if links_of(row) and self._selection.wants(row) and self._waits_for_links(row):
                yield row

    def _write_resource(self, resource: str, rows: Iterator[PlanRow], *, links: bool = False) -> None:
        self._is_first_turn = True
        self._write_all((RowResult(row, links=links) for row in rows), links=links)
        self._is_first_turn = False
        while again := self._again:
            self._again = {}
            if self._is_unclear:
                self._is_unclear = False
                self.settle(resource)
            rows = self._plan.rows(*WRITTEN_ACTIONS, resources=[resource])
            self._write_all(
                (replace(again[row.source_id], row=row) for row in rows if row.source_id in again), links=links
            )

    def settle(self, resource: str = "") -> None:
        """Settle the creates without a response of a resource, or of all, once they can take no effect any more; outages are waited out."""
        self._wait_for_effects()
        while True:
            try:
                self._unclear.settle(resource)
            except TemporaryError as error:
                if self._writer.stopped or self._waited >= self._limits.patience:
                    raise
                self._waited += PAUSE
                self._wait(Waiting(str(error), PAUSE))
            else:
                return

    def _write_all(self, results: Iterator[RowResult], *, links: bool) -> None:
        with WorkerPool(self._write, self._workers) as pool:
            for result in results:
                if not links and self._has_to_wait(result, pool):
                    continue
                self._in_flight.add(result.row.source_id)
                pool.submit(result)

    def _has_to_wait(self, result: RowResult, pool: WorkerPool[RowResult]) -> bool:
        """Waits for the records of its own resource to which a row refers. Returns whether it is written in the second turn."""
        row = result.row
        referred = own_references(row)
        if not referred:
            return False
        pool.wait_until(lambda: referred.isdisjoint(self._in_flight))
        if not self._is_first_turn or all(self._journal.target_id_of(row.resource, number) for number in referred):
            return False
        self._postpone(result)
        return True

    def _limited(self, rows: Iterator[PlanRow]) -> Iterator[PlanRow]:
        for number, row in enumerate(rows):
            if self._selection.limit is None or number < self._selection.limit:
                yield row
            else:
                self.applied.left += 1

    def pending(self) -> Iterator[PlanRow]:
        """The rows of the selection that are not done yet; counts the others."""
        for resource, rows in groupby(self._plan.rows(*WRITTEN_ACTIONS), key=attrgetter("resource")):
            while step := list(islice(rows, STEP)):
                done = self._journal.done_writes(self._plan.name, resource, [row.source_id for row in step])
                for row in step:
                    if not _is_pending(row, done.get(row.source_id, set())):
                        self.applied.unchanged += 1
                    elif not self._selection.wants(row):
                        self.applied.left += 1
                    else:
                        yield row

    def _waits_for_links(self, row: PlanRow) -> bool:
        """Whether only the links of a row are to be written."""
        if not links_of(row):
            return False
        done = self._journal.done_writes(self._plan.name, row.resource, [row.source_id]).get(row.source_id, set())
        return (WriteKind.LINK, "") not in done and is_written(row, done)

    def _write(self, result: RowResult) -> None:
        try:
            self._try_to_write(result)
        finally:
            self._in_flight.discard(result.row.source_id)

    def _try_to_write(self, result: RowResult) -> None:
        row = result.row
        try:
            if row.action == Action.MERGE:
                self._merges.write(row, result)
            else:
                self._writer.write(row, result)
        except PendingWriteError:
            with self._lock:
                self._is_unclear = True
                self._postpone(result)
            return
        except UntriedReferenceError:
            with self._lock:
                self.applied.left += 1
                self.applied.waiting += 1
            return
        except StoppedResourceError:
            with self._lock:
                self.applied.left += 1
            return
        except TemporaryError as error:
            if self._writer.stopped:
                raise
            self._wait_out(error)
            with self._lock:
                if self._is_first_turn:
                    self._postpone(result)
                    return
                result.problems.append(f"{error} The next apply of this plan tries it again.")
        else:
            with self._lock:
                self._temporary_errors, self._waited = 0, 0.0
                if result.may_pass and self._is_first_turn:
                    self._postpone(result)
                    return
        with self._lock:
            self._count(result)

    def _postpone(self, result: RowResult) -> None:
        """Write a row again in the next turn: what failed of it is tried again together with what is pending."""
        result.problems.clear()
        row = msgspec.structs.replace(result.row, payload={}, before={}, expected={}, references={}, files=[])
        self._again[row.source_id] = replace(result, row=row, may_pass=False)  # the plan is read again (I11)

    def _wait_out(self, error: TemporaryError) -> None:
        """Wait where the service is down rather than this row at fault. Raises the error once the patience is used up."""
        with self._lock:
            self._temporary_errors += 1
            if self._temporary_errors < TEMPORARY_IN_A_ROW:
                return
            if self._waited >= self._limits.patience:
                raise error
            self._waited += PAUSE / self._workers
        self._wait(Waiting("the service does not recover", PAUSE))

    def _count(self, result: RowResult) -> None:
        applied, row = self.applied, result.row
        self._tried += 1
        applied.created += result.created
        applied.patched += result.patched
        applied.linked += result.linked
        applied.adopted += result.adopted
        applied.merged += result.merged
        applied.files_uploaded += result.files
        if problems := [*result.lasting, *result.problems]:
            applied.failed += 1
            problem = outside_text(" ".join(problems), 2000)
            applied.add(
                Finding(
                    code="failed",
                    resource=row.resource,
                    source_id=row.source_id,
                    title=safe_text(row.display_title),
                    problem=problem,
                )
            )
            self._check_failures()
        self._on_row(applied)

    def _check_failures(self) -> None:
        failed, limits = self.applied.failed, self._limits
        share = failed * 100 / self._tried
        if failed > limits.failures or (self._tried >= FEW and share > limits.failures_percent):
            last = self.applied.findings[-1]
            raise SafetyLimitError(
                f"{failed:,} of {self._tried:,} records could not be written ({share:.0f} %); the limits are {limits.failures:,} and "
                f"{limits.failures_percent:g} %. The journal has what was written, and the next apply continues. The last failure: "
                f"{last.resource} {last.source_id}: {last.problem} `bookferry migrate status {self._plan.name}` lists all. "
                "To go on all the same: --force."
            )


def _is_pending(row: PlanRow, done: set[tuple[WriteKind, str]]) -> bool:
    """Whether anything of a row is not written. `done`: kind and part of its writes that are done."""
    return not is_written(row, done) or (bool(links_of(row)) and (WriteKind.LINK, "") not in done)


def as_json(applied: ApplyResult) -> dict[str, Any]:
    """The JSON of an apply; its keys are stable."""
    return {**msgspec.to_builtins(applied), "complete": applied.complete}
