"""Decides what an undo does about one record: delete it, give fields back, detach files, or leave it (I8).

A function of the plan, the journal and the record in the target. Only writes of this plan are taken back, and only values that are
unchanged since: later edits of people stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from pipelines.inventory import plural
from pipelines.migration.apply.attachments import change_of, describe_file
from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.file_comparison import is_like, part_of
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState, is_done, may_have_been_sent
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.undo.worklist import UndoItem
from pipelines.records.files import ASSET, COVER, AttachedFile, attached_files
from pipelines.records.values import as_id

DELETABLE = frozenset({"publications", "users", "collections", "hard_copies"})
"""Resources whose records the service deletes: no authorities and no tasks (service.md#other-resources)."""

FILES_HIDDEN = "the service does not show its files, so it is unknown which of them the plan attached"


@dataclass(frozen=True)
class TargetRecord:
    """A record as the target has it. `files`: None where the service does not show which files it has."""

    fields: Mapping[str, str]
    files: Sequence[AttachedFile] | None

    @classmethod
    def of(cls, record: Mapping[str, Any], resource_type: ResourceType, *, all_files: bool) -> TargetRecord:
        """From the JSON of a record. `all_files`: whether that lists all files that it has."""
        return cls(resource_type.compared_record(record), attached_files(record) if all_files else None)

    @property
    def cover(self) -> AttachedFile | None:
        """Its cover."""
        return next((file for file in self.files or () if file.kind == COVER), None)

    @property
    def assets(self) -> dict[int | None, AttachedFile]:
        """Its attached files by id."""
        return {file.asset_id: file for file in self.files or () if file.kind == ASSET}


class InverseRow(PlanRow):
    """What an undo does about one record, as a row of a plan: it detaches files, empties lists, gives fields back, or deletes the record.

    `payload`: fields with their old values; `cover` is null where the record had none. `before`: nothing, the record is read just before.
    """

    undoes: list[int] = msgspec.field(default_factory=list)
    """Journal entries that are undone once this is done, besides those of the files and members."""
    members: dict[int, str] = msgspec.field(default_factory=dict)
    """Journal entry → the address below the record of the member that it added to a list."""
    released: list[str] = msgspec.field(default_factory=list)
    """References of a created record that stays, as they were written: what is deleted after it empties them, and nobody edits them."""
    gone: bool = False
    """Whether the record is missing in the target."""
    stays: list[str] = msgspec.field(default_factory=list)
    """Why something of it stays."""

    @property
    def done(self) -> dict[str, int]:
        """Count of an undo's result → what this adds to it."""
        return {
            "deleted": self.action == Action.DELETE,
            "reverted": self.action == Action.PATCH,
            "members_removed": len(self.members),
            "files_deleted": len(self.files),
            "gone": self.gone,
        }


def inverse_row(
    item: UndoItem,
    record: TargetRecord | None,
    resource_type: ResourceType,
    *,
    only_links: bool = False,
    removable: Collection[str] = (),
) -> InverseRow:
    """Decide what undo does about a record of the target; `record` is None where it is missing there.

    `only_links`: of a record that the plan created, its links are taken back, so that those to which they lead can be deleted before it.
    `removable`: the lists below it from which the service takes single members.
    """
    inverse, entries = _untouched(item), item.open_entries
    last = max((entry.number for entry in entries), default=0)
    later_plan = next(
        (
            entry.plan
            for entry in item.entries
            if entry.plan != item.plan and entry.number > last and entry.state == WriteState.DONE
        ),
        None,
    )
    if item.doubt:
        inverse.stays.append(item.doubt)
    elif record is None:
        inverse.gone, inverse.undoes = True, [entry.number for entry in entries]
    elif later_plan is not None:
        inverse.stays.append(f"plan {later_plan} wrote to it later: undo that plan first")
    elif item.creation is not None and only_links:
        for entry in item.links:
            _revert_fields(inverse, item, entry, record, resource_type)
        if inverse.stays:  # people changed them; then the record stays as it is
            return _untouched(item)
    elif item.creation is not None:
        _decide_deletion(inverse, item, item.creation, record, resource_type)
    else:
        _decide_reversal(inverse, item, record, resource_type, removable)
    if inverse.payload or inverse.members:
        inverse.action = Action.PATCH
    return inverse


def _untouched(item: UndoItem) -> InverseRow:
    row = item.row
    return InverseRow(
        resource=row.resource,
        source_id=row.source_id,
        target_id=item.target_id,
        action=Action.UNCHANGED,
        matched_by=row.matched_by,
        title=row.title,
        reason=None,
    )


def _decide_deletion(
    inverse: InverseRow, item: UndoItem, creation: JournalEntry, record: TargetRecord, resource_type: ResourceType
) -> None:
    """Deletes a record that the plan created, unless people changed anything of it."""
    reasons, entries = inverse.stays, item.open_entries
    written = dict(creation.held or creation.wanted)
    released = creation.wanted.keys() - written.keys()
    written = creation.wanted | written
    for link in item.links:
        written |= link.held or link.wanted
    now = {name: digest(record.fields.get(name)) for name in written}
    emptied = {name for name in released if now[name] is None}
    if edited := [name for name, value in written.items() if now[name] != value and name not in emptied]:
        reasons.append(f"people changed {', '.join(edited)} since")
    reasons += _edited_files(item, record)
    if not reasons and item.row.resource not in DELETABLE:
        reasons.append(f"the service deletes no {plural(item.row.resource)}; a person must retire it there")
    elif not reasons:
        inverse.action = Action.DELETE
        inverse.undoes = [entry.number for entry in entries]
    if reasons:
        inverse.released = [name for name in resource_type.references if name in written and name not in edited]


def _edited_files(item: UndoItem, record: TargetRecord) -> Iterator[str]:
    """Yield what people did with the files of a record that the plan created."""
    files = {part_of(file): file for file in item.row.files}
    attached = {
        entry.asset_id: entry
        for entry in item.open_entries
        if entry.kind == WriteKind.ASSET and entry.state == WriteState.DONE
    }
    if record.files is None and attached:
        yield FILES_HIDDEN
    for asset_id, asset in record.assets.items():
        name = asset.filename or asset.name or asset_id
        if asset_id not in attached:
            yield f"people attached {name} since"
        elif _is_replaced(files.get(attached[asset_id].part), asset, attached[asset_id]):
            yield f"people replaced {name} since"
    covers = {entry.part: entry for entry in item.open_entries if entry.kind == WriteKind.COVER}
    cover = next((file for file in item.row.files if file.kind == COVER), None)
    if record.cover is not None and (cover is None or _is_replaced(cover, record.cover, covers.get(part_of(cover)))):
        yield "people set another cover since"


def _decide_reversal(
    inverse: InverseRow,
    item: UndoItem,
    record: TargetRecord,
    resource_type: ResourceType,
    removable: Collection[str],
) -> None:
    """Takes back what the plan did to a record that was there before."""
    files = {part_of(file): file for file in item.row.files}
    for entry in _without_members(inverse, item, record, resource_type, removable):
        if entry.kind == WriteKind.MERGE:
            done = entry.state == WriteState.DONE
            was = "was merged into it, and no undo can split them" if done else "may have been merged into it"
            inverse.stays.append(f"record {entry.part} {was}")
            continue
        if entry.kind in (WriteKind.PATCH, WriteKind.LINK):
            _revert_fields(inverse, item, entry, record, resource_type)
        elif record.files is None:
            inverse.stays.append(FILES_HIDDEN)
        elif (file := files.get(entry.part)) is None:
            inverse.stays.append(f"the plan does not list its file {entry.part}")
        elif entry.kind == WriteKind.COVER:
            _remove_cover(inverse, item, entry, file, record.cover)
        elif entry.state == WriteState.DONE:
            _delete_asset(inverse, entry, file, record)
        elif any(is_like(file, asset) for asset in record.assets.values()):
            inverse.stays.append(f"{describe_file(file)}: it is unknown whether this plan attached it")
        else:
            inverse.undoes.append(entry.number)


def _revert_fields(
    inverse: InverseRow,
    item: UndoItem,
    entry: JournalEntry,
    record: TargetRecord,
    resource_type: ResourceType,
) -> None:
    """Gives the old value back to each field that still has the written value; leaves the other fields."""
    old_values = entry.before or item.row.before
    if entry.kind == WriteKind.LINK and (added := ", ".join(resource_type.posted.keys() & item.row.references)):
        inverse.stays.append(f"what was added to its list ({added}) stays; a person must remove it there")
        return
    if entry.kind == WriteKind.LINK:
        old_values = {name: old_values.get(name) for name in entry.wanted}
    before, written = resource_type.compared_record(old_values), entry.held or entry.wanted
    edited = []
    for name, value in old_values.items():
        now = digest(record.fields.get(name))
        if now == digest(before.get(name)):
            continue
        if now == written.get(name):
            is_list = name in resource_type.lists or record.fields.get(name, "").startswith("[")
            inverse.payload[name] = ([] if is_list else None) if value is None else value
        else:
            edited.append(name)
    if edited:
        inverse.stays.append(f"people changed {', '.join(edited)} since")
    inverse.undoes.append(entry.number)


def _without_members(
    inverse: InverseRow,
    item: UndoItem,
    record: TargetRecord,
    resource_type: ResourceType,
    removable: Collection[str],
) -> Iterator[JournalEntry]:
    """Takes back what the plan added to lists below the record; yields the other entries."""
    is_known = any(entry.plan == item.plan and entry.kind == WriteKind.MEMBER for entry in item.entries)
    are_removed = is_known and resource_type.posted.keys() & item.row.references <= {*removable}
    for entry in item.open_entries:
        if entry.kind == WriteKind.LINK and are_removed:
            inverse.undoes.append(entry.number)
        elif entry.kind != WriteKind.MEMBER:
            yield entry
        elif entry.part.partition(" ")[0] in removable:
            _remove_member(inverse, entry, record, resource_type)


def _remove_member(inverse: InverseRow, entry: JournalEntry, record: TargetRecord, resource_type: ResourceType) -> None:
    """Removes a record that the plan added to a list below this one, where it is still there."""
    name, _, member = entry.part.partition(" ")
    members = msgspec.json.decode(record.fields.get(name, "[]"))
    if as_id(member) not in members or not may_have_been_sent(entry):
        inverse.undoes.append(entry.number)
    elif is_done(entry):
        below, _key = resource_type.posted[name].split()
        inverse.members[entry.number] = f"{below}/{quote(member, safe='')}"
    else:
        inverse.stays.append(f"{name} {member}: it is unknown whether this plan added it")


def _is_replaced(file: PlannedFile | None, attached: AttachedFile, entry: JournalEntry | None) -> bool:
    """Whether a file is not as it was written: as planned, or as the service then kept it otherwise. Its content is not read."""
    as_written = None, entry and entry.message
    return file is not None and change_of(file, attached) not in as_written


def _remove_cover(
    inverse: InverseRow, item: UndoItem, entry: JournalEntry, file: PlannedFile, cover: AttachedFile | None
) -> None:
    """Removes the cover that the plan set, where the record had none before."""
    if cover is not None and _is_replaced(file, cover, entry):
        inverse.stays.append("people set another cover since")
    elif cover is not None and any(earlier.kind == WriteKind.COVER for earlier in item.earlier_entries):
        inverse.stays.append("the cover that it had before is not stored anywhere, so the new one stays")
    else:
        if cover is not None:
            inverse.payload["cover"] = None
        inverse.undoes.append(entry.number)


def _delete_asset(inverse: InverseRow, entry: JournalEntry, file: PlannedFile, record: TargetRecord) -> None:
    """Deletes a file that the plan attached, unless people replaced it."""
    asset = record.assets.get(entry.asset_id)
    if asset is None or entry.asset_id is None:
        inverse.undoes.append(entry.number)
    elif not _is_replaced(file, asset, entry):
        detached = msgspec.structs.replace(file, action=FileAction.DETACH, target_asset_id=entry.asset_id)
        inverse.files.append(detached)
    else:
        inverse.stays.append(f"{describe_file(file)} was replaced since")
