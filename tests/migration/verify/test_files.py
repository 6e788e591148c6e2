"""The files of a record after a migration: each planned one is there once, as it was planned (I12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from pipelines.migration.model.actions import FileAction
from pipelines.migration.model.file_comparison import is_like, part_of
from pipelines.migration.model.journal_entries import WrittenFile
from pipelines.migration.model.plan import PlannedFile
from pipelines.migration.verify.files import compare_files
from pipelines.records.files import ASSET, COVER, AttachedFile

UPLOAD, THERE, MISSING = FileAction.UPLOAD, FileAction.THERE, FileAction.MISSING


def planned(kind: str = ASSET, position: int = 0, action: FileAction = UPLOAD, **values: Any) -> PlannedFile:
    defaults: dict[str, Any] = {"filename": f"{position}.pdf", "name": f"Part {position}", "size": 10, "sha256": "a"}
    return PlannedFile(kind=kind, position=position, action=action, **{"asset_id": position + 1, **defaults, **values})


def in_target(asset_id: int | None, kind: str = ASSET, position: int = 0, **values: Any) -> AttachedFile:
    defaults: dict[str, Any] = {"filename": f"{position}.pdf", "name": f"Part {position}", "size": 10}
    rest: dict[str, Any] = {"content_type": None, "mime_type": None}
    return AttachedFile(kind, position, asset_id, **{**defaults, **rest, **values})


def attached(
    file: PlannedFile, asset_id: int | None, state: str = "done", message: str | None = None
) -> dict[str, Any]:
    return {part_of(file): WrittenFile(file.kind, part_of(file), state, asset_id, message)}


def compare(
    files: list[PlannedFile],
    target_files: list[AttachedFile],
    known_ids: Collection[int | None] = (),
    written: Mapping[str, WrittenFile] | None = None,
) -> tuple[list[tuple[str, int]], list[tuple[int, int | None]]]:
    """Returns (problem, place of the file), and (place of the file, id in the target) of those that are there."""
    problems, pairs = compare_files(files, target_files, known_ids=frozenset(known_ids), written=written or {})
    return (
        [(problem.code, int(problem.wanted.partition(".")[0])) for problem in problems],
        [(file.position, match.asset_id) for file, match in pairs],
    )


def test_a_file_that_is_not_there_is_missing_with_the_reason() -> None:
    file = planned()
    for entry, reason in (
        ({}, "it was not attached yet"),
        (attached(file, 70), "it was attached, and is not there any more"),
        (attached(file, 70, "undone"), "it was attached, and taken back"),
        (attached(file, None, "intended"), "the response when it was attached was lost"),
        (attached(file, None, "refused", "too large"), "too large"),
        (attached(file, None, "parked"), "parked"),
    ):
        [problem], pairs = compare_files([file], [], known_ids=set(), written=entry)
        assert (problem.code, pairs) == ("missing", [])
        assert problem.problem.startswith(reason)
    [problem], _ = compare_files([planned(action=THERE, target_asset_id=70)], [], known_ids=set(), written={})
    assert problem.problem == "it was there when the plan was made, and is not there any more"


def test_a_file_that_people_replaced_by_a_like_one_is_there_and_another_one_is_not() -> None:
    file = planned()
    assert compare([file], [in_target(99)], {70}, attached(file, 70)) == ([], [(0, 99)])
    assert compare([file], [in_target(99, size=11)], {70}, attached(file, 70)) == ([("missing", 0)], [])
    assert compare([file], [in_target(99)], {99}, attached(file, 70)) == ([("missing", 0)], []), (
        "99 belongs to another file"
    )
    assert compare([file], [in_target(None, COVER)], (), attached(file, 70)) == ([("missing", 0)], [])


def test_a_file_beside_the_planned_one_and_like_it_is_a_duplicate() -> None:
    file = planned()
    problems, pairs = compare_files([file], [in_target(70), in_target(99)], known_ids={70}, written=attached(file, 70))
    [problem] = problems
    assert (problem.code, problem.wanted, len(pairs)) == ("duplicated", "0.pdf (10 bytes)", 1)
    assert "99" in problem.problem
    assert compare([file], [in_target(70), in_target(98, position=5)], {70}, attached(file, 70)) == ([], [(0, 70)])
    assert compare([file], [in_target(70), in_target(60)], {60, 70}, attached(file, 70)) == ([], [(0, 70)])


@pytest.mark.parametrize(
    ("change", "part"), [({"size": 11}, "size"), ({"filename": "b.pdf"}, "file name"), ({"name": "Other"}, "name")]
)
def test_a_file_that_differs_says_in_what(change: dict[str, Any], part: str) -> None:
    file = planned()
    for entry, reason in (
        (attached(file, 70), "changed since it was written, or by the service"),
        (attached(file, 70, message="told"), "the target did not take it as it is"),
    ):
        [problem], pairs = compare_files([file], [in_target(70, **change)], known_ids={70}, written=entry)
        assert (problem.code, problem.problem) == ("differing", f"another {part}: {reason}")
        assert len(pairs) == 1, "its bytes are compared, too"
    assert compare([file], [in_target(70, **dict.fromkeys(change))], {70}, attached(file, 70)) == ([], [(0, 70)])
    kept_file = planned(action=THERE, target_asset_id=70)
    assert compare([kept_file], [in_target(70, **change)], {70}) == ([], [(0, 70)]), "the plan left it as it was"


def test_a_cover_is_compared_with_the_cover() -> None:
    cover = planned(COVER, asset_id=None)
    assert compare([cover], [in_target(None, COVER)]) == ([], [(0, None)])
    assert compare([cover], [in_target(70)]) == ([("missing", 0)], [])
    [problem], _ = compare_files([cover], [in_target(None, COVER, size=11)], known_ids=set(), written={})
    assert (problem.code, problem.problem) == ("differing", "another size: it was not set yet")
    renamed = in_target(None, COVER, name="A cover has no name of its own")
    assert compare([cover], [renamed]) == ([], [(0, None)])


def test_a_file_that_the_plan_could_not_send_is_lacking_until_somebody_attached_it() -> None:
    lost = planned(action=MISSING, sha256=None, problem="404 Not Found")
    [problem], _ = compare_files([lost], [], known_ids=set(), written={})
    assert (problem.code, problem.lacking) == ("file", True)
    assert problem.problem == "the plan could not send it: 404 Not Found"
    assert compare([lost], [in_target(99)]) == ([], [(0, 99)])
    assert compare([lost], [in_target(99)], {99}) == ([], []), "a later plan attached it"
    assert compare([lost], [in_target(99, position=5)], {99}) == ([("file", 0)], [])
    two = [lost, planned(action=MISSING, sha256=None, asset_id=2)]
    assert compare(two, [in_target(99)], {99}) == ([("file", 0)], []), "one file stands for one"


@pytest.mark.parametrize(
    ("values", "like"),
    [
        ({}, True),
        ({"size": 11}, False),
        ({"size": None}, True),
        ({"filename": "b.pdf"}, False),
        ({"name": "Other"}, True),
        ({"filename": None}, True),
        ({"filename": None, "name": "Other"}, False),
        ({"filename": None, "name": None}, False),
    ],
)
def test_files_are_alike_by_size_and_by_file_name_or_else_by_name(values: dict[str, Any], like: bool) -> None:
    assert is_like(planned(), in_target(70, **values)) is like
