"""Writes the rows of a plan, or takes them back: several at once, each in at most two turns. It may be stopped at any instant (I8, I9).

It waits for a service that is down, settles what is unclear between the turns, counts, and stops at the limits.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Generic, TypeVar

import msgspec

from pipelines.backup.read import Progress
from pipelines.errors import SafetyLimitError, TemporaryError, UnclearError
from pipelines.migration.apply.late_effects import wait_for_unanswered
from pipelines.migration.apply.row_result import TRIES, LeftRowError, RowResult
from pipelines.migration.apply.writer import Writer
from pipelines.migration.model.findings import Finding, StepResult
from pipelines.migration.model.plan import PlanRow
from pipelines.records.values import RecordId
from pipelines.report.issues import safe_text
from pipelines.service.client import Waiting
from pipelines.service.threads import WorkerPool, worker_count

FEW = 100
"""Rows that must have been tried before a percentage of failures means anything."""

TEMPORARY_IN_A_ROW = 6
"""Temporary errors in a row that mean that the service is down: at 60 requests a minute, one outage meets so many rows at once."""

PAUSE = 60.0
"""Seconds until the next row is tried while the service is down, beside the minute for which a request is tried."""

Result = TypeVar("Result", bound=StepResult)


class Executor(ABC, Generic[Result]):
    """One run over the rows of a plan. `result` has what was done, also after an error."""

    command: ClassVar[str]
    """In messages, and what it does with records: `written`."""
    verb: ClassVar[str]
    code: ClassVar[str]
    """Of a finding on a record that is not done, or not completely; the result counts these under this name."""
    is_ordered: ClassVar[bool] = False
    """Whether a row needs that those before it are written: one that cannot be written for now ends the run."""

    def __init__(self, writer: Writer, result: Result) -> None:
        self._writer = writer
        self._step = writer.step
        self._plan = writer.step.plan
        self._journal = writer.step.journal
        self.result = result
        self._lock = threading.RLock()
        self.workers = worker_count(writer.step.client.requests_per_minute)
        self._tried = self._failed = self._temporary_errors = 0
        """Rows; the last ones are in a row."""
        self._waited = 0.0
        self._turn = 1
        self._again: dict[RecordId, RowResult] = {}
        """Ids in the source of the rows that have another turn, with what was written of them."""
        self._in_flight: set[RecordId] = set()
        """Ids in the source of the rows that are being written."""

    @abstractmethod
    def _rows(self, resource: str) -> Iterator[PlanRow]:
        """Yield the rows of a resource, as often as they are needed (I11)."""

    @abstractmethod
    def _has_to_wait(self, result: RowResult, pool: WorkerPool[RowResult]) -> bool:
        """Wait for the records that come before a row. Returns whether it is not written in this turn."""

    @abstractmethod
    def _send(self, result: RowResult) -> None:
        """Write a row. Raises `UnclearError` where a write has to be settled, `LeftRowError` where a row is left, and temporary errors."""

    def _write_resource(self, resource: str, rows: Iterable[PlanRow], *, links: bool = False) -> None:
        """Write the rows of a resource. Those with temporary errors, or with a write without a response, have another turn."""
        self._turn = 1
        self._write_all(RowResult(row, links=links) for row in rows)
        while again := self._again:
            self._again = {}
            self._turn += 1
            self.settle(resource)
            self._write_all(
                replace(again[row.source_id], row=row) for row in self._rows(resource) if row.source_id in again
            )

    def settle(self, resource: str = "") -> None:
        """Settle the writes without a response of a resource, or of all, once they can take no effect any more; outages are waited out."""
        wait_for_unanswered(self._journal, self._step.client)
        while True:
            try:
                self._writer.unclear.settle(resource)
            except TemporaryError as error:
                self._pause(error, PAUSE)
            else:
                return

    def _pause(self, error: TemporaryError, share: float) -> None:
        """Wait for a service that is down. Raises the error at the end of the run, or once the patience is used up."""
        with self._lock:
            if self._writer.stopped or self._waited >= self._step.limits.patience:
                raise error
            self._waited += share
        self._step.client.wait(Waiting("the service does not recover", PAUSE))

    def _write_all(self, results: Iterable[RowResult]) -> None:
        with WorkerPool(self._write, self.workers) as pool:
            for result in results:
                if not self._has_to_wait(result, pool):
                    self._in_flight.add(result.row.source_id)
                    pool.submit(result)

    def _write(self, result: RowResult) -> None:
        number = result.row.source_id
        try:
            self._try_to_write(result)
        finally:
            self._in_flight.discard(number)

    def _try_to_write(self, result: RowResult) -> None:
        is_first_turn = self._turn == 1
        try:
            self._send(result)
        except UnclearError as error:
            result.unclear = str(error)
            if self._turn <= TRIES:
                self._postpone(result)
                return
            result.problems.append(f"{error} The next {self.command} of this plan looks it up.")
        except LeftRowError as error:
            self._add(left=1, waiting=error.waits)
            return
        except TemporaryError as error:
            if self._writer.stopped or (self.is_ordered and not is_first_turn):
                raise
            with self._lock:
                self._temporary_errors += 1
                is_down = self._temporary_errors >= TEMPORARY_IN_A_ROW
            if is_down:  # rather than this row at fault
                self._pause(error, PAUSE / self.workers)
            if is_first_turn:
                self._postpone(result)
                return
            result.problems.append(f"{error} The next {self.command} of this plan tries it again.")
        else:
            with self._lock:
                self._temporary_errors, self._waited = 0, 0.0
            if result.may_pass and is_first_turn:
                self._postpone(result)
                return
        with self._lock:
            self._count(result)

    def _postpone(self, result: RowResult) -> None:
        """Write a row again in the next turn: what failed of it is tried again together with what is pending."""
        result.problems.clear()
        row = msgspec.structs.replace(result.row, payload={}, before={}, expected={}, references={}, files=[])
        self._again[row.source_id] = replace(result, row=row, may_pass=False)  # the plan is read again (I11)

    def _add(self, **numbers: int) -> None:
        """Add to the counts of the result."""
        with self._lock:
            for name, number in numbers.items():
                setattr(self.result, name, getattr(self.result, name) + number)

    def _count(self, result: RowResult) -> None:
        row, failures = result.row, [*result.lasting, *result.problems]
        self._tried += 1
        self._add(**result.done)
        if failures or result.stays:
            self._add(**{self.code: 1})
            problem = safe_text(" ".join(filter(None, ["; ".join(result.stays), *failures])), 2000)
            finding = row.finding(self.code, problem)
            self.result.add(finding)
            if failures:
                self._check_failures(finding)
        facts, client = self._plan.facts, self._step.client
        seconds = max(0, facts.requests - client.requests) * 60 / client.requests_per_minute
        at = self._tried, facts.writes, client.requests, seconds, self.verb, "finishing"
        self._step.on_progress(Progress("writing", *at))

    def _check_failures(self, last: Finding) -> None:
        self._failed += 1
        failed, limits = self._failed, self._step.limits
        share = failed * 100 / self._tried
        if failed > limits.failures or (self._tried >= FEW and share > limits.failures_percent):
            raise SafetyLimitError(
                f"{failed:,} of {self._tried:,} records could not be {self.verb} ({share:.0f} %); the limits are {limits.failures:,} and "
                f"{limits.failures_percent:g} %. The journal has what was {self.verb}, and the next {self.command} continues. The last "
                f"failure: {last.resource} {last.source_id}: {last.problem} `bookferry migrate status {self._plan.name}` shows what is "
                "done. To go on all the same: --force."
            )
