"""`bookferry backup` of a tenant of version 3: its output, and that of `snapshots`, `tables` and `query`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.inventory import RESOURCES
from pipelines.records.tables.registry import STAGED
from tests.backup.other_resources.conftest import RECORDS, TwoVersionRunner
from tests.cli.command import Outcome, run
from tests.sandbox.process import SandboxProcess


@dataclass
class CommandRunner:
    """Runs commands in the folder of a configuration."""

    runner: TwoVersionRunner
    sandbox: SandboxProcess

    def run(self, *arguments: str) -> Outcome:
        """`bookferry ARGUMENTS`, with the account of version 2 in the environment."""
        variables = {"TEST_USER": self.sandbox.user, "TEST_PASSWORD": self.sandbox.password}
        return run(*arguments, folder=self.runner.config.parent, variables=variables, seconds=180)


@pytest.fixture
def commands(runner: TwoVersionRunner, sandbox: SandboxProcess) -> CommandRunner:
    """Commands of a signed-in user."""
    return CommandRunner(runner, sandbox)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_complete_backup_and_then_one_with_fewer_scopes(commands: CommandRunner) -> None:
    """The JSON has `counts{resource: n}`, and the last line names its state; later, unreadable resources are reported, exit 0."""
    complete = commands.run("backup", "new", "--json")
    assert complete.status == 0, complete.err
    assert list(complete.document["counts"]) == list(RESOURCES)
    assert complete.document["counts"]["publications"] == RECORDS
    assert all(complete.document["counts"].values())
    assert (complete.document["complete"], complete.document["notes"], complete.document["unreadable"]) == (
        True,
        [],
        {},
    )
    assert "publications: 120 read" in complete.err

    tables = {one["table"]: one["rows"] for one in commands.run("tables", "--json").document["tables"]}
    for resource, (first, *_more) in STAGED.items():
        assert tables[first.name] == tables[f"raw_{resource}"] == complete.document["counts"][resource]
    asked = commands.run(
        "query", "SELECT role, count(*) AS people FROM user_roles GROUP BY role ORDER BY role", "--json"
    )
    assert {row["role"] for row in asked.document["rows"]} >= {"admin", "librarian"}
    output = commands.run("snapshots", "show", "new").out
    assert "hard_copies/locations" in output

    token = commands.runner.sign_in(commands.sandbox, ("library:read", "assets:read", "tasks:read"))
    fewer = commands.run("backup", "new")
    assert fewer.status == 0, fewer.err
    assert fewer.lines[-1].startswith(f"Complete: {RECORDS} publications, ")
    assert "; not readable: users; " in fewer.lines[-1]
    assert "users:read" in fewer.lines[0]
    output = commands.run("snapshots", "show", "new").out
    assert "not readable" in output
    named = commands.run("backup", "new", "--resources", "publications,users", "--json")
    assert named.status == 3
    assert named.document["complete"] is False
    assert named.document["unreadable"]["users"]["missing_scopes"] == ["users:read"]
    assert named.document["problems"][0].startswith("users: could not be read")
    assert_nothing_secret(commands, token, complete, fewer, named)


def assert_nothing_secret(commands: CommandRunner, token: str, *outcomes: Outcome) -> None:
    """I10: neither the token nor a signed address is printed or stored outside of the sign-in and the payloads."""
    for outcome in outcomes:
        assert token not in outcome.out + outcome.err
    folder = commands.runner.config.parent / "library-data"
    for path in (Path(where) / name for where, _folders, names in os.walk(folder) for name in names):
        content = path.read_bytes()
        assert token.encode() not in content, path
        if path.suffix != ".parquet":
            assert b"ignature=" not in content, path
