"""What a plan did is taken back, and nothing else: not what people edited, not what they made (I8, I9)."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.errors import TemporaryError
from pipelines.migration.model.plan import Plan
from pipelines.migration.undo.result import UndoResult
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.moving import Desk
from tests.migration.verify.test_run import WITH_BOTH, WITH_PDF, applied, became, content, upload, verified


def undone(desk: Desk, plan: Plan, *, really: bool) -> UndoResult:
    with desk.migration() as migration:
        return migration.undo(plan, really=really)


def numbers(found: UndoResult) -> tuple[int, int, int, int]:
    return found.deleted, found.reverted, found.files_deleted, found.left


def without_addresses(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records without what is another in every answer."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items() if not key.endswith("url")}
        return [plain(one) for one in value] if isinstance(value, list) else value

    return [plain(one) for one in records]


def test_an_undo_leaves_the_target_as_it_was(desk: Desk, snapshot: Snapshot) -> None:
    """A target that held something: what was created is deleted, what was changed has its old values, files are gone; and again."""
    kept = desk.call("POST", "publications", {"title": "Somebody's own", "categories": [{"name": "Own"}]})
    lacking = {
        "title": "A ConvNet for the 2020s",
        "identifiers": [{"type": "doi", "value": "10.1109/CVPR52688.2022.01167"}],
    }
    desk.call("POST", "publications", lacking)
    before = without_addresses(desk.held())
    plan = desk.plan(snapshot)
    counts = plan.facts.counts["publications"]
    assert (counts["create"], counts["patch"]) == (RECORDS - 1, 1), counts
    desk.apply(plan)
    rehearsed = undone(desk, plan, really=False)
    assert len(desk.held()) == RECORDS + 1, "a rehearsal writes nothing"
    found = undone(desk, plan, really=True)
    assert numbers(found) == numbers(rehearsed) == (RECORDS - 1, 1, 1, 0)
    assert without_addresses(desk.held()) == before
    assert kept["id"] in {one["id"] for one in desk.held()}
    again = undone(desk, plan, really=True)
    assert (*numbers(again), again.requests) == (0, 0, 0, 0, 0), "run twice, the second run does nothing"
    assert desk.plan(snapshot).facts.counts == plan.facts.counts
    assert desk.apply(plan).applied.complete, "the same plan can be applied again"
    assert verified(desk, plan, contents=True).equal


def test_what_people_edited_since_stays(desk: Desk, snapshot: Snapshot) -> None:
    """I8: nothing is deleted except what the journal says we made, and that only as we left it."""
    plan = applied(desk, snapshot)
    now = became(desk, plan)
    desk.call("PATCH", f"publications/{now[3]}", {"title": "Another title"})
    desk.call("DELETE", f"publications/{now[4]}")
    pdf = desk.call("GET", f"publications/{now[WITH_PDF]}")["assets"][0]
    other = {"metadata": {"filename": "notes.pdf", "mime_type": "application/pdf"}}
    notes = upload(desk, content(snapshot, WITH_PDF), other, "assets/presign")
    desk.call("POST", "assets", {"publication_id": now[5], "file": notes})
    both = desk.call("GET", f"publications/{now[WITH_BOTH]}")
    cover = upload(desk, b"another", both["cover"], "publications/cover/presign")
    desk.call("PATCH", f"publications/{now[WITH_BOTH]}", {"cover": cover})
    rehearsed = undone(desk, plan, really=False)
    found = undone(desk, plan, really=True)
    assert numbers(found) == numbers(rehearsed) == (RECORDS - 4, 0, 0, 3)
    assert (found.gone, rehearsed.gone) == (1, 1)
    assert {one.source_id: one.reason for one in found.examples} == {
        3: "people changed title since",
        5: "people attached notes.pdf since",
        WITH_BOTH: "people set another cover since",
    }
    assert {one.source_id for one in rehearsed.examples} == {3, 5, WITH_BOTH}
    assert [one["id"] for one in desk.held()] == sorted(now[number] for number in (3, 5, WITH_BOTH))
    assert pdf["id"] not in {asset["id"] for one in desk.held() for asset in one["assets"]}


def test_fields_get_their_values_back_unless_people_changed_them(desk: Desk, snapshot: Snapshot) -> None:
    """A field that still holds what was written is restored; another one of the same record is left, and told."""
    doi = {"type": "doi", "value": "10.1021/nl402145r"}
    there = desk.call("POST", "publications", {"title": "Nanolaser", "identifiers": [doi]})
    plan = desk.plan(snapshot)
    conflicts = plan.path("conflicts.tsv")
    heading, line = conflicts.read_text().splitlines()
    conflicts.write_text("\n".join([heading, "\t".join([*line.split("\t")[:-1], "source"])]))
    plan = desk.plan(snapshot)
    assert desk.apply(plan).applied.patched == 1
    desk.call("PATCH", f"publications/{there['id']}", {"authors": [{"name": "Somebody else", "type": "person"}]})
    found = undone(desk, plan, really=True)
    assert numbers(found) == (RECORDS - 1, 1, 0, 1)
    assert [(one.source_id, one.reason) for one in found.examples] == [(2, "people changed authors since")]
    [left] = desk.held()
    assert (left["title"], left["publishable_type"], left["authors"][0]["name"]) == ("Nanolaser", None, "Somebody else")


def test_an_undo_that_was_ended_in_the_middle_goes_on(desk: Desk, snapshot: Snapshot) -> None:
    """I9: whatever came before the end counts, and a DELETE whose answer was lost is no mistake."""
    plan = applied(desk, snapshot)
    desk.sandbox.fault("status", desk.target, method="DELETE", status=500, when="after", times=1000)
    with pytest.raises(TemporaryError):
        undone(desk, plan, really=True)
    assert len(desk.held()) < RECORDS
    desk.sandbox.reset("faults")
    found = undone(desk, plan, really=True)
    assert found.left == 0
    assert desk.held() == []
    assert desk.plan(snapshot).facts.counts == plan.facts.counts
