"""Every resource of version 3, listed into a snapshot with a proof of each (I4, I6)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from pipelines.errors import AccessDeniedError, StopError, TemporaryError
from pipelines.inventory import RESOURCES
from pipelines.records.tables.registry import STAGED
from pipelines.service.clock import SystemClock
from pipelines.store.catalogue import open_catalogue
from tests.backup.other_resources.conftest import TwoVersionRunner, rows
from tests.sandbox.process import SandboxProcess


@pytest.mark.long
def test_every_resource_is_proved(runner: TwoVersionRunner, sandbox: SandboxProcess) -> None:
    """I4: each resource has as many distinct ids as its `X-Total`; `/publications/all` is used where it exists.

    I10: a signed address gives access to the file, so it is not staged; that there was one is noted.
    """
    snapshot = runner.back_up()
    manifest = snapshot.manifest
    assert manifest.complete
    assert manifest.problems == manifest.notes == []
    assert list(manifest.resources) == list(RESOURCES)
    for facts in manifest.resources.values():
        assert facts.records == facts.distinct_ids == facts.x_total > 0
    assert manifest.resources["publications"].endpoint == "publications/all"
    assert manifest.resources["locations"].endpoint == "hard_copies/locations"
    assert manifest.requests == sandbox.counts()["requests"]
    for tables in STAGED.values():
        for table in tables:
            assert "ignature=" not in json.dumps(rows(snapshot, table.name), default=str)
    files = rows(snapshot, "publication_files")
    assert files
    assert all(file["has_url"] for file in files)


class TestUnreadableResources:
    """A resource that is refused or missing is reported and left out; one that was asked for by name makes the snapshot partial."""

    @pytest.mark.long
    def test_scopes_that_are_missing(self, runner: TwoVersionRunner, sandbox: SandboxProcess) -> None:
        """A 403 with the code `InsufficientScope`; `WWW-Authenticate` names the scope (service.md#scopes). No empty snapshot (I5)."""
        good = runner.back_up()
        runner.sign_in(sandbox, ("library:read", "assets:read"))
        snapshot = runner.back_up(run="second")
        assert snapshot.manifest.complete
        assert {
            name: (refusal.status, refusal.missing_scopes) for name, refusal in snapshot.manifest.unreadable.items()
        } == {
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

        named = runner.back_up("publications", "users", run="named")
        assert (named.manifest.complete, list(named.manifest.unreadable)) == (False, ["users"])
        assert "users:read" in named.manifest.problems[0]
        with pytest.raises(AccessDeniedError, match=r"Nothing could be read, so there is no snapshot.*users:read"):
            runner.back_up("users", run="none")

        runner.sign_in(sandbox, ("users:read",))
        people = runner.back_up(run="without publications")
        assert (people.manifest.complete, list(people.counts)) == (False, ["users"])
        [problem] = [problem for problem in people.manifest.problems if problem.startswith("publications: ")]
        assert "library:read" in problem
        users_alone = runner.back_up("users", run="users")
        assert (users_alone.manifest.complete, list(users_alone.counts)) == (True, ["users"])
        with runner.library() as library, open_catalogue(library.data) as database:
            assert library.data.find_snapshot("new").name == snapshot.name, "the newest complete one that has all"
            assert {good.name, named.name} <= {entry.name for entry in library.data.snapshots()}
            newest = "SELECT max(users.snapshot), max(publications.snapshot) FROM users, publications"
            assert database.execute(newest).fetchall() == [(users_alone.manifest.snapshot, snapshot.manifest.snapshot)]

    @pytest.mark.long
    def test_any_refusal_before_the_first_page(self, runner: TwoVersionRunner, sandbox: SandboxProcess) -> None:
        """v3 is a preview, in which a list may be missing. Everything else is backed up: locations are not the hard copies."""
        refused = {"authorities": 403, "collections": 405, "tasks": 410, "users": 422, "locations": 404}
        for resource, status in refused.items():
            path = "/hard_copies/locations" if resource == "locations" else f"/{resource}"
            sandbox.fault("status", status=status, path=path, times=20)
        snapshot = runner.back_up()
        assert snapshot.manifest.complete
        assert {name: list_.status for name, list_ in snapshot.manifest.unreadable.items()} == refused
        assert snapshot.counts.keys() == {"publications", "hard_copies"}
        sandbox.fault("status", status=418, path="/users", times=9)
        with pytest.raises(StopError, match=r"Nothing could be read, so there is no snapshot.*4"):
            runner.back_up("users", run="second")

    @pytest.mark.parametrize(
        ("resource", "fault"),
        [
            ("tasks", {"kind": "status", "status": 503, "retry_after": 7200, "path": "/tasks"}),
            ("tasks", {"kind": "garble", "path": "/tasks"}),
            ("authorities", {"kind": "garble", "path": "/authorities"}),
        ],
        ids=["no answer", "no JSON", "no JSON of several pages"],
    )
    def test_a_list_that_cannot_be_sent(
        self,
        runner: TwoVersionRunner,
        sandbox: SandboxProcess,
        resource: str,
        fault: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """What was read of the others is published as partial, the list is named, and the last good snapshot stays current (I4, I5)."""
        monkeypatch.setattr(SystemClock, "sleep", lambda _clock, seconds: time.sleep(seconds / 50))
        good = runner.back_up()
        assert good.manifest.resources["authorities"].pages > 1
        sandbox.fault(fault.pop("kind"), times=99, **fault)
        manifest = runner.back_up(run="second").manifest
        assert not manifest.complete
        assert list(manifest.unreadable) == [resource]
        assert set(manifest.resources) == set(RESOURCES) - {resource}
        assert any(problem.startswith(f"{resource}: ") for problem in manifest.problems)
        with runner.library() as library:
            assert library.data.find_snapshot(good.manifest.tenant).name == good.name

    @pytest.mark.parametrize("lists", ["/tasks|/publications.*per_page=1$", "/publications"])
    def test_an_outage_ends_the_run(self, runner: TwoVersionRunner, sandbox: SandboxProcess, lists: str) -> None:
        """Where no list answers any more, or none of publications, nothing is published; the next run goes on where this one ended (I9)."""
        good = runner.back_up()
        sandbox.fault("status", status=503, retry_after=7200, path=lists, times=99)
        with pytest.raises(TemporaryError):
            runner.back_up(run="second")
        with runner.library() as library:
            assert [snapshot.name for snapshot in library.data.snapshots()] == [good.name]


@pytest.mark.long
def test_files_without_addresses_make_a_snapshot_partial(runner: TwoVersionRunner, sandbox: SandboxProcess) -> None:
    """A token without `assets:read` gets files without `url` (service.md#scopes): the manifest says how many, and what to do."""
    runner.sign_in(sandbox, ("library:read", "users:read", "tasks:read"))
    manifest = runner.back_up().manifest
    assert not manifest.complete
    [problem] = manifest.problems
    assert problem.startswith(f"files: {manifest.files.count} of {manifest.files.count} could not be fetched")
    assert "lacks the scope assets:read" in problem
    assert "bookferry login new" in problem
    assert manifest.requests == sum(facts.requests for facts in manifest.resources.values()) + 1, (
        "one refusal counts for all"
    )
    kinds = {failure.problem: failure.kind for failure in manifest.files.failures}
    [refused] = [problem for problem in kinds if problem.startswith("GET ")]
    [asset] = {request["path"] for request in sandbox.requests() if request["path"].startswith("/api/v3/assets/")}
    assert refused.startswith(f"GET {sandbox.base_url()}{asset} answered 403")
    remark = f"no address was requested for it, because that of another file was refused: {refused}"
    assert (kinds.pop(refused), list(kinds)) == ("asset", [remark])
