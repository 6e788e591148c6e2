"""What an undo does about one record: it takes back what the journal says, and leaves what people did since (I8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pytest

from pipelines.migration.apply.attachments import change_of
from pipelines.migration.apply.digests import digests_of_response
from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.file_comparison import part_of
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState
from pipelines.migration.model.plan import PlannedFile
from pipelines.migration.undo.decision import (
    FILES_HIDDEN,
    InverseRow,
    TargetRecord,
    inverse_row,
)
from pipelines.migration.undo.worklist import UndoItem
from pipelines.records.files import ASSET, COVER, AttachedFile
from tests.migration.sample_plans import TYPES, digests, journal_entry, row

CREATE, PATCH, A_FILE, A_COVER = WriteKind.CREATE, WriteKind.PATCH, WriteKind.ASSET, WriteKind.COVER
NEW = {"title": "New", "abstract": "Of it"}


def planned(kind: str = ASSET, **values: Any) -> PlannedFile:
    return PlannedFile(kind=kind, position=0, action=FileAction.UPLOAD, **{"filename": "a.pdf", "size": 10, **values})


def in_target(asset_id: int | None, kind: str = ASSET, **values: Any) -> AttachedFile:
    defaults: dict[str, Any] = {"filename": "a.pdf", "size": 10, "name": None}
    return AttachedFile(kind, 0, asset_id, **{**defaults, **values}, content_type=None, mime_type=None)


FILE, PICTURE = planned(), planned(COVER)


def inverse(**values: Any) -> InverseRow:
    """The row of an undo with the ids of all these tests; without values, one that does nothing."""
    planned_row = row(1, values.pop("action", Action.UNCHANGED), target_id=5)
    return InverseRow(**(msgspec.structs.asdict(planned_row) | values))


def entry(number: int, kind: WriteKind, state: WriteState = WriteState.DONE, **values: Any) -> JournalEntry:
    part = {A_FILE: part_of(FILE), A_COVER: part_of(PICTURE)}.get(kind, "")
    return journal_entry(kind, part, state, **{"number": number, "plan": "plan", **values})


def created(**values: Any) -> JournalEntry:
    return entry(1, CREATE, wanted=digests({"title": "Not it"}), held=digests(NEW), **values)


def changed(**values: Any) -> JournalEntry:
    return entry(1, PATCH, **{"wanted": digests(NEW), **values})


def decide(
    entries: Iterable[JournalEntry],
    fields: Mapping[str, Any] | None = NEW,
    files: list[AttachedFile] | None = [],  # noqa: B006  never changed
    *,
    action: Action = Action.CREATE,
    resource: str = "publications",
    before: dict[str, Any] | None = None,
) -> InverseRow:
    written = row(1, action, resource=resource, target_id=5, files=[FILE, PICTURE], before=before or {})
    item = UndoItem("plan", written, list(entries))
    record = None if fields is None else TargetRecord(TYPES[resource].compared_record(fields), files)
    return inverse_row(item, record, TYPES[resource])


@pytest.mark.parametrize(("resource", "name"), [("publications", "title"), ("collections", "name")])
def test_a_record_that_was_created_empty_is_deleted_as_nobody_edited_it(resource: str, name: str) -> None:
    written = row(1, Action.CREATE, resource=resource, payload={name: "Sent"}, expected={name: "digest"})
    held = digests_of_response(TYPES[written.resource], written, {"id": 5, name: None}, written.expected)
    creation = entry(1, CREATE, wanted=written.expected, held=held)
    assert decide([creation], {}, resource=resource).action == Action.DELETE
    assert decide([creation], {name: "Filled by people"}, resource=resource).stays == [f"people changed {name} since"]


def test_an_entry_without_a_response_shows_what_was_sent() -> None:
    intended = entry(1, CREATE, WriteState.INTENDED, wanted=digests(NEW))
    assert decide([intended]).action == Action.DELETE
    assert decide([intended], {"title": "Another"}).action != Action.DELETE


@pytest.mark.parametrize(
    ("fields", "files", "reason"),
    [
        ({"title": "New"}, [], "people changed abstract since"),
        (NEW, [in_target(71)], "people attached a.pdf since"),
        (NEW, [in_target(71, filename=None, name="Index")], "people attached Index since"),
        (NEW, [in_target(70, filename="b.pdf")], "people replaced b.pdf since"),
        (NEW, [in_target(None, COVER, filename="other.jpg")], "people set another cover since"),
        (NEW, [in_target(None, COVER, size=11)], "people set another cover since"),
        (NEW, None, FILES_HIDDEN),
    ],
)
def test_a_created_record_that_people_changed_stays(
    fields: dict[str, Any], files: list[AttachedFile] | None, reason: str
) -> None:
    decision = decide([created(), entry(2, A_FILE, asset_id=70)], fields, files)
    assert decision == inverse(stays=[reason])


@pytest.mark.parametrize(("kind", "asset_id"), [(A_FILE, 70), (A_COVER, None)])
def test_a_file_that_the_service_keeps_otherwise_was_replaced_by_nobody(kind: WriteKind, asset_id: int | None) -> None:
    """Its name was another one when it was written; its size was not."""
    file = FILE if kind == A_FILE else PICTURE
    renamed = in_target(asset_id, file.kind, filename="a_.pdf")
    written = entry(2, kind, asset_id=asset_id, message=change_of(file, renamed))
    assert decide([created(), written], files=[renamed]).action == Action.DELETE
    assert decide([written], files=[renamed], action=Action.PATCH).stays == []
    replaced = renamed._replace(size=11)
    assert decide([created(), written], files=[replaced]).stays
    assert decide([written], files=[replaced], action=Action.PATCH).stays


def test_a_record_without_files_of_the_plan_is_deleted_where_no_files_are_shown() -> None:
    assert decide([created()], files=None).action == Action.DELETE


def test_what_a_later_plan_wrote_to_is_left_until_that_is_undone() -> None:
    later = entry(9, PATCH, plan="later")
    decision = decide([created(), later])
    assert decision == inverse(stays=["plan later wrote to it later: undo that plan first"])
    assert decide([created(), entry(9, PATCH, WriteState.UNDONE, plan="later")]).action == Action.DELETE
    assert decide([entry(0, PATCH, plan="earlier"), created()]).action == Action.DELETE
    assert decide([created(), entry(9, PATCH, WriteState.REFUSED, plan="later")]).action == Action.DELETE


def reverted(entry: JournalEntry, fields: Mapping[str, Any] = NEW, **before: Any) -> InverseRow:
    """What undo does about a record that had these values before."""
    return decide([entry], fields, action=Action.PATCH, before=before)


def test_fields_get_their_old_values_back_where_they_are_as_written() -> None:
    decision = reverted(changed(), title="Old", abstract=None)
    assert decision == inverse(action=Action.PATCH, payload={"title": "Old", "abstract": None}, undoes=[1])
    cleared = reverted(changed(), {"title": "New"}, title="Old", abstract="New")
    assert (cleared.payload, cleared.stays) == ({"title": "Old"}, ["people changed abstract since"])
    restored = reverted(changed(), {"title": "Old"}, title="Old", abstract=None)
    assert restored == inverse(undoes=[1]), "people took it back themselves"


def test_the_values_that_the_service_held_count_before_those_that_were_sent() -> None:
    held = changed(wanted=digests({"title": "New"}), held=digests({"title": "Shortened"}))
    assert reverted(held, {"title": "Shortened"}, title="Old").payload == {"title": "Old"}
    assert reverted(held, {"title": "New"}, title="Old").stays == ["people changed title since"]


def test_a_list_that_was_empty_is_emptied() -> None:
    """Null is no list."""
    written = changed(wanted=digests({"authors": [{"name": "A"}]}))
    decision = reverted(written, {"title": "T", "authors": [{"name": "A"}]}, authors=None)
    assert decision.payload == {"authors": []}


def test_what_the_plan_did_not_write_with_an_entry_stays() -> None:
    """Another entry of the record has the rest, such as its links."""
    decision = reverted(changed(wanted=digests({"title": "New"})), title="Old", abstract="Old")
    assert (decision.payload, decision.stays) == ({"title": "Old"}, [])


def detached(inverse_row: InverseRow) -> list[int | None]:
    assert {file.action for file in inverse_row.files} == {FileAction.DETACH}
    return [file.target_asset_id for file in inverse_row.files]


def test_an_attached_file_is_detached_unless_people_replaced_it() -> None:
    attached = [entry(2, A_FILE, asset_id=70)]
    assert detached(decide(attached, files=[in_target(70), in_target(71)], action=Action.PATCH)) == [70]
    replaced = decide(attached, files=[in_target(70, size=11)], action=Action.PATCH)
    assert (replaced.files, replaced.undoes, len(replaced.stays)) == ([], [], 1)
    assert decide(attached, files=[in_target(71)], action=Action.PATCH) == inverse(undoes=[2])
    assert decide(attached, files=None, action=Action.PATCH) == inverse(stays=[FILES_HIDDEN])


def test_a_file_that_may_have_been_attached_is_left_for_a_person() -> None:
    doubt = [entry(2, A_FILE, WriteState.PARKED)]
    left = decide(doubt, files=[in_target(70)], action=Action.PATCH)
    assert (left.files, left.undoes, len(left.stays)) == ([], [], 1)
    assert decide(doubt, files=[in_target(70, size=11)], action=Action.PATCH) == inverse(undoes=[2])


def test_a_cover_is_removed_where_there_was_none_before() -> None:
    cover = [entry(2, A_COVER)]
    own_cover, other_cover = in_target(None, COVER), in_target(None, COVER, filename="other.jpg")
    assert decide(cover, files=[own_cover], action=Action.PATCH) == inverse(
        action=Action.PATCH, payload={"cover": None}, undoes=[2]
    )
    assert decide(cover, files=[], action=Action.PATCH) == inverse(undoes=[2])
    decision = decide(cover, files=[other_cover], action=Action.PATCH)
    assert decision == inverse(stays=["people set another cover since"])
    replaced = decide([entry(1, A_COVER, plan="earlier"), *cover], files=[own_cover], action=Action.PATCH)
    assert replaced.stays == ["the cover that it had before is not stored anywhere, so the new one stays"]
    patched = decide([entry(1, PATCH, plan="earlier"), *cover], files=[own_cover], action=Action.PATCH)
    assert patched.payload == {"cover": None}
