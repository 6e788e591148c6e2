"""Users, authorities, collections, hard copies and tasks moved with a library, each referring to what its records became there."""

from __future__ import annotations

import base64
import stat
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.drill import drill
from pipelines.errors import ConfigurationError, StopError
from pipelines.migration.model.plan import CONFLICT, CREATE, HTML, PEOPLE, QUARANTINED
from pipelines.settings.loading import load_settings
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data
from tests.migration.moving import Desk
from tests.migration.other_resources.whole import (
    CONTRIBUTED,
    EVERYTHING,
    RECORDS,
    contributors,
    listed,
    named,
    rows,
    titles,
    without,
)

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)


def test_what_is_named_moves_with_its_references_and_exactly_the_requests_that_the_plan_says(
    desk: Desk, snapshot: Snapshot
) -> None:
    """Copies, collections and tasks refer to the same books and persons as in the source (service.md#references).

    I8: the second run writes nothing.
    """
    plan = desk.plan(snapshot, resources=EVERYTHING)
    facts = plan.facts
    assert facts.resources == [
        "authorities",
        "users",
        "publications",
        "collections",
        "locations",
        "hard_copies",
        "tasks",
    ]
    assert facts.counts["users"] == {"unchanged": 8}
    assert facts.counts["locations"] == {"unchanged": 6}
    was = {one: listed(desk, one) for one in ("users", "collections", "hard_copies", "publications")}
    before = desk.requests()
    result = desk.apply(plan)
    assert (result.applied.failed, result.applied.complete) == (0, True)
    assert desk.requests() - before == result.requests == facts.requests

    with desk.migration() as migration:
        proof = migration.verify(plan)
    assert (proof.equal, proof.compared, proof.findings) == (True, sum(facts.source.records.values()), [])

    ours, theirs = titles(desk, "library"), titles(desk)
    assert sorted(ours.values()) == sorted(theirs.values())
    people, persons = listed(desk, "users", "library"), listed(desk, "users")
    copies = {one["barcode"]: one for one in listed(desk, "hard_copies").values()}
    for copy in listed(desk, "hard_copies", "library").values():
        there = copies.pop(copy["barcode"])
        assert theirs[there["publication_id"]] == ours[copy["publication_id"]]
        assert {**there, "id": 0, "publication_id": 0} == {**copy, "id": 0, "publication_id": 0}
    assert not copies
    for collection in listed(desk, "collections", "library").values():
        there = named(listed(desk, "collections"), collection["name"])
        assert sorted(theirs[one] for one in there["publication_ids"]) == sorted(
            ours[one] for one in collection["publication_ids"]
        )
    for task in listed(desk, "tasks", "library").values():
        there = named(listed(desk, "tasks"), task["title"], "title")
        assert theirs.get(there["publication_id"]) == ours.get(task["publication_id"])
        if task["assignee_id"]:
            assert persons[there["assignee_id"]]["email"] == people[task["assignee_id"]]["email"]

    again = desk.plan(snapshot, resources=EVERYTHING)
    assert (again.facts.empty, again.facts.requests, again.facts.count(CONFLICT)) == (True, 0, 0)
    assert desk.apply(plan).requests == 0

    with desk.migration() as migration:
        rehearsed, undone = migration.undo(plan), migration.undo(plan, really=True)
    kept = facts.counts["authorities"]["create"] + facts.counts["tasks"]["create"]
    assert (rehearsed.deleted, rehearsed.left) == (undone.deleted, undone.left) == (facts.count(CREATE) - kept, kept)
    assert {one.resource for one in undone.examples} == {"authorities", "tasks"}, "of which the service deletes none"
    assert {one: listed(desk, one) for one in was} == was


