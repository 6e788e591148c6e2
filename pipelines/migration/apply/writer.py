"""Writes one row of a plan: the record, then its files. Each write is in the journal before it is sent and after it is answered (I8).

Any row can be written again at any time: a write that is done in the journal is not repeated, and one that is intended there was settled
before (`unclear_writes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

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
from pipelines.migration.apply.row_result import RowResult
from pipelines.migration.apply.target_records import TargetRecords
from pipelines.migration.apply.unclear_writes import Settle, UnclearWrites
from pipelines.migration.model.actions import Action
from pipelines.migration.model.journal_entries import (
    FailedWriteError,
    JournalEntry,
    WriteKind,
)
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.row_writes import LINK, writes_of
from pipelines.migration.model.step import Request, Step
from pipelines.records.files import COVER
from pipelines.records.values import RecordId, as_id, id_order
from pipelines.service.files.upload import Uploads

Send = Callable[[PlanRow, str, RowResult], None]
"""Sends one part of a row, whose record in the target is known unless the part creates it. A refusal is a `FailedWriteError`."""


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
        self._sends: dict[WriteKind, Send] = {
            WriteKind.CREATE: self._create,
            WriteKind.PATCH: self._change,
            WriteKind.ACTION: self._act,
            WriteKind.COVER: self._attachments.send,
            WriteKind.ASSET: self._attachments.send,
            WriteKind.MERGE: self._merges.send,
            WriteKind.LINK: self._link,
        }
        settles: dict[WriteKind, Settle] = {
            WriteKind.ASSET: self._attachments.settle,
            WriteKind.MERGE: self._merges.settle,
            WriteKind.MEMBER: self._settle_member,
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

        Raises `UnclearError` where it is unknown whether a part was written, after the others: once that is settled, the row is written
        again with the same `result`; `StoppedResourceError` where the row is left.
        """
        writes = [write for write in writes_of(row) if (write == LINK) == result.links]
        with self.forms.sending(row, WriteKind.PATCH if result.links else WriteKind(row.action)):
            try:
                row = self._references.resolve(row, result.problems, later=result.links)
            except FailedWriteError as error:
                result.problems.append(str(error))
            else:
                self._write(writes, row, result)
        if row.action == Action.PATCH and result.done["files_uploaded"]:
            result.done["patched"] = 1

    def _write(self, writes: Sequence[tuple[WriteKind, str]], row: PlanRow, result: RowResult) -> None:
        unclear: UnclearError | None = None
        for kind, part in writes:
            entries = self.step.entries(row)
            creation = entries.get((WriteKind.CREATE, ""))
            if creation is not None and creation.target_id is not None:
                row = replace(row, target_id=creation.target_id)
            try:
                if result.may_send(self._journal, entries.get((kind, part)), part):
                    self._sends[kind](row, part, result)
                    result.count(kind, part)
            except FailedWriteError as error:
                result.problems.append(str(error))
            except UnclearError as error:
                unclear = error
            else:
                continue
            if not part:  # without the record itself there is nothing to which the others could belong
                break
        if unclear is not None:
            raise unclear

    def _link(self, row: PlanRow, part: str, result: RowResult) -> None:
        """Set the references that had to wait for the records to which they lead."""
        posted = self.forms.posted(row)
        change = row.without(posted)
        if change.payload:
            self._change(change, part, result)
        if posted:
            self._add(row, posted)

    def _add(self, row: PlanRow, posted: Mapping[str, Collection[RecordId]]) -> None:
        """Add records to lists below a record: those that the list lacks, which is read again where it may have some (I8).

        Nothing is taken out of them; what the source does not have any more is noted.
        """
        target_id, digest_of = row.existing_target_id, self.step.types[row.resource].digest_of
        is_new = row.action == Action.CREATE and (WriteKind.LINK, "") not in self.step.entries(row)
        number = self.step.intend(row, WriteKind.LINK, target_id=target_id)
        wanted, held, stay = dict[str, str | None](), dict[str, str | None](), list[str]()
        for name, ids in posted.items():
            path, key = self.forms.addition(row, name)
            present = set[RecordId]() if is_new else self.records.entries(row.resource, path)
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
            wanted[name], held[name] = digest_of(name, [*ids]), digest_of(name, [*present.union(ids)])
            if further := sorted(present.difference(ids), key=id_order):
                stay.append(
                    f"{name}: its list still has {', '.join(map(str, further))}, and nothing is taken out of such a list."
                )
        self.records.changed(row.resource, target_id)
        self._journal.done(number, target_id=target_id, wanted=wanted, held=held, message=" ".join(stay) or None)

    def _settle_member(self, row: PlanRow, entry: JournalEntry) -> bool:
        name, _, member = entry.part.partition(" ")
        path, _key = self.forms.addition(row, name)
        if is_there := as_id(member) in self.records.entries(row.resource, path):
            self._journal.done(entry.number, target_id=row.existing_target_id)
        return is_there

    def _create(self, row: PlanRow, _part: str, result: RowResult) -> None:
        number, record, cover = self._post(row, self._attachments.upload_cover(row), result)
        row = replace(row, target_id=as_id(str(record["id"])))
        self.records.changed(row.resource, row.existing_target_id)
        shown = self._shown(row, record, row.expected)
        enter_done(self.step, number, row, shown, row.expected, result.left_out)
        if cover is not None and record.get(COVER, cover):
            self._attachments.enter_cover(row, shown, result)

    def _act(self, row: PlanRow, field: str, _result: RowResult) -> None:
        """Set a field of a new record by its own request."""
        number = self.step.intend(row, WriteKind.ACTION, field, target_id=row.target_id)
        try:
            self.step.send(self.forms.action(row, field), number)
        except RefusedError as refusal:
            raise self._journal.refused(number, f"{field} was not set: {refusal}", refusal.status) from None
        self.records.changed(row.resource, row.existing_target_id)
        self._journal.done(number, target_id=row.existing_target_id)

    def _shown(self, row: PlanRow, answer: Mapping[str, Any], expected: Mapping[str, str | None]) -> Mapping[str, Any]:
        """A record after a write. It is read where the answer has nothing of what was sent: the service may keep it otherwise.

        Where it cannot be read, it is taken to be as it was sent.
        """
        if shows_any(self.step.types[row.resource], answer, expected):
            return answer
        with suppress(TemporaryError, RefusedError, ProtocolError):  # the write itself is done
            return self.records.written(row.resource, row.existing_target_id) or answer
        return answer

    def _post(
        self, row: PlanRow, cover: Mapping[str, Any] | None, result: RowResult
    ) -> tuple[int, dict[str, Any], Mapping[str, Any] | None]:
        """Create a record. Returns the number of its journal entry, the record of the response, and the cover as sent."""
        while True:
            number = self.step.intend(row, WriteKind.CREATE, wanted=row.expected)
            try:
                payload = row.payload if cover is None else {**row.payload, COVER: cover}  # service.md#covers
                record = self.step.create(self.forms.create(row, payload), number, row)
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

    def _change(self, row: PlanRow, part: str, result: RowResult) -> None:
        target_id, payload, kind = (
            row.existing_target_id,
            row.payload,
            WriteKind.LINK if result.links else WriteKind.PATCH,
        )
        if not payload:  # the record to which it was to refer is not there
            raise FailedWriteError(result.problems.pop())
        expected = {name: row.expected.get(name) for name in payload}
        number = self.step.intend(row, kind, target_id=target_id, wanted=expected)
        try:
            response = self.step.send(self.forms.change(row, payload), number)
        except RefusedError as refusal:
            reduced = self._references.without_missing(row, refusal, result.lasting)
            if reduced is None or not reduced.payload:
                problem = self.forms.explained(row, WriteKind.PATCH, refusal)
                raise self._journal.refused(number, problem, refusal.status) from None
            self._change(reduced, part, result)
            return
        self.records.changed(row.resource, target_id)
        shown = self._shown(row, response if isinstance(response, dict) else {}, expected)
        enter_done(self.step, number, row, shown, expected, result.left_out)
