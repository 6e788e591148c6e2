"""Users, authorities, collections, hard copies and tasks move with a library; their references lead to the moved records."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigurationError
from pipelines.migration.apply.run import Selection
from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import Lacking
from pipelines.migration.model.plan import CONFLICTS, HTML, PEOPLE
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair, SomePublications
from tests.migration.other_resources.full_library import (
    ALL_RESOURCES,
    CONTRIBUTED,
    RECORDS,
    UNDELETED,
    back_up,
    contents_of,
    contributors,
    delete_user,
    plan_rows,
    record_named,
    records_of,
)

ORGANIZATION = Lacking(references=1)
"""What every plan of the whole library lacks: no program can list the organizations of the target."""

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)


@pytest.mark.long
def test_named_resources_move_with_their_references_in_the_planned_requests(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """They refer to the same books and persons as in the source, also where accounts are created (service.md#references).

    I8: the second run writes nothing, and undo leaves what was there.
    """
    delete_user(pair, "Yuki")
    before, source = contents_of(pair), contents_of(pair, "library")
    plan = pair.plan(snapshot, resources=ALL_RESOURCES)
    facts = plan.facts
    assert facts.resources == [
        "users",
        "publications",
        "authorities",
        "collections",
        "locations",
        "hard_copies",
        "tasks",
    ]
    assert facts.counts["users"] == {"unchanged": 7, "create": 1}
    assert facts.counts["locations"] == {"unchanged": 6}
    requests_before = pair.requests()
    result = pair.apply(plan)
    assert (result.failed, result.left, result.lacking) == (0, 0, ORGANIZATION)
    assert pair.requests() - requests_before == result.requests == facts.requests

    proof, status = pair.verify(plan), pair.status(plan)
    assert (proof.as_planned, proof.compared) == (True, sum(facts.source.records.values()))
    assert [(finding.field, finding.lacking) for finding in proof.findings] == [("organization", True)]
    assert (status.written, status.complete, status.lacking) == (True, False, ORGANIZATION)

    moved = contents_of(pair)
    assert [("('organization', {'id': 1" in record, count) for record, count in (source - moved).items()] == [(True, 1)]
    assert (moved - source - before).total() == 1, "the same publication"

    next_plan = pair.plan(snapshot, resources=ALL_RESOURCES)
    assert (next_plan.facts.empty, next_plan.facts.requests, next_plan.facts.count(Action.CONFLICT)) == (True, 0, 0)
    assert pair.apply(plan).requests == 0

    dry_run, undone = pair.undo(plan), pair.undo(plan, really=True)
    undeletable = sum(facts.counts[resource]["create"] for resource in UNDELETED)
    deleted = facts.count(Action.CREATE) - undeletable
    assert (dry_run.deleted, dry_run.left) == (undone.deleted, undone.left) == (deleted, undeletable)
    assert {left.resource for left in undone.findings} == {*UNDELETED}
    after = contents_of(pair)
    assert not before - after
    assert {record.split()[0] for record in after - before} <= {*UNDELETED}


def test_a_record_waits_for_those_outside_of_the_selection_to_which_it_refers(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """The accounts of contributors are not created yet: that is no failure, and the next apply writes the whole plan."""
    delete_user(pair, "Yuki")
    plan = pair.plan(snapshot, resources=["users"])
    publications = [row.source_id for row in plan_rows(plan, "publications", Action.CREATE) if row.references]
    first = pair.apply(plan, selection=SomePublications(ids=[*publications, RECORDS]))
    assert (first.failed, first.created, first.waiting, first.lacking.writes) == (0, 1, len(publications), 0)
    assert first.left > first.waiting > 0
    second = pair.apply(plan, selection=Selection(actions=["patch"]))
    assert (second.failed, second.waiting) == (0, 0)
    last = pair.apply(plan)
    assert (last.failed, last.left, last.waiting, last.lacking) == (0, 0, 0, ORGANIZATION)
    assert contributors(pair) == contributors(pair, "library")


@pytest.mark.long
def test_a_contributor_without_an_account_does_not_stop_the_publication(pair: LibraryPair, snapshot: Snapshot) -> None:
    """A 404 for an `id` that is not in the account (service.md#references). The plan lists it: nothing is left out silently (I6)."""
    plain = pair.plan(snapshot)
    unsent = {
        row.source_id: row.unsent for row in plain.rows(resources=["publications"]) if "contributor" in row.unsent
    }
    assert [*unsent] == [*CONTRIBUTED]
    assert not any("contributor" in {**row.payload, **row.expected} for row in plain.rows())
    delete_user(pair, "Yuki")
    plan = pair.plan(snapshot, resources=["users"])
    delete_user(pair, "Marta")
    pair.sandbox.fault("status", pair.target, path="/users$", method="POST", status=422)
    applied = pair.apply(plan)
    assert sorted(failure.source_id for failure in applied.failures if failure.resource == "publications") == [2, 3, 4]
    assert len(records_of(pair, "publications")) == RECORDS
    assert len(contributors(pair)) == 1
    second_apply = pair.apply(plan)
    assert (second_apply.failed, second_apply.lacking.writes, second_apply.complete) == (0, 3, False), (
        "no later run forgets them"
    )
    later = pair.plan(snapshot, resources=["users"])
    assert [row.source_id for row in later.rows("patch", resources=["publications"])] == [2, 3, 4]
    assert pair.apply(later).lacking == ORGANIZATION
    assert contributors(pair) == contributors(pair, "library")


def test_other_resources_are_moved_only_where_named(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Users are moved only where somebody asks for them (service.md#users); records to which others refer are only looked up."""
    assert pair.plan(snapshot).facts.resources == ["publications"]
    plan = pair.plan(snapshot, resources=["tasks"])
    assert plan.facts.resources == ["publications", "tasks"]
    assert plan.facts.mails == 0
    assert not plan.facts.notes
    assert "@library.example" not in plan.path("plan.parquet").read_bytes().decode("latin-1")
    with pytest.raises(ConfigurationError, match="shelves: not a resource"):
        pair.plan(snapshot, resources=["shelves"])


def test_a_plan_keeps_users_in_a_file_of_their_own_encrypted_with_the_key(
    pair: LibraryPair, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name and no address in any other file of a plan, nor in the journal; without the key the plan cannot be read or taken back."""
    monkeypatch.setenv("PEOPLES_KEY", base64.b64encode(bytes(range(32))).decode())
    pair.config.write_text(f'personal_key_env = "PEOPLES_KEY"\n{pair.config.read_text()}')
    users = records_of(pair, "users")
    marta = next(user for user in users.values() if user["name"].startswith("Marta"))
    pair.call("PATCH", f"users/{marta['id']}", {"name": "Martha Oldname"})
    delete_user(pair, "Yuki")
    conflict = pair.plan(snapshot, resources=["users"])
    plan = pair.plan(snapshot, resources=["users"], overwrite=True)
    pair.apply(plan)
    assert pair.verify(plan, evidence=pair.config.parent / "bag").as_planned
    personal = [*(user["email"] for user in users.values()), "Oldname"]
    for folder in (
        conflict.folder,
        plan.folder,
        pair.config.parent / "bag",
        pair.config.parent / "library-data" / "state.db",
    ):
        for path in [folder, *folder.rglob("*")]:
            if path.name == PEOPLE:
                with pytest.raises(OSError, match="encrypted"):
                    pq.read_table(path)
            elif path.is_file():
                text = (
                    str(pq.read_table(path).to_pylist())
                    if path.suffix == ".parquet"
                    else path.read_bytes().decode("latin-1")
                )
                assert not [value for value in personal if value in text], path
    assert (
        pair.undo(plan, really=True).left,
        record_named(records_of(pair, "users"), "Martha Oldname")["id"],
    ) == (
        0,
        marta["id"],
    )
    monkeypatch.delenv("PEOPLES_KEY")
    with pytest.raises(ConfigurationError, match="PEOPLES_KEY"):
        pair.apply(plan)


@pytest.mark.long
def test_users_are_matched_by_address_in_any_case_and_only_new_ones_get_a_mail(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """A new account may send its owner a mail (service.md#users). Roles are never added to an account that is there: a person is asked."""
    users = records_of(pair, "users")
    marta, tobias, yuki = (
        next(user for user in users.values() if user["name"].startswith(name)) for name in ("Marta", "Tobias", "Yuki")
    )
    pair.call("PATCH", f"users/{marta['id']}", {"email": marta["email"].upper()})
    pair.call("PATCH", f"users/{tobias['id']}", {"roles": []})
    pair.call("DELETE", f"users/{yuki['id']}")
    plan = pair.plan(snapshot, resources=["users"])
    assert plan.facts.counts["users"] == {"unchanged": 6, "conflict": 1, "create": 1}
    assert plan.facts.mails == 1
    assert any("personal data" in note for note in plan.facts.notes)
    [conflict] = plan_rows(plan, "users", Action.CONFLICT)
    assert (conflict.title, list(conflict.differing)) == (tobias["name"], ["roles"])
    page = plan.path(HTML).read_text("utf-8")
    assert "1 person" in page
    assert "@library.example" not in page
    assert tobias["name"] not in page
    pair.apply(plan)
    created = [request["path"] for request in pair.sandbox.requests(pair.target) if request["method"] == "POST"]
    assert created.count("/api/v3/users") == 1
    assert pair.plan(snapshot, resources=["users"]).facts.counts["users"] == {"unchanged": 7, "conflict": 1}


@pytest.mark.long
def test_a_missing_location_is_left_to_a_person_and_its_copies_wait(pair: LibraryPair, snapshot: Snapshot) -> None:
    """No program creates or deletes locations (service.md#other-resources)."""
    stacks = record_named(records_of(pair, "locations"), "Closed stacks")
    pair.call("PATCH", f"hard_copies/locations/{stacks['id']}", {"name": "Basement"})
    plan = pair.plan(snapshot, resources=["hard_copies"])
    [missing] = plan_rows(plan, "locations", Action.QUARANTINED)
    assert (missing.title, missing.reason) == ("Closed stacks", "location_missing")
    waiting = plan_rows(plan, "hard_copies", Action.QUARANTINED)
    assert waiting
    assert {row.reason for row in waiting} == {"at_missing_location"}
    assert any("1 location" in note for note in plan.facts.notes)
    assert "Closed stacks" in plan.path("issues.tsv").read_text("utf-8")
    result = pair.apply(plan)
    assert (result.quarantined, result.complete) == (1 + len(waiting), False)
    proof, status = pair.verify(plan), pair.status(plan)
    for lacking in (result.lacking, status.lacking, proof.lacking):
        assert lacking.records == 1 + len(waiting)
    assert (proof.equal, proof.as_planned, proof.missing) == (False, True, 1 + len(waiting))
    assert "Closed stacks" in {finding.title for finding in proof.findings if finding.code == "location_missing"}
    assert "Closed stacks" in {item.title for item in status.findings}
    assert "library" not in {copy["location_id"] for copy in records_of(pair, "hard_copies").values()}
    pair.call("PATCH", f"hard_copies/locations/{stacks['id']}", {"name": "closed  Stacks"})
    later = pair.plan(snapshot, resources=["hard_copies"])
    assert later.facts.counts["hard_copies"]["create"] == len(waiting)
    [renamed] = plan_rows(later, "locations", Action.CONFLICT)
    assert renamed.title == "Closed stacks", "a location may be changed, and differs"
    assert pair.apply(later).lacking.records == 0
    overwriting = pair.plan(snapshot, resources=["hard_copies"], overwrite=True)
    assert overwriting.facts.counts["locations"]["patch"] == 1
    assert pair.apply(overwriting).failed == 0
    assert record_named(records_of(pair, "locations"), "Closed stacks")["id"] == stacks["id"]


@pytest.mark.long
def test_two_records_that_became_one_are_named(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I8: the journal has both at one record of the target, whoever brought that about."""
    plan = pair.plan(snapshot, resources=["authorities"])
    pair.apply(plan)
    first, second = plan_rows(plan, "authorities", Action.CREATE)[:2]
    with closing(sqlite3.connect(pair.config.parent / "library-data" / "state.db")) as state, state:
        [(target_id,)] = state.execute(
            "SELECT target_id FROM migration_writes WHERE resource = 'authorities' AND source_id = ?",
            (first.source_id,),
        )
        state.execute(
            "UPDATE migration_writes SET target_id = ? WHERE resource = 'authorities' AND source_id = ?",
            (target_id, second.source_id),
        )
    findings = pair.verify(plan).findings
    problem = f"authority {first.source_id} of the source became the same record"
    assert (second.source_id, int(target_id), problem) in [
        (finding.source_id, finding.target_id, finding.problem) for finding in findings
    ]


def test_a_record_that_was_found_is_the_same_under_another_name(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Also once it is gone; whether or not the plan that found it was applied."""
    row, *_others = plan_rows(pair.plan(snapshot, resources=["authorities"]), "authorities", Action.CREATE)
    authority, other_authority = (
        pair.call("POST", "authorities", row.payload | {"name": name})["id"] for name in (row.payload["name"], "Other")
    )
    for path, change, reason in (
        ("", {}, None),
        ("", {"name": "Another, Name, 1950-"}, "fields_differ"),
        ("", {"name": "A third name"}, "fields_differ"),
        ("/merge", {"into_id": other_authority}, "deleted_in_target"),
        ("", None, "deleted_in_target"),
    ):
        if change is not None:
            pair.call("PATCH", f"authorities/{authority}{path}", change)
        rows = pair.plan(snapshot, resources=["authorities"]).rows(resources=["authorities"])
        [planned] = [planned for planned in rows if planned.source_id == row.source_id]
        assert (planned.action, planned.reason) == (Action.CONFLICT if reason else Action.UNCHANGED, reason)
        assert authority in (planned.target_id, *planned.candidates)


def test_a_restore_remembers_nothing(pair: LibraryPair) -> None:
    """What was deleted since the last one is put back."""
    publication = pair.call("POST", "publications", {"title": "To be deleted", "publishable_type": "Book"})["id"]
    snapshot = back_up(pair, "restored", tenant="new")
    for action in (Action.UNCHANGED, Action.CREATE, Action.CREATE):
        [row] = [row for row in pair.plan(snapshot, restores=True).rows() if row.source_id == publication]
        assert row.action == action
        if action == Action.UNCHANGED:
            pair.call("DELETE", f"publications/{publication}")


@pytest.mark.long
def test_decisions_count_for_records_that_are_only_referred_to(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The tasks are given to the user whom a person named, in a plan that does not write users, too."""
    tasks = records_of(pair, "tasks", "library").values()
    number = next(task["assignee_id"] for task in tasks if task["assignee_id"])
    [*_others, other_user] = records_of(pair, "users")
    table = pair.plan(snapshot, resources=["tasks"]).path(CONFLICTS)
    table.write_text(f"{table.read_text()}users\t{number}\t\t\t\t\tmatch {other_user}\n")
    plan = pair.plan(snapshot, resources=["tasks"])
    given_to = {task["id"]: task["assignee_id"] for task in tasks}
    rows = [row for row in plan_rows(plan, "tasks", Action.CREATE) if given_to[row.source_id] == number]
    assert {row.payload["assignee_id"] for row in rows} == {other_user}