def test_contributors_stay_who_they_are_also_those_whose_accounts_are_still_to_be_made(
    desk: Desk, snapshot: Snapshot
) -> None:
    """An id counts in its own library (service.md#references); I8: the second plan is empty, and undo leaves what was there."""
    without(desk, "Yuki")
    was = listed(desk, "publications")
    plan = desk.plan(snapshot, resources=["users"])
    patched, second, third, _fourth = rows(plan, "publications")[:4]
    assert (patched.action, [*patched.payload], second.unsent["organization"]) == ("patch", ["contributor"], {"id": 1})
    assert ("contributor" in third.payload, third.references["contributor"].target_ids) == (False, [None])
    assert desk.apply(plan).applied.complete
    assert contributors(desk) == contributors(desk, "library")
    with desk.migration() as migration:
        proof = migration.verify(plan)
        assert (proof.equal, proof.findings) == (True, [])
        assert migration.status(plan).complete
    assert desk.plan(snapshot, resources=["users"]).facts.empty
    assert desk.plan(snapshot).facts.empty

    made = {one["title"]: one["id"] for one in listed(desk, "publications").values()}
    desk.call("PATCH", f"publications/{made[third.title]}", {"contributor": None})
    with desk.migration() as migration:
        [finding] = migration.verify(plan).findings
    assert (finding.problem, finding.source_id, finding.field) == ("differing", third.source_id, "contributor")
    [conflict] = rows(desk.plan(snapshot, resources=["users"]), "publications", CONFLICT)
    assert (conflict.reason, [*conflict.differing]) == ("edited_in_target", ["contributor"])
    desk.call("PATCH", f"publications/{made[third.title]}", {"contributor": {"id": max(listed(desk, "users"))}})
    with desk.migration() as migration:
        assert migration.undo(plan, really=True).left == 0
    assert listed(desk, "publications") == was


def test_a_contributor_who_cannot_be_led_over_costs_no_publication(desk: Desk, snapshot: Snapshot) -> None:
    """A 404 for an `id` that is not in the account (service.md#references). Told, never silently left out (I6)."""
    plain = desk.plan(snapshot)
    told = {row.source_id: row.unsent for row in plain.rows(resources=["publications"]) if "contributor" in row.unsent}
    assert [*told] == [*CONTRIBUTED]
    assert not any("contributor" in {**row.payload, **row.expected} for row in plain.rows())
    without(desk, "Yuki")
    plan = desk.plan(snapshot, resources=["users"])
    without(desk, "Marta")
    desk.sandbox.fault("status", desk.target, path="/users$", method="POST", status=422)
    applied = desk.apply(plan).applied
    assert sorted(one.source_id for one in applied.failures if one.resource == "publications") == [2, 3, 4]
    assert len(listed(desk, "publications")) == RECORDS
    assert len(contributors(desk)) == 1
    desk.apply(plan)
    later = desk.plan(snapshot, resources=["users"])
    assert [row.source_id for row in later.rows("patch", resources=["publications"])] == [2, 3, 4]
    assert desk.apply(later).applied.complete
    assert contributors(desk) == contributors(desk, "library")


def test_a_drill_puts_back_every_resource_and_fails_when_one_field_was_altered(desk: Desk, snapshot: Snapshot) -> None:
    """I6: users, places, copies, collections, authorities and tasks, too; what only a person can do is told."""
    settings = load_settings(desk.config)
    found = drill(settings, open_data(settings), snapshot, now=NOW)
    assert (found.ok, found.problems) == (True, [])
    held = {name: facts.rows for name, facts in snapshot.manifest.tables.items() if name in EVERYTHING}
    done = [one for one in listed(desk, "tasks", "library").values() if one["completed_at"]]
    assert found.resources == {**held, "tasks": held["tasks"] - len(done)}
    assert found.records == sum(found.resources.values())
    told = " ".join(found.left)
    assert f"{held['locations']} locations" in told
    assert bool(done) == ("task" in told)

    raw = snapshot.path / "raw" / "hard_copies.parquet"
    table = pq.read_table(raw)
    texts = table.column("payload").to_pylist()
    texts[0] = texts[0].replace('"barcode":"', '"barcode":"X', 1)
    place = table.schema.get_field_index("payload")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(texts)), raw)
    altered = drill(settings, open_data(settings), snapshot, now=NOW)
    assert not altered.ok
    assert "raw/hard_copies.parquet" in altered.problems[0]


def test_without_a_journal_what_names_a_record_finds_it_again(desk: Desk, snapshot: Snapshot) -> None:
    desk.apply(desk.plan(snapshot, resources=EVERYTHING))
    for path in (desk.config.parent / "library-data").glob("state.db*"):
        path.unlink()
    plan = desk.plan(snapshot, resources=EVERYTHING)
    assert [(row.resource, row.title, row.reason, row.differing) for row in plan.rows(CREATE, CONFLICT)] == []
    assert plan.facts.empty


