"""What a plan did is taken back, and nothing else: not what people edited, not what they made (I8, I9)."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.errors import TemporaryError
from pipelines.migration.model.plan import Plan
from pipelines.migration.undo.run import UndoResult
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair
from tests.migration.verify.test_run import WITH_BOTH, WITH_PDF, applied, became, content, upload, verified


def undone(pair: LibraryPair, plan: Plan, *, really: bool) -> UndoResult:
    with pair.migration() as migration:
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


def test_an_undo_leaves_the_target_as_it_was(pair: LibraryPair, snapshot: Snapshot) -> None:
    """A target that held something: what was created is deleted, what was changed has its old values, files are gone; and again."""
    kept = pair.call("POST", "publications", {"title": "Somebody's own", "categories": [{"name": "Own"}]})
    lacking = {
        "title": "A ConvNet for the 2020s",
        "identifiers": [{"type": "doi", "value": "10.1109/CVPR52688.2022.01167"}],
    }
    pair.call("POST", "publications", lacking)
    before = without_addresses(pair.publications())
    plan = pair.plan(snapshot)
    counts = plan.facts.counts["publications"]
    assert (counts["create"], counts["patch"]) == (RECORDS - 1, 1), counts
    pair.apply(plan)
    rehearsed = undone(pair, plan, really=False)
    assert len(pair.publications()) == RECORDS + 1, "a rehearsal writes nothing"
    found = undone(pair, plan, really=True)
    assert numbers(found) == numbers(rehearsed) == (RECORDS - 1, 1, 1, 0)
    assert without_addresses(pair.publications()) == before
    assert kept["id"] in {one["id"] for one in pair.publications()}
    again = undone(pair, plan, really=True)
    assert (*numbers(again), again.requests) == (0, 0, 0, 0, 0), "run twice, the second run does nothing"
    assert pair.plan(snapshot).facts.counts == plan.facts.counts
    assert pair.apply(plan).applied.complete, "the same plan can be applied again"
    assert verified(pair, plan, contents=True).equal


def test_what_people_edited_since_stays(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I8: nothing is deleted except what the journal says we made, and that only as we left it."""
    plan = applied(pair, snapshot)
    now = became(pair, plan)
    pair.call("PATCH", f"publications/{now[3]}", {"title": "Another title"})
    pair.call("DELETE", f"publications/{now[4]}")
    pdf = pair.call("GET", f"publications/{now[WITH_PDF]}")["assets"][0]
    other = {"metadata": {"filename": "notes.pdf", "mime_type": "application/pdf"}}
    notes = upload(pair, content(snapshot, WITH_PDF), other, "assets/presign")
    pair.call("POST", "assets", {"publication_id": now[5], "file": notes})
    both = pair.call("GET", f"publications/{now[WITH_BOTH]}")
    cover = upload(pair, b"another", both["cover"], "publications/cover/presign")
    pair.call("PATCH", f"publications/{now[WITH_BOTH]}", {"cover": cover})
    rehearsed = undone(pair, plan, really=False)
    found = undone(pair, plan, really=True)
    assert numbers(found) == numbers(rehearsed) == (RECORDS - 4, 0, 0, 3)
    assert (found.gone, rehearsed.gone) == (1, 1)
    assert {one.source_id: one.reason for one in found.examples} == {
        3: "people changed title since",
        5: "people attached notes.pdf since",
        WITH_BOTH: "people set another cover since",
    }
    assert {one.source_id for one in rehearsed.examples} == {3, 5, WITH_BOTH}
    assert [one["id"] for one in pair.publications()] == sorted(now[number] for number in (3, 5, WITH_BOTH))
    assert pdf["id"] not in {asset["id"] for one in pair.publications() for asset in one["assets"]}


def test_fields_get_their_values_back_unless_people_changed_them(pair: LibraryPair, snapshot: Snapshot) -> None:
    """A field that still holds what was written is restored; another one of the same record is left, and told."""
    doi = {"type": "doi", "value": "10.1021/nl402145r"}
    there = pair.call("POST", "publications", {"title": "Nanolaser", "identifiers": [doi]})
    plan = pair.plan(snapshot)
    conflicts = plan.path("conflicts.tsv")
    heading, line = conflicts.read_text().splitlines()
    conflicts.write_text("\n".join([heading, "\t".join([*line.split("\t")[:-1], "source"])]))
    plan = pair.plan(snapshot)
    assert pair.apply(plan).applied.patched == 1
    pair.call("PATCH", f"publications/{there['id']}", {"authors": [{"name": "Somebody else", "type": "person"}]})
    found = undone(pair, plan, really=True)
    assert numbers(found) == (RECORDS - 1, 1, 0, 1)
    assert [(one.source_id, one.reason) for one in found.examples] == [(2, "people changed authors since")]
    [left] = pair.publications()
    assert (left["title"], left["publishable_type"], left["authors"][0]["name"]) == ("Nanolaser", None, "Somebody else")


def test_an_undo_that_was_ended_in_the_middle_goes_on(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I9: whatever came before the end counts, and a DELETE whose answer was lost is no mistake."""
    plan = applied(pair, snapshot)
    pair.sandbox.fault("status", pair.target, method="DELETE", status=500, when="after", times=1000)
    with pytest.raises(TemporaryError):
        undone(pair, plan, really=True)
    assert len(pair.publications()) < RECORDS
    pair.sandbox.reset("faults")
    found = undone(pair, plan, really=True)
    assert found.left == 0
    assert pair.publications() == []
    assert pair.plan(snapshot).facts.counts == plan.facts.counts
