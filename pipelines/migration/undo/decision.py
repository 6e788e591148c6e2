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
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, is_done, may_have_been_sent
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.undo.worklist import UndoItem
from pipelines.records.files import ASSET, COVER, AttachedFile, attached_files
from pipelines.records.values import as_id

DELETABLE = frozenset({"publications", "users", "collections", "hard_copies"})
"""Resources whose records the service deletes: no authorities and no tasks (service.md#other-resources)."""

COVER_REPLACED = "people set another cover since"
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
    inverse = _untouched(item)
    if item.doubt:
        inverse.stays.append(item.doubt)
    elif record is None:
        inverse.gone, inverse.undoes = True, [entry.number for entry in item.open_entries]
    elif item.later_plan:
        inverse.stays.append(f"plan {item.later_plan} wrote to it later: undo that plan first")
    elif item.creation is not None and not only_links:
        _Decision(inverse, item, record, resource_type).delete(item.creation)
    else:
        decision = _Decision(inverse, item, record, resource_type, () if only_links else removable)
        for entry in item.links if only_links else item.open_entries:
            decision.take_back(entry)
        if only_links and inverse.stays:  # people changed them; then the record stays as it is
            return _untouched(item)
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


class _Decision:
    """Decides about a record that is there: `inverse` gets what is taken back of it, and why something stays."""

    def __init__(
        self,
        inverse: InverseRow,
        item: UndoItem,
        record: TargetRecord,
        resource_type: ResourceType,
        removable: Collection[str] = (),
    ) -> None:
        self._inverse = inverse
        self._item = item
        self._record = record
        self._type = resource_type
        self._removable = {*removable}
        self._files = {part_of(file): file for file in item.row.files}

    def delete(self, creation: JournalEntry) -> None:
        """Delete a record that the plan created, unless people changed anything of it."""
        inverse, fields, held = self._inverse, self._record.fields, creation.held or creation.wanted
        released, written = creation.wanted.keys() - held.keys(), creation.wanted | held
        for link in self._item.links:
            written |= link.held or link.wanted
        edited = [
            name
            for name, value in written.items()
            if digest(fields.get(name)) != value and (name in fields or name not in released)
        ]
        inverse.stays += [f"people changed {', '.join(edited)} since"] if edited else []
        inverse.stays += self._edited_files()
        if not inverse.stays and inverse.resource not in DELETABLE:
            inverse.stays.append(f"the service deletes no {plural(inverse.resource)}; a person must retire it there")
        if inverse.stays:
            kept = {*edited, *self._type.sent_without_references}
            inverse.released = [name for name in self._type.references if name in written and name not in kept]
        else:
            inverse.action, inverse.undoes = Action.DELETE, [entry.number for entry in self._item.open_entries]

    def _edited_files(self) -> Iterator[str]:
        """Yield what people did with the files of a record that the plan created."""
        entries, cover = self._item.open_entries, self._record.cover
        attached = {entry.asset_id: entry for entry in entries if entry.kind == WriteKind.ASSET and is_done(entry)}
        if self._record.files is None and attached:
            yield FILES_HIDDEN
        for asset_id, asset in self._record.assets.items():
            name = asset.filename or asset.name or asset_id
            if asset_id not in attached:
                yield f"people attached {name} since"
            elif _is_replaced(self._files[attached[asset_id].part], asset, attached[asset_id]):
                yield f"people replaced {name} since"
        planned = next((file for file in self._files.values() if file.kind == COVER), None)
        written = next((entry for entry in entries if entry.kind == WriteKind.COVER), None)
        if cover is not None and (planned is None or _is_replaced(planned, cover, written)):
            yield COVER_REPLACED

    def take_back(self, entry: JournalEntry) -> None:
        """Take back a write to a record that was there before, or the links of one that was not."""
        lists, stays = self._type.posted.keys() & self._item.row.references, self._inverse.stays
        if entry.kind == WriteKind.MERGE:
            was = "was merged into it, and no undo can split them" if is_done(entry) else "may have been merged into it"
            stays.append(f"record {entry.part} {was}")
        elif entry.kind == WriteKind.MEMBER:
            self._remove_member(entry)
        elif entry.kind == WriteKind.LINK and lists and lists <= self._removable:
            self._undone(entry)
        elif entry.kind == WriteKind.LINK and lists:
            stays.append(f"what was added to its list ({', '.join(lists)}) stays; a person must remove it there")
        elif entry.kind in (WriteKind.PATCH, WriteKind.LINK):
            self._revert_fields(entry)
        elif self._record.files is None:
            stays.append(FILES_HIDDEN)
        elif entry.kind == WriteKind.COVER:
            self._remove_cover(entry)
        else:
            self._detach(entry)

    def _undone(self, entry: JournalEntry) -> None:
        self._inverse.undoes.append(entry.number)

    def _revert_fields(self, entry: JournalEntry) -> None:
        """Give the old value back to each field that still has the written value; leave the other fields."""
        written, edited, row = entry.held or entry.wanted, [], self._item.row
        # A list may be sent without its links first: before the link of a new record, the target had that
        first = row.payload if row.action == Action.CREATE else {}
        other_writes = [write.held or write.wanted for write in self._item.open_entries if write is not entry]
        old_values = {name: row.before.get(name, first.get(name)) for name in entry.wanted}
        before = self._type.compared_record(old_values)
        for name, value in old_values.items():
            text = self._record.fields.get(name)
            if text == before.get(name):
                continue
            if digest(text) == written.get(name):
                is_list = name in self._type.lists or (text or "").startswith("[")
                self._inverse.payload[name] = ([] if is_list else None) if value is None else value
            elif not any(name in digests and digest(text) == digests[name] for digests in other_writes):
                edited.append(name)
        self._inverse.stays += [f"people changed {', '.join(edited)} since"] if edited else []
        self._undone(entry)

    def _remove_member(self, entry: JournalEntry) -> None:
        """Remove a record that the plan added to a list below this one, where it is still there and the service takes single ones."""
        name, _, member = entry.part.partition(" ")
        if name not in self._removable:
            return
        if as_id(member) not in msgspec.json.decode(self._record.fields.get(name, "[]")) or not may_have_been_sent(
            entry
        ):
            self._undone(entry)
        elif is_done(entry):
            below, _key = self._type.posted[name].split()
            self._inverse.members[entry.number] = f"{below}/{quote(member, safe='')}"
        else:
            self._inverse.stays.append(f"{name} {member}: it is unknown whether this plan added it")

    def _remove_cover(self, entry: JournalEntry) -> None:
        """Remove the cover that the plan set, where the record had none before."""
        cover = self._record.cover
        if cover is None:
            self._undone(entry)
        elif _is_replaced(self._files[entry.part], cover, entry):
            self._inverse.stays.append(COVER_REPLACED)
        elif any(earlier.kind == WriteKind.COVER for earlier in self._item.earlier_entries):
            self._inverse.stays.append("the cover that it had before is not stored anywhere, so the new one stays")
        else:
            self._inverse.payload["cover"] = None
            self._undone(entry)

    def _detach(self, entry: JournalEntry) -> None:
        """Detach a file that the plan attached, unless people replaced it."""
        file, asset = self._files[entry.part], self._record.assets.get(entry.asset_id)
        if not is_done(entry) and any(is_like(file, candidate) for candidate in self._record.assets.values()):
            self._inverse.stays.append(f"{describe_file(file)}: it is unknown whether this plan attached it")
        elif asset is None:
            self._undone(entry)
        elif _is_replaced(file, asset, entry):
            self._inverse.stays.append(f"{describe_file(file)} was replaced since")
        else:
            self._inverse.files.append(
                msgspec.structs.replace(file, action=FileAction.DETACH, target_asset_id=entry.asset_id)
            )


def _is_replaced(file: PlannedFile, attached: AttachedFile, entry: JournalEntry | None) -> bool:
    """Whether a file is not as it was written: as planned, or as the service then kept it otherwise. Its content is not read."""
    return change_of(file, attached) not in (None, entry and entry.message)