def test_nobody_is_asked_to_be_moved_but_by_name(desk: Desk, snapshot: Snapshot) -> None:
    """Users are moved only where somebody asks for them (service.md#users); what others refer to is only looked up."""
    assert desk.plan(snapshot).facts.resources == ["publications"]
    plan = desk.plan(snapshot, resources=["tasks"])
    assert plan.facts.resources == ["publications", "tasks"]
    assert plan.facts.mails == 0
    assert not plan.facts.notes
    assert "@library.example" not in plan.path("plan.parquet").read_bytes().decode("latin-1")
    with pytest.raises(ConfigurationError, match="shelves: not a resource"):
        desk.plan(snapshot, resources=["shelves"])


def test_a_plan_keeps_people_apart_encrypted_where_there_is_a_key(
    desk: Desk, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name and no address in any other file of a plan, nor in the journal; nothing is read, nor taken back, without the key."""
    monkeypatch.setenv("PEOPLES_KEY", base64.b64encode(bytes(range(32))).decode())
    desk.config.write_text(f'personal_key_env = "PEOPLES_KEY"\n{desk.config.read_text()}')
    there = listed(desk, "users")
    marta = next(one for one in there.values() if one["name"].startswith("Marta"))
    desk.call("PATCH", f"users/{marta['id']}", {"name": "Martha Oldname"})
    without(desk, "Yuki")
    conflict = desk.plan(snapshot, resources=["users"])
    plan = desk.plan(snapshot, resources=["users"], overwrite=True)
    desk.apply(plan)
    with desk.migration() as migration:
        assert migration.verify(plan, evidence=desk.config.parent / "bag").equal
        personal = [*(one["email"] for one in there.values()), "Oldname"]
        for folder in (
            conflict.folder,
            plan.folder,
            desk.config.parent / "bag",
            desk.config.parent / "library-data" / "state.db",
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
                    assert not [one for one in personal if one in text], path
        assert stat.S_IMODE(plan.folder.stat().st_mode) == 0o700
        assert (migration.undo(plan, really=True).left, named(listed(desk, "users"), "Martha Oldname")["id"]) == (
            0,
            marta["id"],
        )
    monkeypatch.delenv("PEOPLES_KEY")
    with pytest.raises(ConfigurationError, match="PEOPLES_KEY"):
        desk.apply(plan)


def test_a_person_is_known_by_the_address_whatever_its_case_and_only_new_ones_get_a_mail(
    desk: Desk, snapshot: Snapshot
) -> None:
    """A new account may send its owner a mail (service.md#users). Roles are never added to an account that is there: a person is asked."""
    there = listed(desk, "users")
    marta, tobias, yuki = (
        next(one for one in there.values() if one["name"].startswith(name)) for name in ("Marta", "Tobias", "Yuki")
    )
    desk.call("PATCH", f"users/{marta['id']}", {"email": marta["email"].upper()})
    desk.call("PATCH", f"users/{tobias['id']}", {"roles": []})
    desk.call("DELETE", f"users/{yuki['id']}")
    plan = desk.plan(snapshot, resources=["users"])
    assert plan.facts.counts["users"] == {"unchanged": 6, "conflict": 1, "create": 1}
    assert plan.facts.mails == 1
    assert any("personal data" in note for note in plan.facts.notes)
    [conflict] = rows(plan, "users", CONFLICT)
    assert (conflict.title, list(conflict.differing)) == (tobias["name"], ["roles"])
    page = plan.path(HTML).read_text("utf-8")
    assert "1 person" in page
    assert "@library.example" not in page
    assert tobias["name"] not in page
    desk.apply(plan)
    mails = desk.sandbox.control_get(f"mails?tenant={desk.target}")
    assert [one["to"] if "to" in one else one["address"] for one in mails] == [yuki["email"]]
    assert desk.plan(snapshot, resources=["users"]).facts.counts["users"] == {"unchanged": 7, "conflict": 1}


def test_a_proof_finds_what_is_missing_differs_or_is_there_twice(desk: Desk, snapshot: Snapshot) -> None:
    plan = desk.plan(snapshot, resources=["collections", "authorities"])
    desk.apply(plan)
    made = rows(plan, "authorities", CREATE)[:2]
    there = listed(desk, "authorities")
    desk.call("PATCH", f"authorities/{named(there, made[0].title)['id']}", {"variants": ["Somebody Else"]})
    desk.call("POST", "authorities", {"name": made[1].title, "kind": made[1].payload["kind"]})
    [collection] = [row for row in rows(plan, "collections") if row.title == "Reading list"]
    desk.call("DELETE", f"collections/{collection.target_id}")
    with desk.migration() as migration:
        proof = migration.verify(plan)
    assert (proof.equal, proof.missing, proof.differing, proof.duplicated) == (False, 1, 1, 1)
    found = {(one.problem, one.resource, one.source_id, one.field) for one in proof.findings}
    assert found == {
        ("differing", "authorities", made[0].source_id, "variants"),
        ("duplicated", "authorities", made[1].source_id, ""),
        ("missing", "collections", collection.source_id, ""),
    }


def test_a_location_that_is_missing_is_work_for_a_person_and_its_copies_wait(desk: Desk, snapshot: Snapshot) -> None:
    """No program creates or deletes locations (service.md#other-resources)."""
    stacks = named(listed(desk, "locations"), "Closed stacks")
    desk.call("PATCH", f"hard_copies/locations/{stacks['id']}", {"name": "Basement"})
    plan = desk.plan(snapshot, resources=["hard_copies"])
    [missing] = rows(plan, "locations", QUARANTINED)
    assert (missing.title, missing.reason) == ("Closed stacks", "location_missing")
    waiting = rows(plan, "hard_copies", QUARANTINED)
    assert waiting
    assert {row.reason for row in waiting} == {"at_missing_location"}
    assert any("1 location" in note for note in plan.facts.notes)
    assert "Closed stacks" in plan.path("issues.tsv").read_text("utf-8")
    result = desk.apply(plan)
    assert (result.applied.quarantined, result.applied.complete) == (1 + len(waiting), False)
    assert "library" not in {one["location_id"] for one in listed(desk, "hard_copies").values()}
    desk.call("PATCH", f"hard_copies/locations/{stacks['id']}", {"name": "closed  Stacks"})
    later = desk.plan(snapshot, resources=["hard_copies"])
    assert later.facts.counts["hard_copies"]["create"] == len(waiting)
    assert desk.apply(later).applied.complete


def test_several_that_fit_are_a_conflict_and_never_an_insert(desk: Desk, snapshot: Snapshot) -> None:
    """I8."""
    there = {one["name"] for one in listed(desk, "authorities").values()}
    first = next(one for one in listed(desk, "authorities", "library").values() if one["name"] not in there)
    for _ in range(2):
        desk.call("POST", "authorities", {"name": first["name"].upper(), "kind": first["kind"]})
    plan = desk.plan(snapshot, resources=["authorities"])
    [row] = rows(plan, "authorities", CONFLICT)
    assert (row.source_id, row.reason) == (first["id"], "several_targets")
    assert len(row.candidates) == 2


def test_what_came_there_after_the_plan_makes_it_stale(desk: Desk, snapshot: Snapshot) -> None:
    """I8."""
    plan = desk.plan(snapshot, resources=["authorities", "collections"])
    row = rows(plan, "authorities", CREATE)[-1]
    desk.call("POST", "authorities", {"name": row.payload["name"], "kind": row.payload["kind"]})
    changes = len(desk.writes())
    with pytest.raises(StopError, match=rf"stale.*authorities {row.source_id} was to be created"):
        desk.apply(plan)
    assert len(desk.writes()) == changes


def test_lost_answers_make_nothing_twice_and_what_refers_to_a_refused_record_fails_alone(
    desk: Desk, snapshot: Snapshot
) -> None:
    """I8: an unclear create is looked up at the ends of its list; one record refused does not stop the others."""
    plan = desk.plan(snapshot, resources=EVERYTHING)
    for resource in ("authorities", "hard_copies", "tasks"):
        desk.sandbox.fault(
            "status", desk.target, path=f"/{resource}$", method="POST", status=500, when="after", times=2
        )
    desk.sandbox.fault("status", desk.target, path="/publications$", method="POST", status=422)
    result = desk.apply(plan)
    [refused, *others] = result.applied.failures
    assert refused.resource == "publications"
    assert {one.resource for one in others} <= {"collections", "hard_copies", "tasks"}
    assert all(
        f"publications {refused.source_id}, to which it refers, was not created" in one.problem for one in others
    )
    assert desk.apply(plan).applied.failed == 0
    for resource in ("authorities", "hard_copies", "tasks"):
        assert len(listed(desk, resource)) == len(listed(desk, resource, "library")), "none twice, none lost"
    assert desk.plan(snapshot, resources=EVERYTHING).facts.empty
