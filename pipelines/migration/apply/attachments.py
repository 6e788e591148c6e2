"""Attaches files to a record that is there: form, upload, then POST /assets (service.md#upload).

An upload alone is nothing in the library, so that it may be repeated. What may happen once only is POST /assets: where its answer was lost,
the record is read again, and an asset that nobody knew and that is like the file is the one that was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any, BinaryIO, Literal

from pipelines.errors import RefusedError, StorageError, UnclearError
from pipelines.migration.apply.file_visibility import FileVisibility
from pipelines.migration.model.journal import ASSET, DONE, FailedWriteError, Journal, JournalEntry, in_doubt, is_done
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.plan.files import OCTETS, part_of
from pipelines.records.files import ASSET as AN_ASSET
from pipelines.records.files import COVER as A_COVER
from pipelines.records.files import AttachedFile, attached_files
from pipelines.records.values import whole_number
from pipelines.service.client import LibraryClient
from pipelines.service.files.upload import Uploads

PAUSES = (0.0, 2.0, 4.0)
"""Seconds before each look at a record to which an asset may have been attached: what is still under way gets to arrive."""

TRIES = 3

PRESIGN: dict[str, Literal["assets/presign", "publications/cover/presign"]] = {
    AN_ASSET: "assets/presign",
    A_COVER: "publications/cover/presign",
}


class Attachments:
    """Attaches files, from several threads at once, but those of one record one after the other."""

    def __init__(
        self,
        plan: str,
        journal: Journal,
        client: LibraryClient,
        uploads: Uploads,
        open_blob: Callable[[str], AbstractContextManager[BinaryIO]],
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._client = client
        self._uploads = uploads
        self._open_blob = open_blob
        self._shown = FileVisibility(client, journal.attached_to)

    def attach(self, row: PlanRow, target_id: int, file: PlannedFile, known: JournalEntry | None) -> None:
        """Attach one file, unless an earlier process did. Raises `FailedWriteError` where that cannot be."""
        asset_id = None
        key = (self._plan, row.resource, row.source_id, ASSET, part_of(file))
        if known is not None and in_doubt(known):
            asset_id = self._made(row, known.number, target_id, file)
        try:
            uploaded = None if asset_id is not None else self.uploaded(file)
            number = self._journal.intend(*key, target_id=target_id)
            if uploaded is not None:
                asset_id = self._post(row, number, target_id, file, uploaded)
        except (RefusedError, StorageError) as refusal:  # one damaged content must not cost the others
            told, status = f"{describe_file(file)}: {refusal}", getattr(refusal, "status", None)
            self._journal.refused(self._journal.intend(*key, target_id=target_id), told, status)
            raise FailedWriteError(told) from None
        self._journal.done(number, target_id=target_id, asset_id=asset_id)

    def uploaded(self, file: PlannedFile) -> dict[str, Any]:
        """Upload a file, which makes nothing in the library yet. Returns its `{id, storage: cache, metadata}` (service.md#upload)."""
        sha256, size = file.content
        return self._uploads.upload(
            lambda: self._open_blob(sha256),
            presign=PRESIGN[file.kind],
            filename=file.filename or file.name or "file",
            content_type=file.content_type or OCTETS,
            size=size,
            sha256=sha256,
        )

    def _post(self, row: PlanRow, number: int, target_id: int, file: PlannedFile, uploaded: dict[str, Any]) -> int:
        error: UnclearError | None = None
        for attempt in range(TRIES):
            try:
                answer = self._client.write(
                    "POST", "assets", {"publication_id": target_id, **asset_body(file, uploaded)}
                )
            except UnclearError as unclear:
                error = unclear
            except RefusedError as refusal:
                if refusal.status != HTTPStatus.NOT_FOUND or attempt == TRIES - 1:
                    raise
                uploaded = self.uploaded(file)  # the storage may have forgotten it: "a storage not-found error"
                continue
            else:
                if isinstance(answer, dict) and (asset_id := whole_number(answer.get("id"))) is not None:
                    return asset_id
            found = self._made(row, number, target_id, file)
            if found is not None:
                return found
        told = f"{describe_file(file)} could not be attached in {TRIES} tries, and is not there: {error or 'the answers named no id'}"
        self._journal.refused(number, told)
        raise FailedWriteError(told)

    def _made(self, row: PlanRow, number: int, target_id: int, file: PlannedFile) -> int | None:
        """The asset that an unclear POST made, if it made one. Parks the entry where nobody can tell."""
        for pause in PAUSES:
            if pause:
                self._client.clock.sleep(pause)
            record = self._client.get_record(f"{row.resource}/{target_id}")
            if not self._shown.are_all(record):
                self._park(
                    number,
                    f"{describe_file(file)}: whether it was attached cannot be told, because the service does not show the files",
                )
            known = self._known(row)
            new = [one for one in attached_files(record) if one.kind == AN_ASSET and one.asset_id not in known]
            if alike := [one for one in new if is_like(file, one)]:
                return min(one.asset_id for one in alike if one.asset_id is not None)
        return None

    def note_made(self, row: PlanRow, target_id: int, record: Mapping[str, Any]) -> int:
        """Enter the files that came to a record together with it, as far as the record shows them; how many."""
        taken, found = self._known(row), 0
        entries = self._journal.of_record(row.resource, row.source_id)
        done = {one.part for one in entries if one.kind == ASSET and one.plan == self._plan and is_done(one)}
        for file in row.attached:
            if part_of(file) in done:
                continue
            shown = (one for one in attached_files(record) if one.kind == AN_ASSET and one.asset_id not in taken)
            if (one := next((each for each in shown if is_like(file, each)), None)) is not None:
                taken.add(one.asset_id)
                number = self._journal.intend(
                    self._plan, row.resource, row.source_id, ASSET, part_of(file), target_id=target_id
                )
                self._journal.done(number, target_id=target_id, asset_id=one.asset_id)
                found += 1
        return found

    def _known(self, row: PlanRow) -> set[int | None]:
        """Assets of the record that were there before, or that the journal accounts for."""
        written: list[JournalEntry] = self._journal.of_record(row.resource, row.source_id)
        ours = {one.asset_id for one in written if one.kind == ASSET and one.state == DONE}
        return ours | {one.target_asset_id for one in row.files}

    def _park(self, number: int, told: str) -> None:
        self._journal.parked(number, told)
        raise FailedWriteError(told)


def is_like(file: PlannedFile, one: AttachedFile) -> bool:
    """Whether a file of the target is what was sent, by its size and name; the service need not tell either."""
    if one.size is not None and one.size != file.size:
        return False
    if one.filename and file.filename:
        return one.filename == file.filename
    return file.name is None or one.name == file.name


def asset_body(file: PlannedFile, uploaded: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an asset: `name`, `content_type`, `file` (service.md#assets)."""
    named = {} if file.name is None else {"name": file.name}
    return {**named, "content_type": file.content_type or OCTETS, "file": uploaded}


def describe_file(file: PlannedFile) -> str:
    """A file, for people."""
    return f"The {'cover' if file.kind == A_COVER else 'file'} {file.filename or file.name or ''}".rstrip()
