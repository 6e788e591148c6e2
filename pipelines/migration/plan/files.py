"""Which files of a publication are to be uploaded, and which its record in the target has already. No file is attached twice (I8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.migration.model.journal import ASSET, COVER, DONE, JournalEntry
from pipelines.migration.model.plan import CREATE, MISSING, PATCH, THERE, UPLOAD, PlannedFile
from pipelines.records.files import ASSET as AN_ASSET
from pipelines.records.files import COVER as A_COVER
from pipelines.records.files import KEPT, AttachedFile, attached_files
from pipelines.records.forms import add_unsent_files
from pipelines.records.residue import keep_nested, residue_json
from pipelines.records.values import decode_record

OCTETS = "application/octet-stream"
"""What a file is called that nobody named the type of."""


def part_of(file: PlannedFile) -> str:
    """What tells a file from the others of its record, in the journal: which one it is in the source, and its content."""
    which = file.asset_id if file.asset_id is not None else f"at{file.position}"
    return f"{file.kind}/{which}/{file.sha256}"


def described_files(text: str | None) -> list[AttachedFile]:
    """The files of a record as it was laid out: the column `files` of `sides.RECORDS`."""
    return attached_files(decode_record(text.encode())) if text else []


def unsent_with_files(unsent: str | None, files: str) -> str | None:
    """What version 3 will not hold of a record, its files included. Both: columns of `sides.RECORDS`."""
    of_files: dict[str, Any] = {}
    add_unsent_files(decode_record(files.encode()), of_files)
    if not of_files:
        return unsent
    both = decode_record(unsent.encode()) if unsent else {}
    for path, value in of_files.items():
        keep_nested(both, path, value)
    return residue_json(both)


def planned_files(
    described: Sequence[AttachedFile],
    contents: Sequence[dict[str, Any]],
    there: Sequence[AttachedFile],
    written: Sequence[JournalEntry],
) -> list[PlannedFile]:
    """What to do with each file of a record.

    `described`: as the source's record tells them. `contents`: what of them was kept (rows of publication_files). `there`: the target's.
    `written`: what the journal knows of this record. A file that we attached and that is still there counts; one that somebody has
    removed there since is attached again only by a new content. Else, files of the target are taken to be the same by name and size,
    each once; a cover that is there is left.
    """
    kept = {(one["kind"], one["position"]): one for one in contents}
    ours = {entry.part: entry for entry in written if entry.kind in (ASSET, COVER) and entry.state == DONE}
    free = [one for one in there if one.kind == AN_ASSET]
    has_cover = any(one.kind == A_COVER for one in there)
    for entry in ours.values():
        free = [one for one in free if one.asset_id != entry.asset_id]
    found = []
    for one in described:
        content = kept.get((one.kind, one.position), {})
        file = PlannedFile(
            kind=one.kind,
            position=one.position,
            action=UPLOAD,
            asset_id=one.asset_id,
            name=one.name,
            content_type=one.content_type or one.mime_type or OCTETS,
            filename=one.filename,
            size=content.get("bytes"),
            sha256=content.get("sha256"),
        )
        if content.get("status") != KEPT or file.sha256 is None:
            file.action = MISSING
            file.problem = content.get("problem") or "its content was not fetched"
        elif (known := ours.get(part_of(file))) is not None:
            file.action, file.target_asset_id = THERE, known.asset_id
        elif one.kind == A_COVER:
            replaces = any(entry.kind == COVER for entry in ours.values())
            file.action = THERE if has_cover and not replaces else UPLOAD
        else:
            same = next((other for other in free if _alike(file, one, other)), None)
            if same is not None:
                free.remove(same)
                file.action, file.target_asset_id = THERE, same.asset_id
        found.append(file)
    return found


def _alike(file: PlannedFile, one: AttachedFile, other: AttachedFile) -> bool:
    """By size, and by the name of the file, or, where the service tells none, by the name that readers see."""
    sizes = {file.size, one.size}
    if other.size is None or other.size not in sizes:
        return False
    if one.filename and other.filename:
        return one.filename == other.filename
    return one.name == other.name


def requests_of(
    action: str, payload: Mapping[str, Any] | str | None, files: Sequence[PlannedFile], *, together: bool = False
) -> int:
    """Requests to the library that writing a record takes; the storage's do not count.

    One for the record, a cover's included, which takes one for the form to upload it with; an attached file takes that and one more for the
    asset (service-api.md, Upload sequence), unless files go with the record that is created (`together`).
    """
    assets = sum(one.action == UPLOAD and one.kind == AN_ASSET for one in files)
    covers = sum(one.action == UPLOAD and one.kind == A_COVER for one in files)
    return (
        (action == CREATE or (action == PATCH and bool(payload or covers)))
        + covers
        + assets * (1 if together and action == CREATE else 2)
    )
