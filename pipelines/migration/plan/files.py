"""Plans the files of a publication: which are uploaded, and which its record in the target already has. No file is attached twice (I8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.migration.model.actions import FileAction
from pipelines.migration.model.file_comparison import differing_parts, is_like, match_files, part_of
from pipelines.migration.model.journal_entries import WriteKind, WriteState, WrittenFile
from pipelines.migration.model.plan import PlannedFile
from pipelines.records.files import COVER, KEPT, AttachedFile

_PACKED = (".gz", ".tgz", ".svgz", ".br", ".bz2", ".xz", ".zst", ".z")
"""Endings of names of files that are packed themselves. Under another name, packed bytes would be taken for the file that they hold."""

OCTETS = "application/octet-stream"
"""The content type of a file whose type is unknown."""


def planned_files(
    described: Sequence[AttachedFile],
    contents: Sequence[dict[str, Any]],
    target_files: Sequence[AttachedFile],
    written: Sequence[WrittenFile],
) -> list[PlannedFile]:
    """Plan each file of a record.

    `described`: the files of the source's record. `contents`: their rows of publication_files. `target_files`: those of the target record.
    `written`: the journal's entries of this record. A file that an earlier plan attached is not attached again, even where somebody has
    removed it since; new content is. Other files of the target are recognised by name and size, each once. A cover in the target stays,
    unless an earlier plan set it.
    """
    stored = {(content["kind"], content["position"]): content for content in contents}
    attached = {
        entry.part: entry
        for entry in written
        if entry.kind in (WriteKind.ASSET, WriteKind.COVER) and entry.state == WriteState.DONE
    }
    files = [_planned_file(file, stored.get((file.kind, file.position), {})) for file in described]
    ids = {part: entry.asset_id for part, entry in attached.items()}
    replaces_cover = any(entry.kind == WriteKind.COVER for entry in attached.values())
    pairs, _ = match_files(files, target_files, ids, {*ids.values()}, strictly=True)
    for file, match in pairs:
        if (entry := attached.get(part_of(file))) is not None:
            file.action, file.target_asset_id = FileAction.THERE, entry.asset_id
            file.kept = (entry.message and match and differing_parts(file, match)) or None
        elif match is not None and not (file.kind == COVER and replaces_cover and _is_other(file, match)):
            file.action, file.target_asset_id, file.problem = FileAction.THERE, match.asset_id, None
    return files


def _is_other(file: PlannedFile, cover: AttachedFile) -> bool:
    """Whether a cover is another one than an earlier plan set; of one without content as far as its description shows."""
    return file.action != FileAction.MISSING or not is_like(file, cover, strictly=True)


def _planned_file(described: AttachedFile, content: dict[str, Any]) -> PlannedFile:
    """A file that the target does not have. An empty name is none: services refuse it, or name the file themselves."""
    file = PlannedFile(
        kind=described.kind,
        position=described.position,
        action=FileAction.UPLOAD,
        asset_id=described.asset_id,
        name=described.name or None,
        content_type=described.content_type or described.mime_type or OCTETS,
        filename=described.filename or None,
        size=content.get("bytes"),
        sha256=content.get("sha256"),
    )
    is_packed = bool(content.get("problem")) and not (file.filename or "").lower().endswith(_PACKED)
    if content.get("status") != KEPT or file.sha256 is None or is_packed:
        file.action, file.size, file.sha256 = FileAction.MISSING, described.size, None
        file.problem = content.get("problem") or "its content was not fetched"
    return file
