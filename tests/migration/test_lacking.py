"""What a plan could not send, or the service did not keep, is counted by apply, status and verify until a later plan has moved it (I6)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.findings import Lacking
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import ISSUES, PlannedFile
from pipelines.migration.model.reasons import ReasonKind
from pipelines.migration.model.wording import headline
from pipelines.migration.report.issues import summarise
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data
from tests.migration.library_pair import LibraryPair
from tests.migration.sample_plans import plan_of, row
from tests.store.snapshot_factory import publish_records


@pytest.mark.long
def test_files_whose_download_failed_are_moved_by_a_later_plan(pair: LibraryPair) -> None:
    """Until then they are lacking, whatever plan moved their records."""
    pair.config.write_text(pair.config.read_text().replace('data = "library-data"', 'data = "other-data"'))
    pair.sandbox.fault("status", "library", path="^/storage/", status=404, times=1000)
    plan = pair.plan(pair.back_up())
    pair.sandbox.reset("faults")
    applied, proof = pair.apply(plan), pair.verify(plan)
    lacking = Lacking(files=3, covers=2)
    assert (applied.complete, applied.lacking, proof.as_planned, proof.lacking) == (False, lacking, True, lacking)
    later = pair.plan(pair.back_up("again"))
    assert (later.facts.files.missing, later.facts.files.upload) == (0, 5)
    assert pair.apply(later).complete
    assert pair.verify(later, contents=True).equal
    assert pair.verify(plan).equal


@pytest.mark.long
def test_a_field_that_a_response_does_not_have_is_not_called_lost(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The document does not show the responses to writes: they may leave out empty fields."""
    pair.sandbox.change(pair.target, variations={"nulls": "absent"})
    plan = pair.plan(snapshot)
    assert pair.apply(plan).complete
    assert pair.verify(plan).equal


def test_every_kind_is_counted_from_the_rows_of_a_plan(tmp_path: Path) -> None:
    """No person is named (I10)."""
    lost = PlannedFile(
        kind="asset", position=0, action=FileAction.MISSING, filename="lost.pdf", problem="404 Not Found"
    )
    unsent = {
        "contributor": {"id": 7, "name": "Cora"},
        "organization": {"id": 1},
        "categories[2]": {"id": 3},
        "categories[3].parent": 1,
        "collection_ids": [4, 5],
        "authors[0].authority_id": 9,
        "import_state": "done",
        "isbn": "97803",
    }
    rows = [
        row(1, Action.CREATE, files=[lost], unsent=unsent),
        row(2, Action.UNCHANGED, target_id=3, files=[PlannedFile(kind="cover", position=0, action=FileAction.MISSING)]),
        row(3, Action.CONFLICT, files=[lost], unsent=unsent, reason="fields_differ"),
        row(4, Action.SKIPPED, unsent=unsent),
        row(5, Action.QUARANTINED, unsent=unsent, reason="nothing_to_send"),
        row(
            6,
            Action.PATCH,
            resource="collections",
            target_id=4,
            unsent={"publication_ids[3]": 12, "colour": "red"},
            why={"publication_ids[3]": "no_record", "colour": "not_shown"},
        ),
    ]
    not_moved = summarise(plan_of(tmp_path / "plan", rows, unfit=2)).not_moved
    assert not_moved.lacking == Lacking(records=3, files=1, covers=1, references=6)
    references = [
        (finding.source_id, finding.field, finding.wanted)
        for finding in not_moved.first
        if finding.kind == ReasonKind.REFERENCES
    ]
    assert references == [
        (1, "contributor", "7"),
        (1, "organization", "1"),
        (1, "categories[2]", "3"),
        (1, "collection_ids", "4, 5"),
        (1, "authors[0].authority_id", "9"),
        (6, "publication_ids[3]", "12"),
    ]
    assert "Cora" not in repr(not_moved)


@pytest.mark.long
def test_unrecognised_identifiers_are_sent_where_somebody_wants_it(pair: LibraryPair, snapshot: Snapshot) -> None:
    """`--invalid-identifiers` sends what breaks the rules as it stands, words too; no page then advises it."""
    default_plan = pair.plan(snapshot)
    assert [loss.count for loss in losses_of(default_plan) if loss.kind == "identifiers"] == [1]
    assert "--invalid-identifiers" in default_plan.path("plan.html").read_text()
    plan = pair.plan(snapshot, sends_invalid=True)
    assert "isbn" not in plan.facts.not_moved.by_field
    assert not [name for name in ("plan.html", ISSUES) if "--invalid-ident" in plan.path(name).read_text()]
    assert pair.apply(plan).complete
    assert pair.verify(plan).equal
    assert pair.plan(snapshot).facts.empty, "the next plan does as this one"


def test_records_without_an_id_are_counted_in_the_source(pair: LibraryPair) -> None:
    """They cannot be moved; that the snapshot has none of them would not be so."""
    data = open_data(load_settings(pair.config))
    copies = [{"id": number, "publication_id": 1, "barcode": number} for number in ("A\t1", "A\t2")]
    records = {"publications": [{"id": 1, "title": "Tides"}], "locations": [], "hard_copies": copies}
    snapshot = publish_records(
        data, {name: [json.dumps(record) for record in entries] for name, entries in records.items()}
    )
    plan = pair.plan(snapshot, resources=["hard_copies"])
    assert plan.facts.source.records["hard_copies"] == 2
    assert "2 records without an id cannot be sent." in headline(plan.facts, datetime.now(UTC))
    [loss] = losses_of(plan)
    assert (loss.count, loss.why) == (2, "2 without an id.")
    assert "issues.xlsx" not in loss.remedy
    assert "2 records\t\tid\t\tIt has no id, so" in plan.path(ISSUES).read_text("utf-8-sig")
