"""Users, authorities, collections, hard copies and tasks are moved with a library, and refer to the right records there."""

from __future__ import annotations

import base64
import stat
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.drill import drill
from pipelines.errors import ConfigurationError, StopError
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import HTML, PEOPLE
from pipelines.settings.loading import load_settings
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import (
    ALL_RESOURCES,
    CONTRIBUTED,
    RECORDS,
    contributors,
    listed,
    named,
    rows,
    titles,
    without,
)

NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)


def test_named_resources_move_with_their_references_and_exactly_the_planned_requests(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """References lead to the same publications and users (service.md#references); a second apply writes nothing (I8)."""
    plan = pair.plan(snapshot, resources=ALL_RESOURCES)
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
    was = {one: listed(pair, one) for one in ("users", "collections", "hard_copies", "publications")}
    before = pair.requests()
    result = pair.apply(plan)
    assert (result.applied.failed, result.applied.complete) == (0, True)
    assert pair.requests() - before == result.requests == facts.requests

    with pair.migration() as migration:
        proof = migration.verify(plan)
    assert (proof.equal, proof.compared, proof.findings) == (True, sum(facts.source.records.values()), [])

    ours, theirs = titles(pair, "library"), titles(pair)
    assert sorted(ours.values()) == sorted(theirs.values())
    people, persons = listed(pair, "users", "library"), listed(pair, "users")
    copies = {one["barcode"]: one for one in listed(pair, "hard_copies").values()}
    for copy in listed(pair, "hard_copies", "library").values():
        there = copies.pop(copy["barcode"])
        assert theirs[there["publication_id"]] == ours[copy["publication_id"]]
        assert {**there, "id": 0, "publication_id": 0} == {**copy, "id": 0, "publication_id": 0}
    assert not copies
    for collection in listed(pair, "collections", "library").values():
        there = named(listed(pair, "collections"), collection["name"])
        assert sorted(theirs[one] for one in there["publication_ids"]) == sorted(
            ours[one] for one in collection["publication_ids"]
        )
    for task in listed(pair, "tasks", "library").values():
        there = named(listed(pair, "tasks"), task["title"], "title")
        assert theirs.get(there["publication_id"]) == ours.get(task["publication_id"])
        if task["assignee_id"]:
            assert persons[there["assignee_id"]]["email"] == people[task["assignee_id"]]["email"]

    again = pair.plan(snapshot, resources=ALL_RESOURCES)
    assert (again.facts.empty, again.facts.requests, again.facts.count(Action.CONFLICT)) == (True, 0, 0)
    assert pair.apply(plan).requests == 0

    with pair.migration() as migration:
        rehearsed, undone = migration.undo(plan), migration.undo(plan, really=True)
    kept = facts.counts["authorities"]["create"] + facts.counts["tasks"]["create"]
    assert (
        (rehearsed.deleted, rehearsed.left)
        == (undone.deleted, undone.left)
        == (facts.count(Action.CREATE) - kept, kept)
    )
    assert {one.resource for one in undone.examples} == {"authorities", "tasks"}, "of which the service deletes none"
    assert {one: listed(pair, one) for one in was} == was


def test_contributors_are_the_same_users_also_where_their_accounts_are_still_to_be_created(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """Ids are valid in their own library (service.md#references); a second plan is empty, and an undo restores the target (I8)."""
    without(pair, "Yuki")
    was = listed(pair, "publications")
    plan = pair.plan(snapshot, resources=["users"])
    patched, second, third, _fourth = rows(plan, "publications")[:4]
    assert (patched.action, [*patched.payload], second.unsent["organization"]) == ("patch", ["contributor"], {"id": 1})
    assert ("contributor" in third.payload, third.references["contributor"].target_ids) == (False, [None])
    assert pair.apply(plan).applied.complete
    assert contributors(pair) == contributors(pair, "library")
    with pair.migration() as migration:
        proof = migration.verify(plan)
        assert (proof.equal, proof.findings) == (True, [])
        assert migration.status(plan).complete
    assert pair.plan(snapshot, resources=["users"]).facts.empty
    assert pair.plan(snapshot).facts.empty

    made = {one["title"]: one["id"] for one in listed(pair, "publications").values()}
    pair.call("PATCH", f"publications/{made[third.title]}", {"contributor": None})
    with pair.migration() as migration:
        [finding] = migration.verify(plan).findings
    assert (finding.problem, finding.source_id, finding.field) == ("differing", third.source_id, "contributor")
    [conflict] = rows(pair.plan(snapshot, resources=["users"]), "publications", Action.CONFLICT)
    assert (conflict.reason, [*conflict.differing]) == ("edited_in_target", ["contributor"])
    pair.call("PATCH", f"publications/{made[third.title]}", {"contributor": {"id": max(listed(pair, "users"))}})
    with pair.migration() as migration:
        assert migration.undo(plan, really=True).left == 0
    assert listed(pair, "publications") == was


def test_a_publication_moves_without_a_contributor_who_cannot_be_mapped(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The service answers 404 to an unknown id (service.md#references). The reference is listed as unsent, and the record is moved (I6)."""
    plain = pair.plan(snapshot)
    unsent = {
        row.source_id: row.unsent for row in plain.rows(resources=["publications"]) if "contributor" in row.unsent
    }
    assert [*unsent] == [*CONTRIBUTED]
    assert not any("contributor" in {**row.payload, **row.expected} for row in plain.rows())
    without(pair, "Yuki")
    plan = pair.plan(snapshot, resources=["users"])
    without(pair, "Marta")
    pair.sandbox.fault("status", pair.target, path="/users$", method="POST", status=422)
    applied = pair.apply(plan).applied
    assert sorted(one.source_id for one in applied.failures if one.resource == "publications") == [2, 3, 4]
    assert len(listed(pair, "publications")) == RECORDS
    assert len(contributors(pair)) == 1
    pair.apply(plan)
    later = pair.plan(snapshot, resources=["users"])
    assert [row.source_id for row in later.rows(Action.PATCH, resources=["publications"])] == [2, 3, 4]
    assert pair.apply(later).applied.complete
    assert contributors(pair) == contributors(pair, "library")


def test_a_drill_puts_back_every_resource_and_fails_when_one_field_was_altered(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """It lists the work that only a person can do."""
    settings = load_settings(pair.config)
    found = drill(settings, open_data(settings), snapshot, now=NOW)
    assert (found.ok, found.problems) == (True, [])
    held = {name: facts.rows for name, facts in snapshot.manifest.tables.items() if name in ALL_RESOURCES}
    done = [one for one in listed(pair, "tasks", "library").values() if one["completed_at"]]
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


def test_without_a_journal_records_are_matched_by_their_keys(pair: LibraryPair, snapshot: Snapshot) -> None:
    pair.apply(pair.plan(snapshot, resources=ALL_RESOURCES))
    for path in (pair.config.parent / "library-data").glob("state.db*"):
        path.unlink()
    plan = pair.plan(snapshot, resources=ALL_RESOURCES)
    assert [
        (row.resource, row.title, row.reason, row.differing) for row in plan.rows(Action.CREATE, Action.CONFLICT)
    ] == []
    assert plan.facts.empty


def test_other_resources_move_only_where_a_person_names_them(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Users are moved only where a person names them (service.md#users); referenced records are only matched."""
    assert pair.plan(snapshot).facts.resources == ["publications"]
    plan = pair.plan(snapshot, resources=["tasks"])
    assert plan.facts.resources == ["publications", "tasks"]
    assert plan.facts.mails == 0
    assert not plan.facts.notes
    assert "@library.example" not in plan.path("plan.parquet").read_bytes().decode("latin-1")
    with pytest.raises(ConfigurationError, match="shelves: not a resource"):
        pair.plan(snapshot, resources=["shelves"])


def test_a_plan_has_users_in_a_file_of_their_own_encrypted_where_there_is_a_key(
    pair: LibraryPair, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other file of the plan and no journal has a name or an address; without the key nothing can be read or undone."""
    monkeypatch.setenv("PEOPLES_KEY", base64.b64encode(bytes(range(32))).decode())
    pair.config.write_text(f'personal_key_env = "PEOPLES_KEY"\n{pair.config.read_text()}')
    there = listed(pair, "users")
    marta = next(one for one in there.values() if one["name"].startswith("Marta"))
    pair.call("PATCH", f"users/{marta['id']}", {"name": "Martha Oldname"})
    without(pair, "Yuki")
    conflict = pair.plan(snapshot, resources=["users"])
    plan = pair.plan(snapshot, resources=["users"], overwrite=True)
    pair.apply(plan)
    with pair.migration() as migration:
        assert migration.verify(plan, evidence=pair.config.parent / "bag").equal
        personal = [*(one["email"] for one in there.values()), "Oldname"]
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
                    assert not [one for one in personal if one in text], path
        assert stat.S_IMODE(plan.folder.stat().st_mode) == 0o700
        assert (migration.undo(plan, really=True).left, named(listed(pair, "users"), "Martha Oldname")["id"]) == (
            0,
            marta["id"],
        )
    monkeypatch.delenv("PEOPLES_KEY")
    with pytest.raises(ConfigurationError, match="PEOPLES_KEY"):
        pair.apply(plan)


def test_users_are_matched_by_their_address_in_any_case_and_only_new_ones_get_a_mail(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """service.md#users. Roles are never added to an account that exists: a person is asked."""
    there = listed(pair, "users")
    marta, tobias, yuki = (
        next(one for one in there.values() if one["name"].startswith(name)) for name in ("Marta", "Tobias", "Yuki")
    )
    pair.call("PATCH", f"users/{marta['id']}", {"email": marta["email"].upper()})
    pair.call("PATCH", f"users/{tobias['id']}", {"roles": []})
    pair.call("DELETE", f"users/{yuki['id']}")
    plan = pair.plan(snapshot, resources=["users"])
    assert plan.facts.counts["users"] == {"unchanged": 6, "conflict": 1, "create": 1}
    assert plan.facts.mails == 1
    assert any("personal data" in note for note in plan.facts.notes)
    [conflict] = rows(plan, "users", Action.CONFLICT)
    assert (conflict.title, list(conflict.differing)) == (tobias["name"], ["roles"])
    page = plan.path(HTML).read_text("utf-8")
    assert "1 person" in page
    assert "@library.example" not in page
    assert tobias["name"] not in page
    pair.apply(plan)
    mails = pair.sandbox.control_get(f"mails?tenant={pair.target}")
    assert [one["to"] if "to" in one else one["address"] for one in mails] == [yuki["email"]]
    assert pair.plan(snapshot, resources=["users"]).facts.counts["users"] == {"unchanged": 7, "conflict": 1}


def test_a_verification_finds_missing_differing_and_duplicated_records(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = pair.plan(snapshot, resources=["collections", "authorities"])
    pair.apply(plan)
    made = rows(plan, "authorities", Action.CREATE)[:2]
    there = listed(pair, "authorities")
    pair.call("PATCH", f"authorities/{named(there, made[0].title)['id']}", {"variants": ["Somebody Else"]})
    pair.call("POST", "authorities", {"name": made[1].title, "kind": made[1].payload["kind"]})
    [collection] = [row for row in rows(plan, "collections") if row.title == "Reading list"]
    pair.call("DELETE", f"collections/{collection.target_id}")
    with pair.migration() as migration:
        proof = migration.verify(plan)
    assert (proof.equal, proof.missing, proof.differing, proof.duplicated) == (False, 1, 1, 1)
    found = {(one.problem, one.resource, one.source_id, one.field) for one in proof.findings}
    assert found == {
        ("differing", "authorities", made[0].source_id, "variants"),
        ("duplicated", "authorities", made[1].source_id, ""),
        ("missing", "collections", collection.source_id, ""),
    }


def test_a_missing_location_is_quarantined_and_its_copies_wait(pair: LibraryPair, snapshot: Snapshot) -> None:
    """The service neither creates nor deletes locations (service.md#other-resources)."""
    stacks = named(listed(pair, "locations"), "Closed stacks")
    pair.call("PATCH", f"hard_copies/locations/{stacks['id']}", {"name": "Basement"})
    plan = pair.plan(snapshot, resources=["hard_copies"])
    [missing] = rows(plan, "locations", Action.QUARANTINED)
    assert (missing.title, missing.reason) == ("Closed stacks", "location_missing")
    waiting = rows(plan, "hard_copies", Action.QUARANTINED)
    assert waiting
    assert {row.reason for row in waiting} == {"at_missing_location"}
    assert any("1 location" in note for note in plan.facts.notes)
    assert "Closed stacks" in plan.path("issues.tsv").read_text("utf-8")
    result = pair.apply(plan)
    assert (result.applied.quarantined, result.applied.complete) == (1 + len(waiting), False)
    assert "library" not in {one["location_id"] for one in listed(pair, "hard_copies").values()}
    pair.call("PATCH", f"hard_copies/locations/{stacks['id']}", {"name": "closed  Stacks"})
    later = pair.plan(snapshot, resources=["hard_copies"])
    assert later.facts.counts["hard_copies"]["create"] == len(waiting)
    assert pair.apply(later).applied.complete


def test_an_ambiguous_match_is_a_conflict_and_never_a_create(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I8."""
    there = {one["name"] for one in listed(pair, "authorities").values()}
    first = next(one for one in listed(pair, "authorities", "library").values() if one["name"] not in there)
    for _ in range(2):
        pair.call("POST", "authorities", {"name": first["name"].upper(), "kind": first["kind"]})
    plan = pair.plan(snapshot, resources=["authorities"])
    [row] = rows(plan, "authorities", Action.CONFLICT)
    assert (row.source_id, row.reason) == (first["id"], "several_targets")
    assert len(row.candidates) == 2


def test_a_record_that_was_created_after_the_plan_makes_it_stale(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I8."""
    plan = pair.plan(snapshot, resources=["authorities", "collections"])
    row = rows(plan, "authorities", Action.CREATE)[-1]
    pair.call("POST", "authorities", {"name": row.payload["name"], "kind": row.payload["kind"]})
    changes = len(pair.writes())
    with pytest.raises(StopError, match=rf"stale.*authorities {row.source_id} was to be created"):
        pair.apply(plan)
    assert len(pair.writes()) == changes


def test_lost_responses_create_nothing_twice_and_only_references_to_a_refused_record_fail(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """I8: a create with a lost response is looked up at the ends of its list. I7: one refused record does not stop the others."""
    plan = pair.plan(snapshot, resources=ALL_RESOURCES)
    for resource in ("authorities", "hard_copies", "tasks"):
        pair.sandbox.fault(
            "status", pair.target, path=f"/{resource}$", method="POST", status=500, when="after", times=2
        )
    pair.sandbox.fault("status", pair.target, path="/publications$", method="POST", status=422)
    result = pair.apply(plan)
    [refused, *others] = result.applied.failures
    assert refused.resource == "publications"
    assert {one.resource for one in others} <= {"collections", "hard_copies", "tasks"}
    assert all(
        f"publications {refused.source_id}, to which it refers, was not created" in one.problem for one in others
    )
    assert pair.apply(plan).applied.failed == 0
    for resource in ("authorities", "hard_copies", "tasks"):
        assert len(listed(pair, resource)) == len(listed(pair, resource, "library")), "none twice, none lost"
    assert pair.plan(snapshot, resources=ALL_RESOURCES).facts.empty
