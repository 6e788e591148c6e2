"""`bookferry backup` of a tenant of version 3: its output, and that of `snapshots`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.inventory import RESOURCES
from tests.backup.conftest import RECORDS
from tests.backup.other_resources.conftest import TwoVersionRunner
from tests.cli.command import Outcome, run
from tests.sandbox.process import SandboxProcess


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_complete_backup_and_then_one_with_fewer_scopes(runner: TwoVersionRunner, sandbox: SandboxProcess) -> None:
    """The JSON has `counts{resource: n}`, and the last line names its state; later, unreadable resources are reported, exit 0."""

    def bookferry(*arguments: str) -> Outcome:
        variables = {"TEST_USER": sandbox.user, "TEST_PASSWORD": sandbox.password}
        return run(*arguments, folder=runner.config.parent, variables=variables, seconds=180)

    complete = bookferry("backup", "new", "--json")
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

    token = runner.sign_in(sandbox, ("library:read", "assets:read", "tasks:read"))
    fewer = bookferry("backup", "new")
    assert fewer.status == 0, fewer.err
    assert fewer.lines[-1].startswith(f"Complete: {RECORDS} publications, ")
    assert "; not readable: users; " in fewer.lines[-1]
    assert "users:read" in fewer.lines[0]
    output = bookferry("snapshots", "show", "new").out
    assert "not readable" in output
    assert_nothing_secret(runner, token, complete, fewer)


def assert_nothing_secret(runner: TwoVersionRunner, token: str, *outcomes: Outcome) -> None:
    """I10: neither the token nor a signed address is printed or stored outside of the sign-in and the payloads."""
    for outcome in outcomes:
        assert token not in outcome.out + outcome.err
    folder = runner.config.parent / "library-data"
    for path in (Path(where) / name for where, _folders, names in os.walk(folder) for name in names):
        content = path.read_bytes()
        assert token.encode() not in content, path
        if path.suffix != ".parquet":
            assert b"ignature=" not in content, path
