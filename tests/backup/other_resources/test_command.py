"""`bookferry backup` of a tenant of version 3, as people run it: what it prints, and what `snapshots`, `tables` and `query` show of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.inventory import RESOURCES
from pipelines.records.tables.registry import STAGED
from tests.backup.other_resources.conftest import RECORDS, Desk
from tests.cli.command import Outcome, run
from tests.sandbox.process import SandboxProcess


@dataclass
class Seat:
    """Runs commands in the folder of a desk."""

    desk: Desk
    sandbox: SandboxProcess

    def run(self, *arguments: str) -> Outcome:
        """`bookferry ARGUMENTS`, with the account of version 2 in the environment."""
        variables = {"TEST_USER": self.sandbox.user, "TEST_PASSWORD": self.sandbox.password}
        return run(*arguments, folder=self.desk.config.parent, variables=variables, seconds=180)


@pytest.fixture
def seat(desk: Desk, sandbox: SandboxProcess) -> Seat:
    """A desk that is signed in."""
    return Seat(desk, sandbox)


@pytest.mark.timeout(400)
def test_a_whole_library_and_then_one_with_fewer_scopes(seat: Seat) -> None:
    """Contract: `counts{resource: n}`; the last line states the truth; later, what is not readable is told and exit is still 0."""
    whole = seat.run("backup", "new", "--json")
    assert whole.status == 0, whole.err
    assert list(whole.document["counts"]) == list(RESOURCES)
    assert whole.document["counts"]["publications"] == RECORDS
    assert all(whole.document["counts"].values())
    assert (whole.document["complete"], whole.document["notes"], whole.document["unreadable"]) == (True, [], {})
    assert "publications: 120 read" in whole.err

    tables = {one["table"]: one["rows"] for one in seat.run("tables", "--json").document["tables"]}
    for resource, (first, *_more) in STAGED.items():
        assert tables[first.name] == tables[f"raw_{resource}"] == whole.document["counts"][resource]
    asked = seat.run("query", "SELECT role, count(*) AS people FROM user_roles GROUP BY role ORDER BY role", "--json")
    assert {row["role"] for row in asked.document["rows"]} >= {"admin", "librarian"}
    shown = seat.run("snapshots", "show", "new").out
    assert "hard_copies/locations" in shown

    token = seat.desk.sign_in(seat.sandbox, ("library:read", "assets:read", "tasks:read"))
    fewer = seat.run("backup", "new")
    assert fewer.status == 0, fewer.err
    assert fewer.lines[-1].startswith(f"Complete: {RECORDS} publications, ")
    assert "; not readable: users; " in fewer.lines[-1]
    assert "users:read" in fewer.lines[0]
    shown = seat.run("snapshots", "show", "new").out
    assert "not readable" in shown
    named = seat.run("backup", "new", "--resources", "publications,users", "--json")
    assert named.status == 3
    assert named.document["complete"] is False
    assert named.document["unreadable"]["users"]["missing_scopes"] == ["users:read"]
    assert named.document["problems"][0].startswith("users: could not be read")
    assert_nothing_secret(seat, token, whole, fewer, named)


def assert_nothing_secret(seat: Seat, token: str, *outcomes: Outcome) -> None:
    """I10: neither the token nor a signed address is printed or kept anywhere but in the sign-in and the payloads."""
    for outcome in outcomes:
        assert token not in outcome.out + outcome.err
    folder = seat.desk.config.parent / "library-data"
    for path in (Path(where) / name for where, _folders, names in os.walk(folder) for name in names):
        content = path.read_bytes()
        assert token.encode() not in content, path
        if path.suffix != ".parquet":
            assert b"ignature=" not in content, path


def test_version_two_has_no_list_of_users(seat: Seat) -> None:
    """Exit 2, with the plain reason, before anything is asked."""
    done = seat.run("backup", "old", "--resources", "users", "--json")
    done.assert_failed(2, "--resources: users: version 2 of the API has no list of users", 'api = "v3"')
    assert seat.sandbox.counts()["requests"] == 0
    config = seat.desk.config.read_text().replace("[tenants.old]", '[tenants.old]\nresources = ["users"]')
    seat.desk.config.write_text(config)
    seat.run("snapshots", "list", "--json").assert_failed(
        2, "bookferry.toml", "tenants.old", "users: version 2 of the API"
    )


def test_version_two_is_asked_for_what_somebody_names(seat: Seat) -> None:
    """Exit 3: it is not there, which the answer says; the publications are kept."""
    done = seat.run("backup", "old", "--resources", "publications,tasks", "--json")
    assert done.status == 3, done.err
    assert done.document["counts"] == {"publications": RECORDS}
    assert done.document["unreadable"]["tasks"]["status"] == 404
    assert json.dumps(done.document).count("RouteNotFound") >= 1
