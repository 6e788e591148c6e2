"""Writes one row of a plan: the record, then its files. Each write is in the journal before it is sent and after it is answered (I8).

Any row can be written again at any time: a write that is done in the journal is not repeated, and one that is intended there was settled
before (`unclear_writes.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import msgspec

from pipelines.errors import (
    BookferryError,
    ProtocolError,
    RefusedError,
    TemporaryError,
    UnclearError,
)
from pipelines.migration.apply.attachments import Attachments, is_upload_lost
from pipelines.migration.apply.digests import enter_done, shows_any
from pipelines.migration.apply.merges import Merges
from pipelines.migration.apply.references import References
from pipelines.migration.apply.request_forms import RequestForms
from pipelines.migration.apply.row_result import COUNTS, RowResult
from pipelines.migration.apply.target_records import TargetRecords
from pipelines.migration.apply.unclear_writes import Settle, UnclearWrites
from pipelines.migration.model.actions import Action
from pipelines.migration.model.journal_entries import (
    FailedWriteError,
    JournalEntry,
    WriteKind,
    is_done,
)
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.step import Request, Step
from pipelines.records.files import COVER
from pipelines.records.values import RecordId, as_id
from pipelines.service.files.upload import Uploads


class Writer:
    """Writes rows, from several threads at once."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self._journal = step.journal
        self._uploads = Uploads(step.client)
        self.records = TargetRecords(step.client, step.read_listing)
        self.forms = RequestForms(step, self.records.current)
        self._references = References(step)
        self._attachments = Attachments(step, self._uploads, self.forms)
        self._merges = Merges(step, self.forms, self.records)
        settles: dict[WriteKind, Settle] = {
            WriteKind.ASSET: self._attachments.settle,
            WriteKind.MERGE: self._merges.settle,
            WriteKind.MEMBER: self._settle_member,
            WriteKind.COVER: lambda *_: False,  # it may be set again
        }
        self.unclear = UnclearWrites(step, self._references, settles)
        self.stopped = False
        """Whether the run is ending, so that what fails now fails because of that."""

    def close(self) -> None:
        """From now on, errors come from the end of the run."""
        self.stopped = True
        self._uploads.close()
        self.records.close()

    def write(self, row: PlanRow, result: RowResult) -> None:
        """Write the parts of a row that are not written yet. Problems of this row alone go into `result`; any other error is raised.

        Raises `UnclearError` where it is unknown whether a part was written: once that is settled, the row is written again with the same
        `result`; `StoppedResourceError` where the row is left.
        """
        if row.action == Action.MERGE:
            self._merges.write(row, result)
            return
        is_change = row.action == Action.PATCH or result.links
        with self.forms.sending(row, WriteKind.PATCH if is_change else WriteKind.CREATE):
            self._write(row, result)

    def _write(self, row: PlanRow, result: RowResult) -> None:
        if result.links:
            self._link(row, result)
            return
        entries = self.step.entries(row)
        try:
            row = self._references.resolve(row, result.problems)
            result.unresolved = list(result.problems)
            if row.action == Action.CREATE:
                target_id = self._create(row, entries.get((WriteKind.CREATE, "")), result)
                entries = self.step.entries(row)
                for name in row.after:
                    if not is_done(entries.get((WriteKind.ACTION, name))):
                        self._act(row, name, target_id)
            else:
                target_id = row.existing_target_id
                if row.payload and not is_done(entries.get((WriteKind.PATCH, ""))):
                    self._change(row, result)
        except FailedWriteError as error:
            result.problems.append(str(error))
            return
        self._attachments.attach_missing(row, target_id, entries, result)
        if row.action != Action.CREATE and result.done["files_uploaded"]:
            result.done["patched"] = 1

    def _link(self, row: PlanRow, result: RowResult) -> None:
        """Set the references that had to wait for the records to which they lead."""
        creation = self.step.entries(row).get((WriteKind.CREATE, ""))
        target_id = creation.target_id if creation is not None and creation.target_id else row.existing_target_id
        try:
            row = self._references.resolve(row, result.problems, later=True)
            posted = self.forms.posted(row)
            change = row.without(posted)
            if change.payload:
                self._change(msgspec.structs.replace(change, target_id=target_id), result)
            if posted:
                self._add(row, target_id, posted, result)
        except FailedWriteError as error:
            result.problems.append(str(error))

    def _add(
        self, row: PlanRow, target_id: RecordId, posted: Mapping[str, Collection[RecordId]], result: RowResult
    ) -> None:
        """Add records to lists below a record: those that the list lacks, which is read again where it may have some (I8)."""
        is_new = row.action == Action.CREATE and (WriteKind.LINK, "") not in self.step.entries(row)
        number = self.step.intend(row, WriteKind.LINK, target_id=target_id)
        for name, ids in posted.items():
            path, key = self.forms.addition(row, name, target_id)
            present = set[RecordId]() if is_new else self.records.entries(path)
            for record_id in ids:
                if record_id in present:
                    continue
                member = self.step.intend(row, WriteKind.MEMBER, f"{name} {record_id}", target_id=target_id)
                try:
                    self.step.send(Request("POST", path, {key: record_id}), member)
                except RefusedError as refusal:
                    problem = f"its list was not filled: {refusal}"
                    self._journal.refused(member, problem, refusal.status)
                    raise self._journal.refused(number, problem, refusal.status) from None
                self._journal.done(member, target_id=target_id)
        self.records.changed(row.resource, target_id)
        whole = {name: row.expected[name] for name in posted} if row.action == Action.CREATE else None
        self._journal.done(number, target_id=target_id, wanted=whole)
        result.done["linked"] = 1

    def _settle_member(self, row: PlanRow, entry: JournalEntry) -> bool:
        name, _, member = entry.part.partition(" ")
        path, _key = self.forms.addition(row, name, entry.target_id or row.existing_target_id)
        if is_there := as_id(member) in self.records.entries(path):
            self._journal.done(entry.number, target_id=entry.target_id or row.existing_target_id)
        return is_there

    def _create(self, row: PlanRow, entry: JournalEntry | None, result: RowResult) -> RecordId:
        """Create the record of a row, unless it is created. Returns its id."""
        if not result.may_send(self._journal, entry):
            return (entry and entry.target_id) or row.existing_target_id
        number, record, cover = self._post(row, self._attachments.upload_cover(row), result)
        target_id = as_id(str(record["id"]))
        self.records.changed(row.resource, target_id)
        shown = self._shown(row, target_id, record, row.expected)
        enter_done(self.step, number, row, target_id, shown, row.expected, result.left_out)
        result.count(WriteKind.CREATE)
        if cover is not None and record.get(COVER, cover):
            self._attachments.enter_cover(row, target_id, shown, result)
        return target_id

    def _act(self, row: PlanRow, field: str, target_id: RecordId) -> None:
        """Set a field of a new record by its own request, which may be repeated at any time."""
        number = self.step.intend(row, WriteKind.ACTION, field, target_id=target_id)
        try:
            self.step.send(self.forms.action(row, field, target_id), number)
        except RefusedError as refusal:
            raise self._journal.refused(number, f"{field} was not set: {refusal}", refusal.status) from None
        self.records.changed(row.resource, target_id)
        self._journal.done(number, target_id=target_id)

    def _shown(
        self, row: PlanRow, target_id: RecordId, answer: Mapping[str, Any], expected: Mapping[str, str | None]
    ) -> Mapping[str, Any]:
        """A record after a write. It is read where the answer has nothing of what was sent: the service may keep it otherwise.

        Where it cannot be read, it is taken to be as it was sent.
        """
        if shows_any(self.step.types[row.resource], answer, expected):
            return answer
        with suppress(TemporaryError, RefusedError, ProtocolError):  # the write itself is done
            return self.records.written(row.resource, target_id) or answer
        return answer

    def _post(
        self, row: PlanRow, cover: Mapping[str, Any] | None, result: RowResult
    ) -> tuple[int, dict[str, Any], Mapping[str, Any] | None]:
        """Create a record. Returns the number of its journal entry, the record of the response, and the cover as sent."""
        while True:
            number = self.step.intend(row, WriteKind.CREATE, wanted=row.expected)
            try:
                payload = row.payload if cover is None else {**row.payload, COVER: cover}  # service.md#covers
                record = self.step.create(self.forms.create(row, payload), number)
            except UnclearError:
                raise
            except RefusedError as refusal:
                row, cover = self._without_refused_part(row, number, cover, refusal, result)
            except BookferryError:
                self._journal.withdraw(number)  # it had no effect
                result.sends[""] -= 1
                raise
            else:
                return number, record, cover

    def _without_refused_part(
        self,
        row: PlanRow,
        number: int,
        cover: Mapping[str, Any] | None,
        refusal: RefusedError,
        result: RowResult,
    ) -> tuple[PlanRow, Mapping[str, Any] | None]:
        """Returns what to try next after a refusal: the record without a missing reference, then without its cover; neither must cost it.

        A 404 says that something was not found. Where its code does not say what, the record is refused.
        """
        if (reduced := self._references.without_missing(row, refusal, result.lasting)) is not None:
            return reduced, cover
        if cover is not None and (refusal.status != HTTPStatus.NOT_FOUND or is_upload_lost(refusal)):
            return row, None  # it follows alone, with a new upload
        raise self._journal.refused(
            number, self.forms.explained(row, WriteKind.CREATE, refusal), refusal.status
        ) from None

    def _change(self, row: PlanRow, result: RowResult) -> None:
        """Change fields, which may be repeated at any time."""
        target_id, payload = row.existing_target_id, row.payload
        expected = {name: row.expected.get(name) for name in payload}
        number = self.step.intend(
            row,
            result.change,
            target_id=target_id,
            wanted=expected,
        )
        try:
            response = self.step.send(self.forms.change(row, target_id, payload), number)
        except RefusedError as refusal:
            reduced = self._references.without_missing(row, refusal, result.lasting)
            if reduced is None or not reduced.payload:
                problem = self.forms.explained(row, WriteKind.PATCH, refusal)
                raise self._journal.refused(number, problem, refusal.status) from None
            self._change(reduced, result)
            return
        self.records.changed(row.resource, target_id)
        shown = self._shown(row, target_id, response if isinstance(response, dict) else {}, expected)
        enter_done(self.step, number, row, target_id, shown, expected, result.left_out)
        result.done[COUNTS[result.change]] = 1
