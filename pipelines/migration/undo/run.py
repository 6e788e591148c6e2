"""Takes a plan back: records that it created are deleted, fields that it changed get the values they had, the newest first (I8).

It can be stopped at any instant and run again: each step looks at the record first, and may be repeated. Nothing else is ever deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.errors import RefusedError, TemporaryError
from pipelines.humanize import MOST_LISTED
from pipelines.migration.apply.ambiguous_writes import PAUSES
from pipelines.migration.apply.file_visibility import FileVisibility
from pipelines.migration.apply.other_resources import TargetLists
from pipelines.migration.apply.run import TEMPORARY_IN_A_ROW, ApplyProgress
from pipelines.migration.apply.worker_pool import WorkerPool, worker_count
from pipelines.migration.apply.writer import Writer
from pipelines.migration.model.comparable import RECORDS, STEP, ComparableLibrary
from pipelines.migration.model.journal import CREATE as CREATED
from pipelines.migration.model.journal import INTENDED, PARKED, Journal, JournalEntry
from pipelines.migration.model.plan import WRITTEN_ACTIONS, Plan, PlanRow, plan_row
from pipelines.migration.model.resource_types import PUBLICATIONS, RESOURCE_TYPES
from pipelines.migration.model.wording import plural
from pipelines.migration.plan.files import described_files
from pipelines.migration.plan.publications import NOTHING
from pipelines.migration.undo.inverse_operations import OPEN, InverseOperations, TargetRecord, inverse_operations
from pipelines.records.files import AttachedFile
from pipelines.records.forms import WRITTEN, form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.matching import comparable
from pipelines.report.issues import shown as fit
from pipelines.service.client import LibraryClient
from pipelines.store.durable import storage_errors, write_atomically
from pipelines.store.parquet import exactly, literal, open_table, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

DELETED = frozenset({"users", "collections", "hard_copies"})
"""Resources beside publications of which the service deletes records (service-api.md: "no delete" of authorities, none of tasks)."""

LATER = "something that may refer to it could not be taken back for now; it follows when this is run again"


class LeftRecord(msgspec.Struct, kw_only=True):
    """What of a record was not taken back, and why."""

    resource: str
    source_id: int
    target_id: int | None
    title: str
    reason: str


class UndoResult(msgspec.Struct, kw_only=True):
    """What an undo did; of a rehearsal, what one would do."""

    plan: str
    really: bool
    deleted: int = 0
    """Records that the plan had created."""
    reverted: int = 0
    """Records that got fields back, or lost a cover that the plan had set."""
    files_deleted: int = 0
    """Files that the plan had attached to records that it had not created."""
    gone: int = 0
    """Records that somebody else deleted before."""
    left: int = 0
    """Records of which something was not taken back."""
    requests: int = 0
    examples: list[LeftRecord] = []
    """The first of what was left."""


class _Task(NamedTuple):
    """A row with what the journal has of it, and the files that its record had when the plan was made."""

    row: PlanRow
    entries: list[JournalEntry]
    had: list[AttachedFile]
    listed: Mapping[str, Any] | None = None
    """Of another resource than publications: the record as the target lists it; none where it is not there."""

    def of(self, plan: str) -> list[JournalEntry]:
        """What this plan wrote and did not take back."""
        return [one for one in self.entries if one.plan == plan and one.state in OPEN]

    def target_id(self, plan: str) -> int | None:
        """The record in the target."""
        return next((one.target_id for one in self.of(plan) if one.target_id is not None), self.row.target_id)


@dataclass
class _Undoing:
    """What both ways have in common."""

    plan: Plan
    journal: Journal
    kinds: Kinds
    result: UndoResult
    others: TargetLists
    """The records of other resources in which the plan wrote, as the target lists them."""

    def tasks(self) -> Iterator[_Task]:
        """What there is to take back, the last row of the plan first."""
        for rows in _backwards(self.plan):
            found = []
            for row in rows:
                entries = self.journal.of_record(row.resource, row.source_id)
                if any(one.plan == self.plan.name and one.state in OPEN for one in entries):
                    found.append((row, entries))
            files = _files_before(self.plan, [row.target_id for row, _entries in found if row.target_id is not None])
            for row, entries in found:
                task = _Task(row, entries, files.get(row.target_id, []))
                number = task.target_id(self.plan.name)
                if row.resource != PUBLICATIONS and number is not None:
                    task = task._replace(listed=self.others.record(row.resource, number))
                yield task

    def judge(self, task: _Task, shown: TargetRecord | None) -> InverseOperations:
        """What is to be done about a record."""
        other = RESOURCE_TYPES.get(task.row.resource)
        empty = NOTHING if other is None else {name: [] for name in other.lists}
        steps = inverse_operations(
            task.row,
            task.entries,
            shown,
            plan=self.plan.name,
            compare=self._compared if other is None else other.compared,
            empty=empty,
            had=task.had,
        )
        if steps.delete and other is not None and other.resource not in DELETED:
            kept = f"the service lets nobody delete {plural(other.resource)}; a person must retire it there"
            return InverseOperations(left=[kept])
        return steps

    def _compared(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        return comparable(form_of(values, self.kinds).fields, self.kinds)

    def count(self, task: _Task, steps: InverseOperations) -> None:
        """Take what was done of a record into the result."""
        result = self.result
        result.deleted += steps.delete
        result.reverted += bool(steps.patch)
        result.files_deleted += len(steps.assets)
        result.gone += steps.gone
        self.leave(task, steps.left)

    def leave(self, task: _Task, why: Sequence[str]) -> None:
        """Note what stays."""
        if why:
            self.result.left += 1
            if len(self.result.examples) < MOST_LISTED:
                row = task.row
                self.result.examples.append(
                    LeftRecord(
                        resource=row.resource,
                        source_id=row.source_id,
                        target_id=task.target_id(self.plan.name),
                        title=fit(row.told),
                        reason=fit("; ".join(why), 1000),
                    )
                )


def dry_run(  # noqa: PLR0917  what both ways look at
    plan: Plan, journal: Journal, kinds: Kinds, now: ComparableLibrary, others: TargetLists, client: LibraryClient
) -> UndoResult:
    """What an undo would do to the target as it is `now`; nothing is written."""
    undoing = _Undoing(plan, journal, kinds, UndoResult(plan=plan.name, really=False), others)
    with storage_errors(now.folder), duckdb.connect() as database:
        database.execute("SET threads = 1; SET memory_limit = '256MB'")
        for batch in _batched(undoing.tasks()):
            shown = _shown(database, now, [task.target_id(plan.name) for task in batch])
            for task in batch:
                if why := _doubt(task, plan.name):
                    undoing.leave(task, [why])
                else:
                    found = shown.get(task.target_id(plan.name)) if task.row.resource == PUBLICATIONS else _listed(task)
                    undoing.count(task, undoing.judge(task, found))
    undoing.result.requests = client.requests
    return undoing.result


def undo(
    plan: Plan,
    journal: Journal,
    kinds: Kinds,
    client: LibraryClient,
    writer: Writer,
    *,
    others: TargetLists,
    on_progress: Callable[[ApplyProgress], None] = lambda _: None,
) -> UndoResult:
    """Take a plan back. What one record alone brings about is told as left; the rest raises, and running it again goes on.

    One resource after the other, the last one first: what others refer to goes after them, or they would look as if people had edited them.
    """
    taking = _Taking(
        _Undoing(plan, journal, kinds, UndoResult(plan=plan.name, really=True), others), client, writer, on_progress
    )
    try:
        for _resource, tasks in groupby(taking.undoing.tasks(), key=lambda task: task.row.resource):
            if taking.put_off:
                for task in tasks:
                    taking.undoing.leave(task, [LATER])
                continue
            with WorkerPool(taking.take_back, worker_count(client.requests_per_minute)) as crew:
                for task in tasks:
                    crew.give(task)
    finally:
        taking.undoing.result.requests = client.requests
    return taking.undoing.result


class _Taking:
    """Takes records back, several at once."""

    def __init__(
        self,
        undoing: _Undoing,
        client: LibraryClient,
        writer: Writer,
        on_progress: Callable[[ApplyProgress], None],
    ) -> None:
        self.undoing = undoing
        self._client = client
        self._writer = writer
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._done = self._temporary = 0
        self._shown = FileVisibility(client, undoing.journal.attached_to)
        self.put_off = False
        """Whether a record could not be taken back for now, so that what it may refer to has to stay for now."""

    def take_back(self, task: _Task) -> None:
        """One record, as far as it is still as the plan left it."""
        undoing, steps = self.undoing, InverseOperations()
        try:
            task, why = self._settled(task)
            if why:
                steps.left.append(why)
            else:
                steps = undoing.judge(task, self._look(task))
                self._do(task, steps)
        except TemporaryError as error:
            with self._lock:
                self.put_off = True
                self._temporary += 1
                if self._temporary >= TEMPORARY_IN_A_ROW or self._writer.stopped:
                    raise
            steps = InverseOperations(left=[f"{error} It is tried again when this is run again."])
        except RefusedError as refusal:
            steps = InverseOperations(left=[str(refusal)])
        else:
            with self._lock:
                self._temporary = 0
        with self._lock:
            undoing.count(task, steps)
            self._done += 1
            facts, sent = undoing.plan.facts, self._client.requests
            left = 2 * max(0, facts.writes - self._done)
            self._on_progress(ApplyProgress(self._done, facts.writes, sent, left, self._client.requests_per_minute))

    def _settled(self, task: _Task) -> tuple[_Task, str]:
        """The same once it is known whether the record was created, or why nobody can tell."""
        plan, row = self.undoing.plan.name, task.row
        if row.resource != PUBLICATIONS:
            return task, _doubt(task, plan)
        created = next((one for one in task.of(plan) if one.kind == CREATED), None)
        if created is None or created.state not in (INTENDED, PARKED):
            return task, ""
        if self._writer.settle(row, created, looks=len(PAUSES)):
            self.undoing.journal.undone(created.number)
        task = task._replace(entries=self.undoing.journal.of_record(row.resource, row.source_id))
        return task, _doubt(task, plan)

    def _look(self, task: _Task) -> TargetRecord | None:
        number = task.target_id(self.undoing.plan.name)
        if number is None or task.row.resource != PUBLICATIONS:
            return _listed(task)
        record = self._client.find_record(f"{task.row.resource}/{number}")
        if record is None:
            return None
        return TargetRecord.of(record, self.undoing.kinds, all_files=self._shown.are_all(record))

    def _do(self, task: _Task, steps: InverseOperations) -> None:
        """The steps, each noted once it is answered."""
        journal, path = self.undoing.journal, f"{task.row.resource}/{task.target_id(self.undoing.plan.name)}"
        for entry, asset_id in steps.assets:
            self._delete(f"assets/{asset_id}")
            journal.undone(entry)
        if steps.patch:
            self._client.write("PATCH", path, steps.patch)
        if steps.patched:
            journal.undone(*steps.patched)
        if steps.delete:
            self._delete(path)
        if steps.whole:
            journal.undone(*steps.whole)

    def _delete(self, path: str) -> None:
        """A DELETE answered 404 is a success (trap A5)."""
        try:
            self._client.write("DELETE", path)
        except RefusedError as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise


def _listed(task: _Task) -> TargetRecord | None:
    """A record of another resource, as it was listed when the undo began: the document shows no way to read one alone."""
    return None if task.listed is None else TargetRecord(RESOURCE_TYPES[task.row.resource].compared(task.listed), [])


def _doubt(task: _Task, plan: str) -> str:
    """Why nobody can tell whether the record was created."""
    created = next((one for one in task.of(plan) if one.kind == CREATED), None)
    if created is None or created.state not in (INTENDED, PARKED):
        return ""
    return created.message or "the answer to its creation was never seen; it is looked up when this is done really"


def _backwards(plan: Plan) -> Iterator[list[PlanRow]]:
    """The rows that write, the last one first, some at a time."""
    for path, key in reversed([*plan.tables()]):
        with storage_errors(plan.folder), open_table(path, key) as file:
            for group in reversed(range(file.num_row_groups)):
                rows = file.read_row_group(group).to_pylist()
                yield [plan_row(row) for row in reversed(rows) if row["action"] in WRITTEN_ACTIONS]


def _files_before(plan: Plan, ids: Sequence[int]) -> dict[int | None, list[AttachedFile]]:
    """The files that some records of the target had when the plan was made."""
    if not ids:
        return {}
    with storage_errors(plan.folder):
        near = (pc.field("id") >= min(ids)) & (pc.field("id") <= max(ids))  # passes over most of the file
        found = pq.read_table(
            plan.target.path(RECORDS), columns=["id", "files"], filters=near & pc.field("id").isin(list(ids))
        )
    return {row["id"]: described_files(row["files"]) for row in found.to_pylist()}


def _shown(
    database: DuckDBPyConnection, now: ComparableLibrary, ids: Sequence[int | None]
) -> dict[int | None, TargetRecord]:
    """Some records as they were laid out."""
    known = [number for number in ids if number is not None]
    if not known:
        return {}
    names = ", ".join(map(quoted, WRITTEN))
    rows = database.execute(
        f"SELECT id, files, {names} FROM read_parquet({literal(exactly(now.path(RECORDS)))}) "  # noqa: S608  names of ours
        "WHERE id BETWEEN ? AND ? AND id IN (SELECT unnest(?))",  # the bounds pass over most of the file
        [min(known), max(known), known],
    ).fetchall()
    return {
        number: TargetRecord(
            {name: text for name, text in zip(WRITTEN, texts, strict=True) if text is not None}, described_files(files)
        )
        for number, files, *texts in rows
    }


def _batched(tasks: Iterator[_Task]) -> Iterator[list[_Task]]:
    batch: list[_Task] = []
    for task in tasks:
        batch.append(task)
        if len(batch) == STEP:
            yield batch
            batch = []
    if batch:
        yield batch


def keep(plan: Plan, undone: UndoResult, at: datetime) -> Path:
    """Keep what was really taken back, dated, beside the plan."""
    path = plan.path(f"undo-{at.astimezone(UTC):%Y%m%dT%H%M%SZ}.json")
    with storage_errors(plan.folder):
        write_atomically(path, msgspec.json.format(msgspec.json.encode(undone)))
    return path
