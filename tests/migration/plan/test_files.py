"""No file of a record is attached twice, and none is left out (I8, I12)."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.migration.model.actions import FileAction
from pipelines.migration.model.journal_entries import WriteKind, WriteState, WrittenFile
from pipelines.migration.model.plan import PlannedFile
from pipelines.migration.plan.files import planned_files
from pipelines.records.files import ASSET, COVER, KEPT, AttachedFile

SHA, OTHER_SHA = "a" * 64, "b" * 64
UPLOAD, THERE, MISSING = FileAction.UPLOAD, FileAction.THERE, FileAction.MISSING


def described(kind: str = ASSET, position: int = 0, **values: Any) -> AttachedFile:
    """A file as a record describes it."""
    defaults: dict[str, Any] = {
        "asset_id": None if kind == COVER else position + 1,
        "name": None,
        "content_type": None,
        "filename": "text.pdf",
        "mime_type": None,
        "size": 10,
    }
    return AttachedFile(kind, position, **{**defaults, **values})


def content(kind: str = ASSET, position: int = 0, **values: Any) -> dict[str, Any]:
    """A row of publication_files."""
    return {"kind": kind, "position": position, "status": KEPT, "sha256": SHA, "bytes": 10, "problem": None, **values}


def entry(kind: WriteKind, part: str, asset_id: int | None = None, state: WriteState = WriteState.DONE) -> WrittenFile:
    """What an earlier plan wrote."""
    return WrittenFile(kind, part, state, asset_id)


def actions(planned: list[PlannedFile]) -> list[tuple[FileAction, int | None]]:
    return [(file.action, file.target_asset_id) for file in planned]


@pytest.mark.parametrize(("filename", "action"), [("text.pdf", MISSING), ("data.tar.GZ", UPLOAD)])
def test_packed_bytes_are_uploaded_under_the_name_of_a_packed_file_only(filename: str, action: FileAction) -> None:
    """A gzip stream that is called a PDF opens nowhere."""
    packed = content(problem="Kept as https://s sends it: packed (gzip).")
    [planned] = planned_files([described(filename=filename)], [packed], [], [])
    assert planned.action == action
    assert planned.problem == (packed["problem"] if action == MISSING else None)


def test_a_file_of_the_target_stands_for_one_file_of_the_source() -> None:
    """Two equal files in the source, one of them in the target: the other one is uploaded."""
    source_files = [described(ASSET, 0), described(ASSET, 1)]
    contents = [content(ASSET, 0), content(ASSET, 1)]
    target_files = [described(asset_id=70)]
    assert actions(planned_files(source_files, contents, target_files, [])) == [(THERE, 70), (UPLOAD, None)]
    all_target_files = [*target_files, described(asset_id=71)]
    assert actions(planned_files(source_files, contents, all_target_files, [])) == [(THERE, 70), (THERE, 71)]


@pytest.mark.parametrize(
    ("values", "recognised"),
    [
        ({"size": 10}, True),
        ({"size": 11}, False),
        ({"size": None}, False),
        ({"filename": "another.pdf"}, False),
        ({"filename": None, "name": "Contents"}, True),
        ({"filename": None, "name": "Index"}, False),
        ({"filename": None, "name": None}, False),
        ({"kind": COVER}, False),
    ],
)
def test_a_file_of_the_target_is_recognised_by_size_and_name(values: dict[str, Any], recognised: bool) -> None:
    source = described(name="Contents")
    [planned] = planned_files([source], [content()], [described(**{"asset_id": 70, **values})], [])
    assert (planned.action, planned.target_asset_id) == ((THERE, 70) if recognised else (UPLOAD, None))


def test_what_an_earlier_plan_attached_is_not_attached_again_even_where_people_removed_it() -> None:
    part = f"asset/1/{SHA}"
    written = [entry(WriteKind.ASSET, part, 70)]
    assert actions(planned_files([described()], [content()], [], written)) == [(THERE, 70)]
    assert actions(planned_files([described()], [content(sha256=OTHER_SHA)], [], written)) == [(UPLOAD, None)]
    for state in (WriteState.UNDONE, WriteState.REFUSED, WriteState.INTENDED):
        taken_back = [entry(WriteKind.ASSET, part, 70, state)]
        assert actions(planned_files([described()], [content()], [], taken_back)) == [(UPLOAD, None)]


COVER_BEFORE = f"cover/at0/{SHA}"


@pytest.mark.parametrize(
    ("target_files", "written", "action"),
    [
        ([], [], UPLOAD),
        ([described(COVER)], [], THERE),
        ([described(ASSET, asset_id=70)], [], UPLOAD),
        ([described(COVER)], [entry(WriteKind.COVER, f"cover/at0/{OTHER_SHA}")], UPLOAD),
        ([described(COVER)], [entry(WriteKind.ASSET, f"asset/1/{OTHER_SHA}", 70)], THERE),
        ([described(COVER)], [entry(WriteKind.COVER, COVER_BEFORE)], THERE),
    ],
)
def test_a_cover_of_the_target_stays_unless_it_is_our_own(
    target_files: list[AttachedFile], written: list[WrittenFile], action: FileAction
) -> None:
    [planned] = planned_files([described(COVER)], [content(COVER)], target_files, written)
    assert (planned.action, planned.target_asset_id) == (action, None)


@pytest.mark.parametrize(
    ("target_files", "planned"),
    [
        ([described(asset_id=70)], (THERE, 70)),
        ([], (MISSING, None)),
        ([described(asset_id=70, size=11)], (MISSING, None)),
    ],
)
def test_a_file_without_content_is_there_where_an_earlier_plan_attached_it(
    target_files: list[AttachedFile], planned: tuple[FileAction, int | None]
) -> None:
    written = [entry(WriteKind.ASSET, f"asset/1/{SHA}", 70)]
    assert actions(planned_files([described()], [], target_files, written)) == [planned]
    of_another = [entry(WriteKind.ASSET, f"asset/11/{SHA}", 70)]
    two, stored = [described(), described(position=10)], [content(position=10)]
    assert actions(planned_files(two, stored, [described(asset_id=70)], of_another)) == [(MISSING, None), (THERE, 70)]
    cover = planned_files([described(COVER)], [], [described(COVER)], [entry(WriteKind.COVER, COVER_BEFORE)])
    assert actions(cover) == [(THERE, None)]
