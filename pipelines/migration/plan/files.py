"""Plans the files of a publication: which are uploaded, and which its record in the target already has. No file is attached twice (I8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.journal_entries import WriteKind, WriteState, WrittenFile
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.records.files import ASSET, COVER, KEPT, AttachedFile, attached_files
from pipelines.records.values import decode_record

_PACKED = (".gz", ".tgz", ".svgz", ".br", ".bz2", ".xz", ".zst", ".z")
"""Endings of names of files that are packed themselves. Under another name, packed bytes would be taken for the file that they hold."""

OCTETS = "application/octet-stream"
"""The content type of a file whose type is unknown."""


def part_of(file: PlannedFile) -> str:
    """The name of a file in the journal, unique within its record: its place in the source, and its content."""
    which = file.asset_id if file.asset_id is not None else f"at{file.position}"
    return f"{file.kind}/{which}/{file.sha256}"


def files_of(text: str | None) -> dict[str, Any]:
    """The members of a record that concern its files, from the column `files` of `comparable.RECORDS`."""
    return decode_record(text.encode()) if text else {}


def described_files(text: str | None) -> list[AttachedFile]:
    """The files of a record, from the same column."""
    return attached_files(files_of(text))


def planned_files(
    described: Sequence[AttachedFile],
    contents: Sequence[dict[str, Any]],
    target_files: Sequence[AttachedFile],
    written: Sequence[WrittenFile],
) -> list[PlannedFile]:
    """Plan each file of a record.

    `described`: the files of the source's record. `contents`: their rows of publication_files. `target_files`: those of the target record.
    `written`: the journal's entries of this record. A file that an earlier plan attached is not attached again, even where somebody has
    removed it since; new content is. Other files of the target are recognised by name and size, each once. A cover in the target stays.
    """
    stored = {(content["kind"], content["position"]): content for content in contents}
    attached = {
        entry.part: entry
        for entry in written
        if entry.kind in (WriteKind.ASSET, WriteKind.COVER) and entry.state == WriteState.DONE
    }
    free = [file for file in target_files if file.kind == ASSET]
    has_cover = any(file.kind == COVER for file in target_files)
    for entry in attached.values():
        free = [file for file in free if file.asset_id != entry.asset_id]
    planned = []
    for source_file in described:
        content = stored.get((source_file.kind, source_file.position), {})
        file = PlannedFile(
            kind=source_file.kind,
            position=source_file.position,
            action=FileAction.UPLOAD,
            asset_id=source_file.asset_id,
            name=source_file.name,
            content_type=source_file.content_type or source_file.mime_type or OCTETS,
            filename=source_file.filename,
            size=content.get("bytes"),
            sha256=content.get("sha256"),
        )
        is_packed = bool(content.get("problem")) and not (file.filename or "").lower().endswith(_PACKED)
        lacks_content = content.get("status") != KEPT or file.sha256 is None or is_packed
        if lacks_content:
            file.size, file.sha256 = source_file.size, None
        if (attachment := attached.get(part_of(file))) is not None:
            file.action, file.target_asset_id = FileAction.THERE, attachment.asset_id
            file.kept = _kept_otherwise(file, target_files) if attachment.message else None
        elif source_file.kind == COVER:
            replaces = any(entry.kind == WriteKind.COVER for entry in attached.values())
            file.action = FileAction.THERE if has_cover and not replaces else FileAction.UPLOAD
        else:
            same = next((other for other in free if _alike(file, source_file, other)), None)
            if same is not None:
                free.remove(same)
                file.action, file.target_asset_id = FileAction.THERE, same.asset_id
        if lacks_content and file.action == FileAction.UPLOAD:
            earlier = _attached_earlier(source_file, target_files, attached.values())
            if earlier is not None:
                file.action, file.target_asset_id = FileAction.THERE, earlier.asset_id
            else:
                file.action, file.problem = FileAction.MISSING, content.get("problem") or "its content was not fetched"
        planned.append(file)
    return planned


def _kept_otherwise(file: PlannedFile, target_files: Iterable[AttachedFile]) -> str | None:
    """What of a file that was attached differs in the target; None where it is equal now, or not there."""
    same = (
        other
        for other in target_files
        if file.kind == other.kind and (file.kind == COVER or other.asset_id == file.target_asset_id)
    )
    match = next(same, None)
    return None if match is None else " and ".join(differing_parts(file, match)) or None


def differing_parts(file: PlannedFile, attached: AttachedFile | PlannedFile) -> list[str]:
    """What differs between a planned file and the target's, as far as the service shows it."""
    pairs = (
        ("size", file.size, attached.size),
        ("file name", file.filename, attached.filename),
        ("name", file.name if file.kind == ASSET else None, attached.name),
    )
    return [name for name, planned, shown in pairs if None not in (planned, shown) and planned != shown]


def _attached_earlier(
    source_file: AttachedFile, target_files: Sequence[AttachedFile], written: Iterable[WrittenFile]
) -> AttachedFile | None:
    """The file of the target that an earlier plan made of a file whose content the snapshot lacks. Another size shows a change."""
    part = f"{source_file.kind}/{'at0' if source_file.asset_id is None else source_file.asset_id}/"
    ids = {entry.asset_id for entry in written if entry.part.startswith(part)}
    same = (file for file in target_files if file.kind == source_file.kind and file.asset_id in ids)
    return next((file for file in same if file.size is not None and file.size == source_file.size), None)


def _alike(file: PlannedFile, source_file: AttachedFile, other: AttachedFile) -> bool:
    """Whether both have the same size and file name, or, without file names, the same name for readers."""
    sizes = {file.size, source_file.size}
    if other.size is None or other.size not in sizes:
        return False
    if source_file.filename and other.filename:
        return source_file.filename == other.filename
    return (source_file.name or None) == (other.name or None)


def requests_of(row: PlanRow) -> int:
    """Requests to the library for one record; those to the storage do not count.

    The record takes one, and includes the cover of a new one. Each upload takes one for its presigned form, and any other file one more
    (service.md#upload). References to records that are created later take one more, and each that is added to a list one.
    """
    if row.action == Action.MERGE:
        return len(row.candidates)
    is_new = row.action == Action.CREATE
    uploads = sum(1 if is_new and file.kind == COVER else 2 for file in row.uploads)
    return (is_new or row.writes) + uploads + row.is_linked + len(row.after)
