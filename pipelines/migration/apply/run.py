"""Executes a plan: exactly its rows, as fast as the budget allows, and so that it can be stopped at any instant and run again (I8, I9)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from pipelines.errors import SafetyLimitError, TemporaryError
from pipelines.humanize import MOST_LISTED
from pipelines.migration.apply.payload import RowResult
from pipelines.migration.apply.worker_pool import WorkerPool, worker_count
from pipelines.migration.apply.writer import Writer
from pipelines.migration.model.journal import ASSET, COVER, CREATE, INTENDED, PARKED, PATCH, Journal, is_done
from pipelines.migration.model.plan import CREATE as TO_CREATE
from pipelines.migration.model.plan import PATCH as TO_PATCH
from pipelines.migration.model.plan import QUARANTINED, UNCHANGED, UPLOAD, Plan, PlanRow
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.model.wording import plural
from pipelines.migration.plan.files import part_of
from pipelines.records.files import COVER as A_COVER
from pipelines.service.client import Waiting
from pipelines.service.redaction import outside_text

FEW = 100
"""Rows that must have been tried before a percentage of failures means anything."""

TEMPORARY_IN_A_ROW = 6
"""Rows in a row that the service did not recover for: then it is the service, and not the rows. So many are written at once at 60 requests
a minute, and one outage meets all of those."""

PAUSE = 60.0
"""Seconds until the next row is tried of a service that is taken to be down, beside the minute that a request is tried for."""


@dataclass(frozen=True)
class Limits:
    """What stops an apply before harm is done (exit 5)."""

    failures: int = 100
    """Rows that may fail."""
    failures_percent: float = 10.0
    """Of the rows that were tried."""
    touched_percent: float = 50.0
    """Of the target's records of one resource that a plan may change."""
    patience: float = 1800.0
    """Seconds that are waited for a service that is down, again and again: a long apply runs at night, too."""


@dataclass(frozen=True)
class Selection:
    """What of a plan is wanted: at most `limit` rows; only some actions (create, patch, files), or some publications of the source."""

    limit: int | None = None
    actions: Collection[str] = ()
    ids: Collection[int] = ()

    def wants(self, row: PlanRow) -> bool:
        """Whether a row is to be written."""
        if self.ids and (row.resource != PUBLICATIONS or row.source_id not in self.ids):
            return False
        if not self.actions:
            return True
        doing = {row.action} if row.writes else set()
        if row.action == TO_PATCH or not row.writes:
            doing |= {"files"} if any(one.action == UPLOAD for one in row.files) else set()
        return not doing.isdisjoint(self.actions)


LIMITS, EVERYTHING = Limits(), Selection()


class Failure(msgspec.Struct, kw_only=True):
    """A row that could not be written, or not all of it."""

    resource: str
    source_id: int
    title: str | None
    problem: str


@dataclass
class ApplyResult:
    """What an apply did."""

    created: int = 0
    patched: int = 0
    unchanged: int = 0
    """Rows that need nothing, those that were written before included."""
    failed: int = 0
    files_uploaded: int = 0
    quarantined: int = 0
    left: int = 0
    """Rows that were not wanted this time."""
    failures: list[Failure] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether all of the plan is in the target."""
        return not self.failed and not self.left and not self.quarantined


@dataclass(frozen=True)
class ApplyProgress:
    """How far an apply is, in the form of a listing's progress."""

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
        """At the budget's rate."""
        return self.requests_left * 60 / self.requests_per_minute


def check_limits(plan: Plan, limits: Limits) -> None:
    """Raise `SafetyLimitError` for a plan that changes more of what is there than anybody would expect."""
    few = FEW if limits.touched_percent >= LIMITS.touched_percent else 0  # who asks for less means a small library, too
    for resource, counts in plan.facts.counts.items():
        there, touched = plan.facts.target.records.get(resource, 0), counts.get(TO_PATCH, 0)
        if there and touched > few and touched * 100 > limits.touched_percent * there:
            raise SafetyLimitError(
                f"Plan {plan.name} would change {touched:,} of the {there:,} {plural(resource)} in '{plan.facts.target.tenant}', "
                f"{touched * 100 / there:.0f} %, and the limit is {limits.touched_percent:g} %. Nothing was written. If that is what you "
                f"want: --max-touched {min(100, int(touched * 100 / there) + 1)}."
            )


