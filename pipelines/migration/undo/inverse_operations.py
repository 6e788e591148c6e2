"""Works out what of one record can be taken back: a function of the plan, the journal and what the target shows now (I8).

Taken back is only what the journal says is ours, and only where it still is as it was left: what people edited since stays theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.migration.apply.attachments import describe_file, is_like
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal import JournalEntry, WriteKind, WriteState
from pipelines.migration.model.plan import PlannedFile, PlanRow
from pipelines.migration.plan.files import part_of
from pipelines.records.files import ASSET, COVER, AttachedFile
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.matching import comparable

OPEN = (WriteState.DONE, WriteState.INTENDED, WriteState.PARKED)
"""States of what may be in the target."""

Compare = Callable[[Mapping[str, Any]], Mapping[str, str]]

NOT_SHOWN = "the service does not show its files, so nobody can tell whose they are"


@dataclass(frozen=True)
class TargetRecord:
    """A record as the target shows it. `files`: nothing where the service does not tell which it has."""

    fields: Mapping[str, str]
    files: Sequence[AttachedFile] | None

    @classmethod
    def of(cls, record: Mapping[str, Any], kinds: Kinds, *, all_files: bool) -> TargetRecord:
        """From its JSON. `all_files`: whether the files that it shows are all that it has."""
        form = form_of(record, kinds)
        return cls(comparable(form.fields, kinds), form.files if all_files else None)

    @property
    def cover(self) -> AttachedFile | None:
        """Its cover."""
        return next((one for one in self.files or () if one.kind == COVER), None)

    @property
    def assets(self) -> dict[int | None, AttachedFile]:
        """Its attached files by id."""
        return {one.asset_id: one for one in self.files or () if one.kind == ASSET}


@dataclass
class InverseOperations:
    """What is to be done, files first and the record last, as it was made the other way round."""

    assets: list[tuple[int, int]] = field(default_factory=list)
    """Entry and id of each attached file that is deleted."""
    patch: dict[str, Any] = field(default_factory=dict)
    """What the record is sent: the values that its fields had, and null for a cover that it had not."""
    delete: bool = False
    patched: list[int] = field(default_factory=list)
    """Entries that are undone with the patch; `whole` those that are with the record, or that need nothing any more."""
    whole: list[int] = field(default_factory=list)
    gone: bool = False
    """The record is not there any more."""
    left: list[str] = field(default_factory=list)
    """What is not taken back, and why."""


def inverse_operations(
    row: PlanRow,
    entries: Sequence[JournalEntry],
    shown: TargetRecord | None,
    *,
    plan: str,
    compare: Compare,
    empty: Mapping[str, Any],
    had: Sequence[AttachedFile],
) -> InverseOperations:
    """What to do about a record. `entries`: all that the journal has of it. `had`: the files that it had when the plan was made.

    `compare`: field → text of values that are sent. `empty`: field → what empties it, where that is not null.
    """
    steps = InverseOperations()
    ours = [one for one in entries if one.plan == plan and one.state in OPEN]
    last = max((one.number for one in ours), default=0)
    later = next(
        (one.plan for one in entries if one.plan != plan and one.number > last and one.state == WriteState.DONE), None
    )
    created = next((one for one in ours if one.kind == WriteKind.CREATE), None)
    if shown is None:
        steps.gone, steps.whole = True, [one.number for one in ours]
    elif later is not None:
        steps.left.append(f"plan {later} wrote to it later: undo that one first")
    elif created is not None:
        _judge_created(steps, row, created, ours, shown)
    else:
        _judge_changed(steps, row, ours, shown, compare=compare, empty=empty, had=had)
    return steps


def _judge_created(
    steps: InverseOperations, row: PlanRow, created: JournalEntry, ours: Sequence[JournalEntry], shown: TargetRecord
) -> None:
    """A record that the plan created goes as a whole, or stays."""
    held = created.held or created.wanted
    edited = [name for name, value in held.items() if digest(shown.fields.get(name)) != value]
    if edited:
        steps.left.append(f"people changed {', '.join(edited)} since")
    accounted = {one.asset_id for one in ours if one.kind == WriteKind.ASSET and one.state == WriteState.DONE}
    parts = {one.part for one in ours if one.kind == WriteKind.ASSET and one.state != WriteState.DONE}
    doubtful = [file for file in row.files if part_of(file) in parts]
    if shown.files is None and (accounted or doubtful):
        steps.left.append(NOT_SHOWN)
    for asset_id, one in shown.assets.items():
        if asset_id not in accounted and not any(is_like(file, one) for file in doubtful):
            steps.left.append(f"people attached {one.filename or one.name or asset_id} since")
    planned = [file for file in row.files if file.kind == COVER]
    if shown.cover is not None and not any(is_like(file, shown.cover) for file in planned):
        steps.left.append("people set another cover since")
    steps.delete = not steps.left
    steps.whole = [one.number for one in ours] if steps.delete else []


def _judge_changed(
    steps: InverseOperations,
    row: PlanRow,
    ours: Sequence[JournalEntry],
    shown: TargetRecord,
    *,
    compare: Compare,
    empty: Mapping[str, Any],
    had: Sequence[AttachedFile],
) -> None:
    """What the plan did to a record that was there before it."""
    files = {part_of(file): file for file in row.files}
    for entry in ours:
        if entry.kind == WriteKind.PATCH:
            _judge_fields(steps, entry, entry.before or row.before, shown, compare, empty)
        elif shown.files is None:
            steps.left.append(NOT_SHOWN)
        elif (file := files.get(entry.part)) is None:
            steps.left.append(f"the plan does not tell of its file {entry.part}")
        elif entry.kind == WriteKind.COVER:
            _judge_cover(steps, entry, file, shown.cover, had)
        elif entry.state == WriteState.DONE:
            _judge_asset(steps, entry, file, shown)
        elif any(
            is_like(file, one) for number, one in shown.assets.items() if number not in {one.asset_id for one in had}
        ):
            steps.left.append(f"{describe_file(file)}: whether it was attached by this plan cannot be told")
        else:
            steps.whole.append(entry.number)


def _judge_fields(  # noqa: PLR0917  what is looked at
    steps: InverseOperations,
    entry: JournalEntry,
    was: Mapping[str, Any],
    shown: TargetRecord,
    compare: Compare,
    empty: Mapping[str, Any],
) -> None:
    before = compare(was)
    held = entry.held or entry.wanted
    edited = []
    for name, value in was.items():
        now = digest(shown.fields.get(name))
        if now == digest(before.get(name)):
            continue
        if now == held.get(name):
            steps.patch[name] = empty.get(name) if value is None else value
        else:
            edited.append(name)
    if edited:
        steps.left.append(f"people changed {', '.join(edited)} since")
    steps.patched.append(entry.number)


def _judge_cover(
    steps: InverseOperations,
    entry: JournalEntry,
    file: PlannedFile,
    cover: AttachedFile | None,
    had: Sequence[AttachedFile],
) -> None:
    if cover is not None and not is_like(file, cover):
        steps.left.append("people set another cover since")
    elif cover is not None and any(one.kind == COVER for one in had):
        steps.left.append("the cover that it had before is not kept, so the new one stays")
    else:
        if cover is not None:
            steps.patch["cover"] = None
        steps.patched.append(entry.number)


def _judge_asset(steps: InverseOperations, entry: JournalEntry, file: PlannedFile, shown: TargetRecord) -> None:
    one = shown.assets.get(entry.asset_id)
    if one is None or entry.asset_id is None:
        steps.whole.append(entry.number)
    elif is_like(file, one):
        steps.assets.append((entry.number, entry.asset_id))
    else:
        steps.left.append(f"{describe_file(file)} was replaced since")
