"""Attaches files to a record: form, upload, then POST /assets (service.md#upload).

An upload alone changes nothing in the library and may be repeated. POST /assets must take effect only once: after a lost response the
record is read (`unclear_writes.py`); a new asset that is like the file is the one created, else it is sent again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pipelines.errors import (
    ProtocolError,
    RefusedError,
    StorageError,
    TemporaryError,
)
from pipelines.inventory import record_path
from pipelines.migration.apply.request_forms import RequestForms
from pipelines.migration.apply.row_result import RowResult
from pipelines.migration.model.file_comparison import differing_parts, match_files, part_of
from pipelines.migration.model.journal_entries import (
    FailedWriteError,
    JournalEntry,
    WriteKind,
    WriteState,
)
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.model.row_writes import KINDS
from pipelines.migration.model.step import Request, Step
from pipelines.migration.plan.files import OCTETS
from pipelines.records.files import COVER, AttachedFile, attached_files
from pipelines.service.files.upload import StorageRefusalError, UnavailableStorageError, Uploads

FILE_ERRORS = (RefusedError, StorageError, UnavailableStorageError)
"""What is about one file: its record and the others are written."""

UPLOADS = 3
"""Times that a file is uploaded whose upload was lost."""

UNNAMED = "file"
"""The name of a file without one, where a name is needed."""


class Attachments:
    """Attaches files, from several threads at once; the files of one record are for one thread."""

    def __init__(self, step: Step, uploads: Uploads, forms: RequestForms) -> None:
        self._step = step
        self._journal = step.journal
        self._uploads = uploads
        self._forms = forms

    def send(self, row: PlanRow, part: str, result: RowResult) -> None:
        """Attach a file of a row. One damaged content must not cost the others."""
        file = self._file(row, part)
        try:
            self._attach(row, file)
        except FILE_ERRORS as refusal:
            message, status = f"{describe_file(file)}: {refusal}", getattr(refusal, "status", 0) or None
            result.may_pass |= isinstance(refusal, UnavailableStorageError)
            raise self._journal.refused(self._intend(row, file), message, status) from None

    @staticmethod
    def _file(row: PlanRow, part: str) -> PlannedFile:
        return next(file for file in row.uploads if part_of(file) == part)

    def settle(self, row: PlanRow, entry: JournalEntry) -> bool:
        """Enter a POST without a response as done, if it created an asset that no write accounts for; returns whether it did.

        Raises `FailedWriteError` where the service does not show that; the entry is parked.
        """
        file, target_id = self._file(row, entry.part), row.existing_target_id
        record = self._step.client.get_record(record_path(row.resource, target_id))
        if not shows_files(record):
            message = f"{describe_file(file)}: it is unknown whether it was attached, because the service does not show the files"
            self._journal.parked(entry.number, message)
            raise FailedWriteError(message)
        [(_, match)], _ = match_files([file], attached_files(record), {}, self._known_asset_ids(row))
        if match is not None:
            changes = self._changes(row, file, {"id": match.asset_id})
            self._journal.done(entry.number, target_id=target_id, asset_id=match.asset_id, message=changes)
        return match is not None

    def upload(self, file: PlannedFile) -> dict[str, Any]:
        """Upload a file; the library does not have it yet. Returns its `{id, storage: cache, metadata}` (service.md#upload)."""
        sha256, size = file.content
        try:
            return self._uploads.upload(
                lambda: self._step.open_blob(sha256),
                presign=self._forms.presign(file.kind),
                filename=file.filename or file.name or UNNAMED,
                content_type=file.content_type or OCTETS,
                size=size,
                sha256=sha256,
            )
        except StorageRefusalError:
            raise
        except RefusedError as refusal:
            raise RefusedError(self._forms.unsigned(file.kind, refusal), status=refusal.status) from None

    def upload_cover(self, row: PlanRow) -> dict[str, Any] | None:
        """Upload the cover that is sent with a new record, which saves a request. Where that fails, it follows alone."""
        for file in row.uploads:
            if file.kind == COVER:
                with suppress(*FILE_ERRORS):
                    return self.upload(file)
        return None

    def enter_cover(self, row: PlanRow, response: Mapping[str, Any], result: RowResult) -> None:
        """Note that a cover was set by a request that is answered."""
        for file in row.uploads:
            if file.kind == COVER:
                number = self._intend(row, file)
                self._journal.done(number, target_id=row.existing_target_id, message=changes_in(file, response))
                result.done["files_uploaded"] += 1

    def _intend(self, row: PlanRow, file: PlannedFile) -> int:
        return self._step.intend(row, KINDS[file.kind], part_of(file), target_id=row.target_id)

    def _attach(self, row: PlanRow, file: PlannedFile) -> None:
        """Upload a file and send the request that makes it part of its record; a lost upload is sent anew."""
        target_id, uploaded, uploads = row.existing_target_id, self.upload(file), 1
        while True:
            number = self._intend(row, file)
            try:
                if file.kind == COVER:
                    answer = self._step.send(self._forms.change(row, {COVER: uploaded}), number)
                    asset_id, changes = None, changes_in(file, answer if isinstance(answer, dict) else {})
                else:
                    body = {
                        "publication_id": target_id,
                        "content_type": file.content_type or OCTETS,
                        "file": uploaded,
                    }
                    body |= {"name": file.name} if file.name else {}
                    asset = self._step.create(Request("POST", "assets", body, body), number)
                    asset_id = int(asset["id"])
                    changes = self._changes(row, file, asset)
            except RefusedError as refusal:
                if not is_upload_lost(refusal) or uploads == UPLOADS:
                    raise
                uploaded, uploads = self.upload(file), uploads + 1
            else:
                self._journal.done(number, target_id=target_id, asset_id=asset_id, message=changes)
                return

    def _changes(self, row: PlanRow, file: PlannedFile, asset: Mapping[str, Any]) -> str | None:
        """What the service changed about a file. Its record is read where an answer has only its number: the names may be others there."""
        if not asset.keys() & {"name", "file"}:
            with suppress(TemporaryError, RefusedError, ProtocolError):  # the write itself is done
                record = self._step.client.get_record(record_path(row.resource, row.target_id))
                shown = (entry for entry in record.get("assets") or () if isinstance(entry, dict))
                asset = next((entry for entry in shown if entry.get("id") == asset["id"]), asset)
        return changes_in(file, {"assets": [asset]})

    def _known_asset_ids(self, row: PlanRow) -> set[int | None]:
        """The assets of a record that the journal or the plan accounts for."""
        entries: list[JournalEntry] = self._journal.of_record(row.resource, row.source_id)
        attached = {
            entry.asset_id for entry in entries if entry.kind == WriteKind.ASSET and entry.state == WriteState.DONE
        }
        return attached | {file.target_asset_id for file in row.files}


def shows_files(record: Mapping[str, Any]) -> bool:
    """Whether a record shows which files it has; no document says that every response does (service.md#assets, service.md#not-shown)."""
    return isinstance(record.get("assets"), list)


def changes_in(file: PlannedFile, record: Mapping[str, Any]) -> str | None:
    """What the service changed about a file, by a response with this file alone."""
    attached = next((candidate for candidate in attached_files(record) if candidate.kind == file.kind), None)
    return attached and change_of(file, attached)


def change_of(file: PlannedFile, attached: AttachedFile) -> str | None:
    """What the target has otherwise of a file; None where it is as planned, as far as the service shows it."""
    parts = differing_parts(file, attached)
    return f"{describe_file(file)}: in the target it has another {parts}." if parts else None


def describe_file(file: PlannedFile) -> str:
    """Returns a file as messages name it."""
    return f"The {'cover' if file.kind == COVER else 'file'} {file.filename or file.name or ''}".rstrip()


def is_upload_lost(refusal: RefusedError) -> bool:
    """Whether the service did not find an upload in its storage, by the error code at any 4xx (service.md#upload)."""
    code = "".join(filter(str.isalnum, refusal.code)).lower()
    return "storage" in code and ("notfound" in code or "missing" in code)