class ApplyRun:
    """One run over the rows of a plan."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        writer: Writer,
        *,
        limits: Limits,
        selection: Selection,
        wait: Callable[[Waiting], None],
        on_row: Callable[[ApplyResult], None] = lambda _: None,
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._writer = writer
        self._limits = limits
        self._selection = selection
        self._on_row = on_row
        self._wait = wait
        self._lock = threading.Lock()
        self._tried = 0
        self._hands = 1
        self._temporary = 0
        self._waited = 0.0
        self._later: set[int] | None = None
        """Rows that the service did not recover for; None in their second turn."""
        self.applied = self._nothing_yet()

    def has_work(self) -> bool:
        """Whether any row is wanted and not done; where none is, `applied` is the result."""
        if next(self.pending(), None) is None:
            return False
        self.applied = self._nothing_yet()
        return True

    def _nothing_yet(self) -> ApplyResult:
        facts = self._plan.facts
        return ApplyResult(unchanged=facts.count(UNCHANGED), quarantined=facts.count(QUARANTINED) + facts.unfit)

    def run(self, requests_per_minute: int) -> ApplyResult:
        """Write every row that is wanted and not done. Raises what ends a run; what one row alone brings about is in the result.

        One resource after the other: what the records of the next one refer to is there by then. Rows that met a service that was not
        itself have a second turn.
        """
        self._hands = worker_count(requests_per_minute)
        for resource, rows in groupby(self._limited(self.pending()), key=attrgetter("resource")):
            self._later = set()
            self._write_all(rows)
            if later := self._later:
                self._later = None
                again = self._plan.rows(TO_CREATE, TO_PATCH)
                self._write_all(row for row in again if row.resource == resource and row.source_id in later)
        return self.applied

    def _write_all(self, rows: Iterator[PlanRow]) -> None:
        with WorkerPool(self._write, self._hands) as crew:
            for row in rows:
                crew.give(row)

    def _limited(self, rows: Iterator[PlanRow]) -> Iterator[PlanRow]:
        for given, row in enumerate(rows):
            if self._selection.limit is None or given < self._selection.limit:
                yield row
            else:
                self.applied.left += 1

    def pending(self) -> Iterator[PlanRow]:
        """The rows that are wanted and not done yet; counts the others."""
        for row in self._plan.rows(TO_CREATE, TO_PATCH):
            if not self._left_to_do(row):
                self.applied.unchanged += 1
            elif not self._selection.wants(row):
                self.applied.left += 1
            else:
                yield row

    def _left_to_do(self, row: PlanRow) -> bool:
        entries = self._journal.of_record(row.resource, row.source_id)
        done = {(one.kind, one.part) for one in entries if one.plan == self._plan.name and is_done(one)}
        wanted = {(CREATE if row.action == TO_CREATE else PATCH, "")} if row.writes else set()
        for file in row.files:
            if file.action == UPLOAD:
                wanted.add((COVER if file.kind == A_COVER else ASSET, part_of(file)))
        return not wanted <= done

    def _write(self, row: PlanRow) -> None:
        outcome = RowResult(row)
        try:
            self._writer.write(row, outcome)
        except TemporaryError as error:
            if self._writer.stopped:
                raise
            self._bear_with(error)
            with self._lock:
                if self._later is None:
                    outcome.problems.append(f"{error} It is tried again when the plan is applied again.")
                else:
                    outcome.problems.clear()
                    self._later.add(row.source_id)
        else:
            with self._lock:
                self._temporary, self._waited = 0, 0.0
        with self._lock:
            self._count(outcome)

    def _bear_with(self, error: TemporaryError) -> None:
        """Where it is not this row but the service, wait; raise once that took all patience."""
        with self._lock:
            self._temporary += 1
            if self._temporary < TEMPORARY_IN_A_ROW:
                return
            if self._waited >= self._limits.patience:
                raise error
            self._waited += PAUSE / self._hands
        self._wait(Waiting("the service does not recover", PAUSE))

    def _count(self, outcome: RowResult) -> None:
        applied, row = self.applied, outcome.row
        self._tried += 1
        applied.created += outcome.created
        applied.patched += outcome.patched
        applied.files_uploaded += outcome.files
        if outcome.problems:
            applied.failed += 1
            told = outside_text(" ".join(outcome.problems), 2000)
            if len(applied.failures) < MOST_LISTED:
                applied.failures.append(
                    Failure(resource=row.resource, source_id=row.source_id, title=row.told, problem=told)
                )
            self._check_failures()
        self._on_row(applied)

    def _check_failures(self) -> None:
        failed, limits = self.applied.failed, self._limits
        share = failed * 100 / self._tried
        if failed > limits.failures or (self._tried >= FEW and share > limits.failures_percent):
            last = self.applied.failures[-1]
            raise SafetyLimitError(
                f"{failed:,} of {self._tried:,} records could not be written ({share:.0f} %); the limits are {limits.failures:,} and "
                f"{limits.failures_percent:g} %. What was written is in the journal, and applying the plan again goes on. The "
                f"last one: {last.resource} {last.source_id}: {last.problem} `bookferry migrate status {self._plan.name}` lists all. If "
                "that many may fail: --max-failures, --max-failures-percent."
            )


def reconcile_pending_records(plan: Plan, journal: Journal, writer: Writer) -> None:
    """What an earlier process began to create and is there counts before anything is compared; what is not is left to its turn.

    Publications are looked for in the listing that is compared (`settling`).
    """
    begun = journal.of_plan(plan.name, INTENDED, PARKED)
    doubtful = {
        (one.resource, one.source_id): one for one in begun if one.kind == CREATE and one.resource != PUBLICATIONS
    }
    for row in plan.rows(TO_CREATE) if doubtful else ():
        if (entry := doubtful.get((row.resource, row.source_id))) is not None:
            writer.settle(row, entry)


def as_json(applied: ApplyResult, requests: int) -> dict[str, Any]:
    """What others may rely on."""
    return {
        "created": applied.created,
        "patched": applied.patched,
        "unchanged": applied.unchanged,
        "failed": applied.failed,
        "files_uploaded": applied.files_uploaded,
        "requests": requests,
        "complete": applied.complete,
        "quarantined": applied.quarantined,
        "left": applied.left,
        "failures": [msgspec.to_builtins(one) for one in applied.failures],
    }
