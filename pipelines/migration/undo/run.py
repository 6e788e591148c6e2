"""Takes a plan back: deletes the records that it created, gives changed fields their old values, the last record first (I8).

It may be stopped at any instant and run again: each record is read just before it is written, and each of its requests may be repeated.
Nothing is deleted except what the journal says this plan created or attached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter

from msgspec.structs import replace

from pipelines.errors import RefusedError
from pipelines.inventory import record_path
from pipelines.migration.apply.attachments import shows_files
from pipelines.migration.apply.executor import Executor
from pipelines.migration.apply.references import is_record_not_found
from pipelines.migration.apply.row_result import RowResult
from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import Side
from pipelines.migration.model.comparison_database import in_steps
from pipelines.migration.model.file_comparison import described_files, files_of, part_of
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.step import Request
from pipelines.migration.undo.decision import InverseRow, TargetRecord, inverse_row
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.undo.worklist import OPEN, UndoItem, item_of, worklist
from pipelines.records.values import RecordId
from pipelines.service.threads import WorkerPool


class UndoRun(Executor[UndoResult]):
    """One run that takes a plan back, or only says how."""

    command, verb, code = "undo", "taken back", "left"
    is_ordered = True

    def run(self) -> UndoResult:
        """Take the plan back. A problem of one record is in the result; any other error is raised, and the next run goes on.

        One resource after the other, the last one first: a record is deleted after those that refer to it, which would look edited
        otherwise. So links to records that were created later are taken back before anything else.
        """
        if any(kind == WriteKind.LINK and state in OPEN for kind, state in self._journal.counts(self._plan.name)):
            linked = (item.row for item in worklist(self._plan, self._journal) if item.links)
            for resource, rows in groupby(linked, key=attrgetter("resource")):
                self._write_resource(resource, rows, links=True)
        written = (item.row for item in worklist(self._plan, self._journal))
        for resource, rows in groupby(written, key=attrgetter("resource")):
            self._write_resource(resource, rows)
        return self.result

    def dry_run(self, now: Mapping[str, Side]) -> UndoResult:
        """Add what an undo would do to the target as it is `now`. Writes nothing."""
        for resource, items in groupby(worklist(self._plan, self._journal), key=lambda item: item.row.resource):
            for batch in in_steps(items):
                records = self._records(now[resource], {item.target_id for item in batch if item.target_id is not None})
                for item in batch:
                    result = RowResult(item.row)
                    self._done(result, self._decided(result, item, records.get(item.target_id or 0)))
                    self._count(result)
        return self.result

    def _rows(self, resource: str) -> Iterator[PlanRow]:
        return (item.row for item in worklist(self._plan, self._journal) if item.row.resource == resource)

    def _has_to_wait(self, result: RowResult, pool: WorkerPool[RowResult]) -> bool:
        """Waits, in a resource with references to itself, for the records before, which may refer to it."""
        resource = result.row.resource
        if result.links or resource not in self._step.types[resource].referred:
            return False
        pool.wait_until(lambda: not self._in_flight)
        if not self._again:
            return False
        self._postpone(result)
        return True

    def _send(self, result: RowResult) -> None:
        item = item_of(self._plan, self._journal, result.row)
        inverse = self._decided(result, item, self._read(item))
        try:
            self._take_back(item, inverse)
        except RefusedError as refusal:
            result.problems.append(str(refusal))
        else:
            if not result.links or item.creation is None:  # else it is counted when the record itself is taken back
                self._done(result, inverse)

    def _decided(self, result: RowResult, item: UndoItem, record: TargetRecord | None) -> InverseRow:
        resource_type, removes = self._step.types[item.row.resource], self._writer.forms.removes
        removable = [name for name in resource_type.posted if removes(item.row.resource, name)]
        inverse = inverse_row(item, record, resource_type, only_links=result.links, removable=removable)
        result.row, result.stays = inverse, inverse.stays
        return inverse

    def _done(self, result: RowResult, inverse: InverseRow) -> None:
        result.done.update(inverse.done)
        self.result.list_row(inverse)

    def _read(self, item: UndoItem) -> TargetRecord | None:
        resource_type = self._step.types[item.row.resource]
        number = item.target_id
        record = None if number is None else self._writer.records.current(item.row.resource, number)
        if record is None:
            return None
        row = replace(item.row, target_id=number)
        lists = {name: self._writer.forms.addition(row, name)[0] for name in resource_type.posted}
        record = {
            **record,
            **{name: sorted(self._writer.records.entries(row.resource, path)) for name, path in lists.items()},
        }
        return TargetRecord.of(record, resource_type, all_files=not resource_type.has_files or shows_files(record))

    def _records(self, now: Side, ids: set[RecordId]) -> dict[RecordId, TargetRecord]:
        """Id → the record in the target as it is `now`."""
        compared = self._step.types[now.resource].compared
        files = {
            number: described_files(text) if shows_files(files_of(text)) else None
            for number, text in now.files(ids).items()
        }
        return {
            number: TargetRecord(compared(form.values), files.get(number, []))
            for number, form in now.forms(ids).items()
        }

    def _take_back(self, item: UndoItem, inverse: InverseRow) -> None:
        """Send the requests of a row; the entries that each undoes are in the journal when it leaves and once it is answered."""
        numbers = {entry.part: entry.number for entry in item.open_entries}
        record = record_path(inverse.resource, inverse.target_id)
        below = {numbers[part_of(file)]: f"assets/{file.target_asset_id}" for file in inverse.files}
        below |= {number: f"{record}/{path}" for number, path in inverse.members.items()}
        for number, path in below.items():
            self._request(Request("DELETE", path), number)
            self._journal.undone(number)
            self._writer.records.changed(inverse.resource, inverse.existing_target_id)
        if inverse.payload:
            change = self._writer.forms.change(inverse, inverse.payload)
            self._request(change, *inverse.undoes)
            self._writer.records.changed(inverse.resource, inverse.existing_target_id)
        elif inverse.action == Action.DELETE:
            self._request(Request("DELETE", record), *inverse.undoes)
        for entry in item.open_entries if inverse.released else ():
            self._journal.release(entry, inverse.released)
        if inverse.undoes:
            self._journal.undone(*inverse.undoes)

    def _request(self, request: Request, *entries: int) -> None:
        """Send a request; a record that a DELETE does not find is gone: its first try had its effect, or somebody deleted it (I8)."""
        try:
            self._step.send(request, *entries)
        except RefusedError as refusal:
            if request.method != "DELETE" or not is_record_not_found(refusal):
                raise
