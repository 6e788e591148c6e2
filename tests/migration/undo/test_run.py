"""Undo takes back what a plan wrote, and nothing that people edited or created (I8, I9)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from pipelines.errors import SafetyLimitError, TemporaryError
from pipelines.migration.limits import Limits
from pipelines.migration.undo.result import UndoResult
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair
from tests.migration.test_additional_fields import DOCUMENTED
from tests.migration.verify.test_run import WITH_PDF, apply_new_plan, pdf_of, target_ids, upload


def counts_of(result: UndoResult) -> tuple[int, int, int, int]:
    return result.deleted, result.reverted, result.files_deleted, result.left


def without_addresses(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records without the signed addresses, which differ in every response."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items() if not key.endswith("url")}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return [plain(record) for record in records]


@pytest.mark.long
def test_an_undo_leaves_the_target_as_it_was(pair: LibraryPair, snapshot: Snapshot) -> None:
    """A target with records of its own: created records and files are deleted, changed fields have their old values; and again.

    A service that is down for a while is waited for.
    """
    own_record = pair.call("POST", "publications", {"title": "Somebody's own", "categories": [{"name": "Own"}]})
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
    dry_run = pair.undo(plan)
    assert len(pair.publications()) == RECORDS + 1, "a dry run writes nothing"
    outage = 6 * 7  # longer than the tries of one request: its records have a second turn
    pair.sandbox.fault("status", pair.target, method="DELETE", status=503, times=outage)
    result = pair.undo(plan, really=True)
    assert counts_of(result) == counts_of(dry_run) == (RECORDS - 1, 1, 1, 0)
    assert {str(row) for row in dry_run.rows} == {str(row) for row in result.rows}
    assert Counter(row.code for row in dry_run.rows) == {"delete": RECORDS - 1, "patch": 1}
    assert any("patch: old values of " in str(row) for row in dry_run.rows)
    assert without_addresses(pair.publications()) == before
    assert own_record["id"] in {record["id"] for record in pair.publications()}
    second_run = pair.undo(plan, really=True)
    assert (*counts_of(second_run), second_run.requests) == (0, 0, 0, 0, 0), "run twice, the second run does nothing"
    assert pair.plan(snapshot).facts.counts == plan.facts.counts
    assert pair.apply(plan).complete, "the same plan can be applied again"
    assert pair.verify(plan, contents=True).equal


def test_records_that_people_edited_since_stay(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I8: undo deletes only what the journal says the plan created, and only where it is still as written (more in test_decision.py)."""
    plan = apply_new_plan(pair, snapshot)
    in_target = target_ids(pair, plan)
    pair.call("PATCH", f"publications/{in_target[3]}", {"title": "Another title"})
    pair.call("DELETE", f"publications/{in_target[4]}")
    pdf = pair.call("GET", f"publications/{in_target[WITH_PDF]}")["assets"][0]
    longer = upload(pair, pdf_of(snapshot, WITH_PDF) + b"corrected", pdf["file"], "assets/presign")
    assert pair.call("PATCH", f"assets/{pdf['id']}", {"file": longer})["id"] == pdf["id"]
    dry_run = pair.undo(plan)
    result = pair.undo(plan, really=True)
    assert counts_of(result) == counts_of(dry_run) == (RECORDS - 3, 0, 0, 2)
    assert (result.gone, dry_run.gone) == (1, 1)
    assert {left.source_id: left.problem for left in result.findings} == {
        3: "people changed title since",
        WITH_PDF: f"people replaced {pdf['file']['metadata']['filename']} since",
    }
    assert {left.source_id for left in dry_run.findings} == {3, WITH_PDF}
    assert [record["id"] for record in pair.publications()] == sorted([in_target[3], in_target[WITH_PDF]])


def test_a_dry_run_promises_no_more_than_an_undo_does_where_no_files_are_shown(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    plan = apply_new_plan(pair, snapshot)
    shown = {name: field for name, field in DOCUMENTED.items() if name != "assets"}
    pair.sandbox.reshape({"publications": {"fields": shown}}, pair.target)
    dry_run = pair.undo(plan)
    assert counts_of(dry_run) == counts_of(pair.undo(plan, really=True))
    assert WITH_PDF in {left.source_id for left in dry_run.findings}


def test_an_interrupted_undo_continues(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I9: what was taken back before counts, and a DELETE with a lost response is no error."""
    plan = apply_new_plan(pair, snapshot)
    pair.sandbox.fault("status", pair.target, method="DELETE", status=500, when="after", times=1000)
    with pytest.raises(TemporaryError):
        pair.undo(plan, really=True, limits=Limits(patience=0))
    assert len(pair.publications()) < RECORDS
    pair.sandbox.reset("faults")
    result = pair.undo(plan, really=True)
    assert result.left == 0
    assert pair.publications() == []
    assert pair.plan(snapshot).facts.counts == plan.facts.counts


def test_a_record_that_cannot_be_deleted_for_now_ends_the_undo_after_its_resource(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """The others of its resource go; what it may refer to stays, which would look edited otherwise."""
    plan = apply_new_plan(pair, snapshot)
    number = target_ids(pair, plan)[3]
    pair.sandbox.fault("status", pair.target, method="DELETE", path=f"publications/{number}$", status=503, times=1000)
    with pytest.raises(TemporaryError):
        pair.undo(plan, really=True)
    assert [record["id"] for record in pair.publications()] == [number]
    pair.sandbox.reset("faults")
    assert counts_of(pair.undo(plan, really=True)) == (1, 0, 0, 0)


def test_an_undo_that_the_service_refuses_ends_at_the_limits(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = apply_new_plan(pair, snapshot)
    pair.sandbox.fault("status", pair.target, method="DELETE", status=422, times=1000)
    with pytest.raises(SafetyLimitError, match=r"4 of \d+ records could not be taken back .* the next undo continues"):
        pair.undo(plan, really=True, limits=Limits(failures=3))
    pair.sandbox.reset("faults")
    assert pair.undo(plan, really=True).left == 0
