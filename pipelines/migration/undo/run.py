"""Takes a plan back: deletes the records that it created, gives changed fields their old values, the last record first (I8).

It may be stopped at any instant and run again: each item reads the record first, and each of its requests may be repeated. Nothing is
deleted except what the journal says this plan created or attached.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from itertools import groupby
from typing import Any

from pipelines.errors import RefusedError, TemporaryError
from pipelines.migration.apply.file_visibility import FileVisibility
from pipelines.migration.apply.run import TEMPORARY_IN_A_ROW, ApplyProgress
from pipelines.migration.apply.worker_pool import WorkerPool, worker_count
from pipelines.migration.apply.writer import Writer
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.undo.decision import InverseOperations, TargetRecord, decide_undo
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.undo.worklist import OPEN, UndoItem, worklist
from pipelines.service.client import LibraryClient

POSTPONED = "a record that may refer to it could not be taken back for now; it follows when undo runs again"


class UndoRun:
    """One run that takes a plan back, several records at once."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        types: Mapping[str, ResourceType],
        client: LibraryClient,
        writer: Writer,
        *,
        on_progress: Callable[[ApplyProgress], None],
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._types = types
        self._client = client
        self._writer = writer
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._done = self._temporary_errors = 0
        self._file_visibility = FileVisibility(client, journal.ids_with_new_files)
        self._postponed = False
        """Whether a record could not be taken back for now; the records to which it may refer have to stay, too."""
        self.result = UndoResult(plan=plan.name, really=True)

    def run(self) -> UndoResult:
        """Take the plan back. A problem of one record is in the result; any other error is raised, and the next run goes on.

        One resource after the other, the last one first: a record is deleted after those that refer to it, which would look edited
        otherwise. So links to records that were created later are taken back before anything else.
        """
        plan, workers = self._plan, worker_count(self._client.requests_per_minute)
        try:
            if any(kind == WriteKind.LINK and state in OPEN for kind, state in self._journal.counts(plan.name)):
                with WorkerPool(self.take_links_back, workers) as pool:
                    for item in worklist(plan, self._journal):
                        if item.links:
                            pool.submit(item)
            for resource, items in groupby(worklist(plan, self._journal), key=lambda item: item.row.resource):
                if self._postponed:
                    for item in items:
                        self.result.leave(item, [POSTPONED])
                    continue
                is_chained = resource in self._types[resource].references.values()  # one after the other
                with WorkerPool(self.take_back, 1 if is_chained else workers) as pool:
                    for item in items:
                        pool.submit(item)
        finally:
            self.result.requests = self._client.requests
        return self.result

    def take_links_back(self, item: UndoItem) -> None:
        """Take the links of one record back; a record that the plan did not create is taken back as a whole."""
        self.take_back(item, only_links=item.creation is not None)

    def take_back(self, item: UndoItem, *, only_links: bool = False) -> None:
        """Take one record back, as far as it still is as the plan left it."""
        try:
            if item.doubt:
                operations = InverseOperations(left_reasons=[item.doubt])
            else:
                resource_type = self._types[item.row.resource]
                operations = decide_undo(item, self._read(item), resource_type, only_links=only_links)
                self._execute(item, operations)
        except TemporaryError as error:
            with self._lock:
                self._postponed = True
                self._temporary_errors += 1
                if self._temporary_errors >= TEMPORARY_IN_A_ROW or self._writer.stopped:
                    raise
            operations = InverseOperations(left_reasons=[f"{error} The next undo of this plan tries it again."])
        except RefusedError as refusal:
            operations = InverseOperations(left_reasons=[str(refusal)])
        else:
            with self._lock:
                self._temporary_errors = 0
        if only_links and not operations.left_reasons:
            return  # it is counted when the record itself is taken back
        with self._lock:
            self.result.count(item, operations)
            self._done += 1
            self._report_progress()

    def _report_progress(self) -> None:
        writes, client = self._plan.facts.writes, self._client
        requests_left = 2 * max(0, writes - self._done)
        self._on_progress(ApplyProgress(self._done, writes, client.requests, requests_left, client.requests_per_minute))

    def _read(self, item: UndoItem) -> TargetRecord | None:
        if item.target_id is None:
            return None
        record, resource_type = (
            self._writer.records.current(item.row.resource, item.target_id),
            self._types[item.row.resource],
        )
        if record is None:
            return None
        shows_files = not resource_type.has_files or self._file_visibility.shows_all(record)
        return TargetRecord.of(record, resource_type, all_files=shows_files)

    def _execute(self, item: UndoItem, operations: InverseOperations) -> None:
        """Send the operations; each is in the journal when it leaves and once it is answered."""
        path = f"{item.row.resource}/{item.target_id}"
        for entry, asset_id in operations.assets:
            self._delete(f"assets/{asset_id}", [entry])
            self._journal.undone(entry)
        if operations.patch:
            change = self._writer.forms.change(item.row, item.target_id or 0, operations.patch)
            self._write(change.method, change.path, operations.patch_entries, change.body)
            self._writer.records.changed(item.row.resource, item.target_id or 0)
        if operations.patch_entries:
            self._journal.undone(*operations.patch_entries)
        if operations.delete:
            self._delete(path, operations.final_entries)
        if operations.final_entries:
            self._journal.undone(*operations.final_entries)

    def _write(self, method: str, path: str, entries: Sequence[int], body: Mapping[str, Any] | None = None) -> None:
        try:
            self._client.write(method, path, body, on_leave=partial(self._journal.sent, *entries))
        except RefusedError:
            self._journal.answered(*entries)
            raise

    def _delete(self, path: str, entries: Sequence[int]) -> None:
        """Delete; a 404 is a success: the first try had its effect, or somebody else deleted it (I8)."""
        try:
            self._write("DELETE", path, entries)
        except RefusedError as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
