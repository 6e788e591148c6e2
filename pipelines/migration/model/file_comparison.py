"""Compares the files of a record of a plan with those that the target has: to plan, settle, verify and undo them (I8, I12)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pipelines.migration.model.actions import FileAction
from pipelines.migration.model.plan import PlannedFile
from pipelines.records.files import ASSET, COVER, AttachedFile, attached_files
from pipelines.records.values import decode_record

FilePair = tuple[PlannedFile, AttachedFile | None]
"""A file of a plan, and what it is in the target, if it is there."""


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


def match_files(
    files: Sequence[PlannedFile],
    target: Iterable[AttachedFile],
    ids: Mapping[str, int | None],
    known_ids: Collection[int | None],
    *,
    strictly: bool = False,
) -> tuple[list[FilePair], list[AttachedFile]]:
    """Find each file of a record in the target, and the assets there that are left and that nothing accounts for.

    A cover is the cover. An asset has the id that `ids` says of its part; else it is the first one like it, each once, that nothing
    accounts for, as `known_ids` do. One without content, which nobody attached for this plan, may be any that is left.
    """
    assets: dict[int | None, AttachedFile] = {}
    cover: AttachedFile | None = None
    for attached in target:
        if attached.kind == COVER:
            cover = attached
        else:
            assets[attached.asset_id] = attached
    by_id = [
        cover if file.kind == COVER else assets.pop(number, None) if (number := ids.get(part_of(file))) else None
        for file in files
    ]
    pairs: list[FilePair] = []
    for file, match in zip(files, by_id, strict=True):
        alike = (
            asset
            for number, asset in assets.items()
            if (file.action == FileAction.MISSING or number not in known_ids)
            and is_like(file, asset, strictly=strictly)
        )
        if match is None and file.kind == ASSET and (match := next(alike, None)) is not None:
            del assets[match.asset_id]
        pairs.append((file, match))
    return pairs, [asset for number, asset in assets.items() if number not in known_ids]


def is_like(file: PlannedFile, attached: AttachedFile, *, strictly: bool = False) -> bool:
    """Whether a file of the target is the one planned, by size and name, as far as the service shows them. `strictly`: sizes are known."""
    is_unknown = None in (attached.size, file.size)
    if strictly if is_unknown else attached.size != file.size:
        return False
    if attached.filename and file.filename:
        return attached.filename == file.filename
    return not file.name or attached.name == file.name


def differing_parts(file: PlannedFile, attached: AttachedFile) -> str:
    """What differs between a planned file and the target's, as far as the service shows it: `size and name`; empty where nothing does."""
    pairs = (
        ("size", file.size, attached.size),
        ("file name", file.filename, attached.filename),
        ("name", file.name if file.kind == ASSET else None, attached.name),
    )
    return " and ".join(name for name, planned, shown in pairs if None not in (planned, shown) and planned != shown)
