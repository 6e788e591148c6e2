"""Every resource of version 3 through the same listing, into a snapshot with a proof of each (I4, I6)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pipelines.errors import AccessDeniedError, RefusedError, TemporaryError
from pipelines.inventory import RESOURCES
from pipelines.records.tables.registry import STAGED
from pipelines.store.catalogue import open_catalogue
from pipelines.store.snapshots.snapshots import Snapshot
from tests.backup.other_resources.conftest import RECORDS, Desk, rows
from tests.sandbox.process import SandboxProcess


@pytest.fixture
def snapshot(desk: Desk) -> Snapshot:
    """One backup of everything."""
    return desk.back_up()


class TestWholeLibrary:
    """A tenant of version 3 is backed up whole."""

    def test_every_resource_is_proved(self, snapshot: Snapshot, sandbox: SandboxProcess) -> None:
        """I4: of each resource as many distinct ids as its `X-Total` says, and `/publications/all` where there is one."""
        manifest = snapshot.manifest
        assert manifest.complete
        assert manifest.problems == manifest.notes == []
        assert list(manifest.resources) == list(RESOURCES)
        for facts in manifest.resources.values():
            assert facts.records == facts.distinct_ids == facts.x_total > 0
        assert manifest.resources["publications"].endpoint == "publications/all"
        assert manifest.resources["locations"].endpoint == "hard_copies/locations"
        assert manifest.requests == sandbox.counts()["requests"]

    def test_every_table_is_there(self, snapshot: Snapshot) -> None:
        """Raw table and staged tables of each resource; a row for each record."""
        expected = {f"raw_{resource}" for resource in RESOURCES}
        expected |= {table.name for tables in STAGED.values() for table in tables}
        tables = snapshot.manifest.tables
        assert set(tables) == expected
        for resource, (first, *_more) in STAGED.items():
            assert tables[first.name].rows == tables[f"raw_{resource}"].rows == snapshot.counts[resource]

    def test_columns_and_lists_hold_what_the_payloads_hold(self, snapshot: Snapshot) -> None:
        """The fields that are known are columns; nothing of the sandbox's small resources is left but people's pictures."""
        for resource, key, table in (
            ("users", "roles", "user_roles"),
            ("collections", "publication_ids", "collection_publications"),
            ("authorities", "variants", "authority_variants"),
        ):
            sent = [json.loads(one["payload"]) for one in rows(snapshot, f"raw_{resource}")]
            listed = [(one["id"], position, entry) for one in sent for position, entry in enumerate(one[key])]
            assert [tuple(row.values()) for row in rows(snapshot, table)] == listed
        copies = [json.loads(one["payload"]) for one in rows(snapshot, "raw_hard_copies")]
        for sent, row in zip(copies, rows(snapshot, "hard_copies"), strict=True):
            plain = {**row, "acquired_on": row["acquired_on"] and row["acquired_on"].isoformat()}
            assert plain == {**sent, "residue": None, "sha256": row["sha256"]}
        assert set(snapshot.manifest.residue["users"]) <= {"avatar"}
        assert set(snapshot.manifest.residue["publications"]) <= {"identifiers[].type"}
        others = {"users", "publications"}
        assert not any(found for resource, found in snapshot.manifest.residue.items() if resource not in others)

    def test_typed_identifiers(self, snapshot: Snapshot) -> None:
        """service-api.md: `identifiers` (v3), each with type and value: every one is found again, in their order."""
        sent = [json.loads(one["payload"]) for one in rows(snapshot, "raw_publications")]
        listed = [(one["id"], entry["value"]) for one in sent for entry in one["identifiers"]]
        staged = rows(snapshot, "publication_identifiers")
        assert {row["source_field"] for row in staged} == {"identifiers"}
        assert list(dict.fromkeys((row["publication_id"], row["raw"]) for row in staged)) == list(dict.fromkeys(listed))

    def test_no_signed_address_is_staged(self, snapshot: Snapshot) -> None:
        """I10: whoever has one may fetch the file. That there was one is told."""
        for tables in STAGED.values():
            for table in tables:
                assert "ignature=" not in json.dumps(rows(snapshot, table.name), default=str)
        files = rows(snapshot, "publication_files")
        assert files
        assert all(file["has_url"] for file in files)

    def test_both_versions_stage_one_library_alike(self, desk: Desk, snapshot: Snapshot) -> None:
        """What both versions show of a publication is the same in the tables of both."""
        older = desk.back_up(tenant="old")
        assert list(older.manifest.resources) == ["publications"]
        for table, left in (
            (
                "publications",
                {"residue", "sha256", "contributor_id", "contributor_name", "organization_id", "organization_name"},
            ),
            ("publication_authors", set()),
            ("publication_categories", set()),
            ("publication_files", set()),
        ):
            old, new = (
                [{key: value for key, value in row.items() if key not in left} for row in rows(one, table)]
                for one in (older, snapshot)
            )
            assert old == new

    def test_views_over_all_tables(self, desk: Desk, snapshot: Snapshot) -> None:
        """Analysts see each table from the newest complete snapshot that holds it: one of users alone does not hide the publications."""
        users = desk.back_up("users", run="users")
        assert users.manifest.complete
        assert users.counts.keys() == {"users"}
        with desk.library() as library, open_catalogue(library.data) as database:
            shown = dict(
                database.execute(
                    "SELECT 'users', max(snapshot) FROM users UNION ALL SELECT 'publications', max(snapshot) FROM publications"
                ).fetchall()
            )
            [(copies,)] = database.execute(
                "SELECT count(*) FROM hard_copies JOIN publications ON publications.id = publication_id"
            ).fetchall()
            assert library.data.find_snapshot("new").name == snapshot.name
        assert shown == {"users": users.manifest.snapshot, "publications": snapshot.manifest.snapshot}
        assert copies == snapshot.counts["hard_copies"]


class TestVersionTwo:
    """service-api.md lists the other resources for version 3; of version 2 they are tried where somebody names them."""

    def test_publications_only(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """The number of requests stays one for every fifty records."""
        snapshot = desk.back_up(tenant="old")
        assert snapshot.counts == {"publications": RECORDS}
        assert snapshot.manifest.requests == sandbox.counts()["requests"] == -(-RECORDS // 50)

    def test_another_resource_by_name(self, desk: Desk) -> None:
        """It is not there: the snapshot is partial, and says of what, with which status, and what to do."""
        snapshot = desk.back_up("publications", "hard_copies", tenant="old")
        assert not snapshot.manifest.complete
        assert snapshot.counts == {"publications": RECORDS}
        found = snapshot.manifest.unreadable["hard_copies"]
        assert (found.status, found.partial) == (404, True)
        [problem] = snapshot.manifest.problems
        for words in (
            "hard_copies: could not be read",
            "/api/v2/hard_copies",
            "404",
            "RouteNotFound",
            "resources = [...]",
        ):
            assert words in problem


class TestNotReadable:
    """What an account may not read, or a service does not have, is told and left out; what was asked for by name makes it partial."""

    def test_scopes_that_are_missing(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """service-api.md: "403 with code `InsufficientScope`, and `WWW-Authenticate` names the missing scope"."""
        desk.sign_in(sandbox, ("library:read", "assets:read"))
        snapshot = desk.back_up()
        assert snapshot.manifest.complete
        assert {name: (one.status, one.missing_scopes) for name, one in snapshot.manifest.unreadable.items()} == {
            "users": (403, ["users:read"]),
            "tasks": (403, ["tasks:read"]),
        }
        assert not {"raw_users", "users", "user_roles", "raw_tasks", "tasks"} & set(snapshot.manifest.tables)
        assert not (snapshot.path / "raw" / "users.parquet").exists()
        users, tasks = snapshot.manifest.notes
        assert "users: could not be read" in users
        assert "users:read" in users
        assert "bookferry login new" in users
        assert "tasks:read" in tasks

    @pytest.mark.parametrize("named", ["option", "settings"])
    def test_asked_for_by_name(self, sandbox: SandboxProcess, desk: Desk, named: str) -> None:
        """By `--resources` or by the tenant's `resources`: the snapshot is partial without it."""
        if named == "settings":
            desk = Desk.at(desk.config.parent, sandbox.base_url(), 'resources = ["publications", "users"]')
        desk.sign_in(sandbox, ("library:read", "assets:read"))
        snapshot = desk.back_up(*(("publications", "users") if named == "option" else ()))
        assert not snapshot.manifest.complete
        assert list(snapshot.manifest.unreadable) == ["users"]
        assert "users:read" in snapshot.manifest.problems[0]

    @pytest.mark.parametrize("status", [403, 404, 405, 410, 422])
    def test_any_refusal_before_the_first_page(self, desk: Desk, sandbox: SandboxProcess, status: int) -> None:
        """v3 is a preview: a list may not be there yet. Everything else is backed up."""
        sandbox.fault("status", status=status, path="/authorities", times=9)
        snapshot = desk.back_up()
        assert snapshot.manifest.complete
        assert snapshot.manifest.unreadable["authorities"].status == status
        assert snapshot.counts.keys() == set(RESOURCES) - {"authorities"}

    def test_locations_are_not_the_hard_copies(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """Each list is refused for itself."""
        sandbox.fault("status", status=404, path="/hard_copies/locations", times=9)
        assert list(desk.back_up().manifest.unreadable) == ["locations"]

    def test_nothing_that_was_asked_for(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """A snapshot of nothing is none: exit 4, and the last good one stays current (I5)."""
        good = desk.back_up()
        desk.sign_in(sandbox, ("library:read",))
        with pytest.raises(AccessDeniedError, match=r"Nothing could be read, so there is no snapshot.*users:read"):
            desk.back_up("users", run="second")
        with desk.library() as library:
            assert [one.name for one in library.data.snapshots()] == [good.name]

    def test_publications_are_indispensable(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """Without `library:read` the people are kept, and the snapshot is partial: it never stands for the library."""
        good = desk.back_up()
        desk.sign_in(sandbox, ("users:read",))
        snapshot = desk.back_up(run="second")
        assert not snapshot.manifest.complete
        assert list(snapshot.counts) == ["users"]
        [problem] = [one for one in snapshot.manifest.problems if one.startswith("publications: ")]
        assert "library:read" in problem
        with desk.library() as library:
            assert library.data.find_snapshot(good.manifest.tenant).name == good.name

    def test_publications_alone_and_refused(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """Where nothing at all may be read there is no snapshot, and somebody must sign in."""
        desk.sign_in(sandbox, ())
        with pytest.raises(AccessDeniedError, match="library:read"):
            desk.back_up()

    @pytest.mark.parametrize(
        ("arrange", "error"),
        [
            (lambda one: one.fault("status", status=503, retry_after=7200, path="/tasks", times=99), TemporaryError),
            (lambda one: one.fault("status", status=404, path="/authorities.*page=2", times=9), RefusedError),
        ],
        ids=["a failure that stays", "in the middle"],
    )
    def test_what_fails_otherwise_fails_the_run(
        self, desk: Desk, sandbox: SandboxProcess, arrange: Callable[[SandboxProcess], None], error: type[Exception]
    ) -> None:
        """A refusal is a fact about the account; a failure is not, and half a list is none. The last good snapshot stays (I5)."""
        good = desk.back_up()
        assert good.manifest.resources["authorities"].pages > 1
        arrange(sandbox)
        with pytest.raises(error):
            desk.back_up(run="second")
        with desk.library() as library:
            assert [one.name for one in library.data.snapshots()] == [good.name]


def test_trap_a11_files_without_addresses(desk: Desk, sandbox: SandboxProcess) -> None:
    """Trap A11: "A token without `assets:read` silently lacks `url`": the manifest says of how many files, and what to do."""
    desk.sign_in(sandbox, ("library:read", "users:read", "tasks:read"))
    manifest = desk.back_up().manifest
    assert not manifest.complete
    [problem] = manifest.problems
    assert problem.startswith(f"files: {manifest.files.count} of {manifest.files.count} could not be had")
    assert "lacks the scope assets:read" in problem
    assert "bookferry login new" in problem
    assert manifest.requests == sum(one.requests for one in manifest.resources.values()) + 1, "one is told for all"


def test_a_list_that_moves_makes_the_snapshot_partial(desk: Desk, sandbox: SandboxProcess) -> None:
    """I4 holds for each resource."""
    sandbox.change(variations={"x_total_error": 1})
    manifest = desk.back_up("users").manifest
    assert not manifest.complete
    sent = manifest.resources["users"].records
    expected = f"users: The service announced {sent + 1} records (X-Total) and sent {sent} different ones."
    assert manifest.problems == [expected]
