"""Attaches files to a record: form, upload, then POST /assets (service.md#upload).

An upload alone changes nothing in the library and may be repeated. POST /assets must take effect only once: after a lost response the
record is read once its request can take no effect any more; a new asset that is like the file is the one created, else it is sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, BinaryIO

import msgspec

from pipelines.errors import (
    ProtocolError,
    RefusedError,
    StorageError,
    TemporaryError,
    UnclearError,
    UnnamedRecordError,
)
from pipelines.migration.apply.file_visibility import FileVisibility
from pipelines.migration.apply.late_effects import PendingWriteError
from pipelines.migration.apply.request_forms import RequestForms
from pipelines.migration.apply.row_result import IF_NOT_FOUND, RowResult
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import (
    FailedWriteError,
    JournalEntry,
    WriteKind,
    WriteState,
    is_done,
    is_unsettled,
    was_accepted,
)
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.plan.files import OCTETS, differing_parts, part_of
from pipelines.records.files import ASSET, COVER, AttachedFile, attached_files
from pipelines.service.client import LibraryClient
from pipelines.service.files.upload import StorageRefusalError, UnavailableStorageError, Uploads

FILE_ERRORS = (RefusedError, StorageError, UnavailableStorageError)
"""What is about one file: its record and the others are written."""

TRIES = 2
"""Times that a run sends a POST whose response was lost and that had no effect."""

UPLOADS = 3
"""Times that a file is uploaded whose upload was lost."""

UNNAMED = "file"
"""The name of a file without one, where a name is needed."""


class Attachments:
    """Attaches files, from several threads at once; the files of one record are for one thread."""

    def __init__(  # noqa: PLR0917  both ends, and what is known of them
        self,
        plan: str,
        journal: Journal,
        client: LibraryClient,
        uploads: Uploads,
        open_blob: Callable[[str], AbstractContextManager[BinaryIO]],
        file_visibility: FileVisibility,
        *,
        forms: RequestForms,
    ) -> None:
        self._forms = forms
        self._plan = plan
        self._journal = journal
        self._client = client
        self._uploads = uploads
        self._open_blob = open_blob
        self._file_visibility = file_visibility

    def attach_missing(
        self, row: PlanRow, target_id: int, entries: Mapping[tuple[str, str], JournalEntry], result: RowResult
    ) -> None:
        """Attach the files of a row that are not done. A refused one becomes a problem of `result`.

        `entries`: (kind, part) → this plan's write of the record. Raises `PendingWriteError` where one has to wait, after the others.
        """
        pending: PendingWriteError | None = None
        for file in row.attached:
            entry = entries.get((WriteKind.ASSET, part_of(file)))
            if not is_done(entry):
                try:
                    self.attach(row, target_id, file, entry, result)
                except FailedWriteError as error:
                    result.problems.append(str(error))
                    result.may_pass |= isinstance(error.__cause__, UnavailableStorageError)
                except PendingWriteError as later:
                    pending = later
                else:
                    result.done["files_uploaded"] += 1
        if pending is not None:
            raise pending

    def attach(
        self, row: PlanRow, target_id: int, file: PlannedFile, entry: JournalEntry | None, result: RowResult
    ) -> None:
        """Attach one file, unless an earlier request did. `entry`: its write in the journal, whose request can take no effect any more.

        Raises `FailedWriteError` for a refusal, `PendingWriteError` where this request may take effect.
        """
        key = (self._plan, row.resource, row.source_id, WriteKind.ASSET, part_of(file))
        asset_id, changes = None, None
        try:
            if entry is not None and is_unsettled(entry):
                number, asset_id = entry.number, self._settled(row, target_id, file, entry)
                changes = self._changes(row, target_id, file, {"id": asset_id}) if asset_id is not None else None
                if asset_id is None and result.sends[part_of(file)] >= TRIES:
                    raise RefusedError(f"{TRIES} tries did not attach it. {result.unclear}".rstrip(), status=0)
            if asset_id is None:
                number, asset_id, changes = self._post(row, target_id, file, result)
        except FILE_ERRORS as refusal:  # one damaged content must not cost the others
            message, status = f"{describe_file(file)}: {refusal}", getattr(refusal, "status", 0) or None
            raise self._journal.refused(self._journal.intend(*key, target_id=target_id), message, status) from refusal
        self._journal.done(number, target_id=target_id, asset_id=asset_id, message=changes)

    def upload(self, file: PlannedFile) -> dict[str, Any]:
        """Upload a file; the library does not have it yet. Returns its `{id, storage: cache, metadata}` (service.md#upload)."""
        sha256, size = file.content
        try:
            uploaded = self._uploads.upload(
                lambda: self._open_blob(sha256),
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
        if file.filename == "":  # the form needs some name, the library does not
            uploaded["metadata"]["filename"] = ""
        return uploaded

    def upload_cover(self, row: PlanRow, cover: PlannedFile | None, result: RowResult) -> dict[str, Any] | None:
        """Upload the cover that is sent with a record. Where that fails, it is a problem, and the record goes without it."""
        if cover is None:
            return None
        try:
            return self.upload(cover)
        except FILE_ERRORS as refusal:
            message = f"{describe_file(cover)}: {refusal}"
            key = (self._plan, row.resource, row.source_id, WriteKind.COVER, part_of(cover))
            self._journal.refused(self._journal.intend(*key), message, getattr(refusal, "status", None))
            result.problems.append(message)
            result.may_pass |= isinstance(refusal, UnavailableStorageError)
            return None

    def enter_cover(
        self, row: PlanRow, cover: PlannedFile, target_id: int, result: RowResult, response: Mapping[str, Any]
    ) -> None:
        """Note that a cover was set by a request that is answered."""
        key = (self._plan, row.resource, row.source_id, WriteKind.COVER, part_of(cover))
        number = self._journal.intend(*key, target_id=target_id)
        self._journal.done(number, target_id=target_id, message=changes_in(cover, response))
        result.done["files_uploaded"] += 1

    def _post(self, row: PlanRow, target_id: int, file: PlannedFile, result: RowResult) -> tuple[int, int, str | None]:
        """Upload a file and create its asset. Returns the numbers of the journal entry and of the asset, and what the service changed."""
        part, uploaded, sent, uploads = part_of(file), self.upload(file), file, 1
        key = (self._plan, row.resource, row.source_id, WriteKind.ASSET, part)
        result.sends[part] += 1
        while True:
            number = self._journal.intend(*key, target_id=target_id)
            try:
                body = {"publication_id": target_id, "content_type": sent.content_type or OCTETS, "file": uploaded}
                body |= {} if sent.name is None else {"name": sent.name}
                leave = partial(self._journal.sent, number)
                asset = self._client.create("assets", body, fields=body, on_leave=leave)
            except UnnamedRecordError as unnamed:
                message = f"{describe_file(file)}: {unnamed} {IF_NOT_FOUND}"
                self._journal.accepted(number, message, unnamed.status)
                raise PendingWriteError from None
            except UnclearError as unclear:
                result.unclear = str(unclear)
                raise PendingWriteError from None
            except RefusedError as refusal:
                self._journal.answered(number)
                if refusal.status == HTTPStatus.UNPROCESSABLE_ENTITY and "" in (sent.name, sent.filename):
                    sent, uploaded = _with_names(sent, uploaded)  # it takes no empty name; the change is in the journal
                    continue
                if not is_upload_lost(refusal) or uploads == UPLOADS:
                    raise
                uploaded, uploads = self.upload(file), uploads + 1
            else:
                return number, int(asset["id"]), self._changes(row, target_id, file, asset) or _changes(file, sent)

    def _changes(self, row: PlanRow, target_id: int, file: PlannedFile, asset: Mapping[str, Any]) -> str | None:
        """What the service changed about a file. Its record is read where an answer has only its number: the names may be others there."""
        if not asset.keys() & {"name", "file"}:
            with suppress(TemporaryError, RefusedError, ProtocolError):  # the write itself is done
                record = self._client.get_record(f"{row.resource}/{target_id}")
                shown = (entry for entry in record.get("assets") or () if isinstance(entry, dict))
                asset = next((entry for entry in shown if entry.get("id") == asset["id"]), asset)
        return changes_in(file, {"assets": [asset]})

    def _settled(self, row: PlanRow, target_id: int, file: PlannedFile, entry: JournalEntry) -> int | None:
        """Returns the asset that a POST without a response created; None where it is to be sent again.

        Raises `FailedWriteError` where that is unknown, or the service had answered with success; the entry is parked.
        """
        if (asset_id := self._find_attached(row, entry.number, target_id, file)) is not None:
            return asset_id
        if was_accepted(entry):
            self._journal.parked(entry.number, entry.message or "")
            raise FailedWriteError(entry.message)
        return None

    def _find_attached(self, row: PlanRow, number: int, target_id: int, file: PlannedFile) -> int | None:
        """Returns the id of an asset like the file that no write accounts for; None where the record has none.

        Raises `FailedWriteError` where the service does not show that, and parks the journal entry with this number.
        """
        record = self._client.get_record(f"{row.resource}/{target_id}")
        if not self._file_visibility.shows_all(record):
            message = f"{describe_file(file)}: it is unknown whether it was attached, because the service does not show the files"
            self._journal.parked(number, message)
            raise FailedWriteError(message)
        known_ids = self._known_asset_ids(row)
        new = [asset for asset in attached_files(record) if asset.kind == ASSET and asset.asset_id not in known_ids]
        alike = [asset.asset_id for asset in new if asset.asset_id is not None and is_like(file, asset)]
        return min(alike, default=None)

    def _known_asset_ids(self, row: PlanRow) -> set[int | None]:
        """The assets of a record that the journal or the plan accounts for."""
        entries: list[JournalEntry] = self._journal.of_record(row.resource, row.source_id)
        attached = {
            entry.asset_id for entry in entries if entry.kind == WriteKind.ASSET and entry.state == WriteState.DONE
        }
        return attached | {file.target_asset_id for file in row.files}


def is_like(file: PlannedFile, attached: AttachedFile) -> bool:
    """Whether a file of the target is the one planned, by size and name, as far as the service shows them."""
    if None not in (attached.size, file.size) and attached.size != file.size:
        return False
    if attached.filename and file.filename:
        return attached.filename == file.filename
    return not file.name or attached.name == file.name


def _with_names(file: PlannedFile, uploaded: dict[str, Any]) -> tuple[PlannedFile, dict[str, Any]]:
    """A file and its upload with a name in the place of each empty one."""
    name, filename = (None if text is None else text or UNNAMED for text in (file.name, file.filename))
    metadata = {**uploaded["metadata"], "filename": uploaded["metadata"]["filename"] or UNNAMED}
    return msgspec.structs.replace(file, name=name, filename=filename), {**uploaded, "metadata": metadata}


def changes_in(file: PlannedFile, record: Mapping[str, Any]) -> str | None:
    """What the service changed about a file, by a response with this file alone."""
    attached = next((candidate for candidate in attached_files(record) if candidate.kind == file.kind), None)
    return None if attached is None else _changes(file, attached)


def _changes(file: PlannedFile, attached: AttachedFile | PlannedFile) -> str | None:
    parts = differing_parts(file, attached)
    return f"{describe_file(file)}: in the target it has another {' and '.join(parts)}." if parts else None


def describe_file(file: PlannedFile) -> str:
    """Returns a file as messages name it."""
    return f"The {'cover' if file.kind == COVER else 'file'} {file.filename or file.name or ''}".rstrip()


def is_upload_lost(refusal: RefusedError) -> bool:
    """Whether the service did not find an upload in its storage, by the error code at any 4xx (service.md#upload)."""
    code = "".join(filter(str.isalnum, refusal.code)).lower()
    return "storage" in code and ("notfound" in code or "missing" in code)
