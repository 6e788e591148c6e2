"""`state = "postgres"`: two machines with folders of their own share the budget, the leases and what they know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.cli.command import Installation
from tests.postgres import database
from tests.sandbox.process import SandboxProcess


@pytest.fixture
def address(state_server: str) -> Iterator[str]:
    """An empty database."""
    with database(state_server) as postgres_address:
        yield postgres_address


def shared(folder: Path, sandbox: SandboxProcess, limit: int = 100_000) -> Installation:
    """An installation whose state is in the database."""
    installation = Installation.make(folder, sandbox, "small", limit)
    config = folder / "bookferry.toml"
    head = 'state = "postgres"\npostgres_env = "TEST_POSTGRES"\npostgres.load = false\n'
    config.write_text(head + config.read_text())
    return installation


def test_two_machines_count_in_one_budget(address: str, sandbox: SandboxProcess, tmp_path: Path) -> None:
    """Both back up without a file for the state, and take slots of the same library."""
    first_machine, second_machine = (shared(tmp_path / name, sandbox) for name in ("one", "other"))
    variables = {**first_machine.sign_in, "TEST_POSTGRES": address}
    assert first_machine.backup("--no-files", variables=variables).status == 0
    assert not list(tmp_path.rglob("state.db*"))
    newest_slot = "SELECT library, max(slot) FROM bookferry_state.budget_slots GROUP BY library"
    with psycopg.connect(address) as connection:
        [(library, slot)] = connection.execute(newest_slot).fetchall()
        assert connection.execute("SELECT fence FROM bookferry_state.leases").fetchall() == [(2,)]
    outcome = second_machine.run("doctor", "small", "--json", variables=variables)
    checks = {check["name"]: check for check in outcome.document["tenants"][0]["checks"]}
    finding = checks["database"]
    assert finding["status"] == "warning"
    assert "answers; it has fsync = off" in finding["message"]
    assert second_machine.backup("--no-files", variables=variables).status == 0
    with psycopg.connect(address) as connection:
        [(later_library, later_slot)] = connection.execute(newest_slot).fetchall()
    assert later_library == library
    assert later_slot > slot >= 2


def test_without_a_database_nothing_is_sent(sandbox: SandboxProcess, tmp_path: Path) -> None:
    installation = shared(tmp_path, sandbox)
    sandbox.reset("counts")
    gone = {**installation.sign_in, "TEST_POSTGRES": "postgresql://me:sesame-open@127.0.0.1:1/state"}
    installation.backup(variables=gone).assert_failed(
        1, "The state in postgresql://127.0.0.1:1/state cannot be reached"
    )
    installation.backup(variables=installation.sign_in).assert_failed(2, "TEST_POSTGRES, which is not set")
    config = tmp_path / "bookferry.toml"
    config.write_text(config.read_text().replace('postgres_env = "TEST_POSTGRES"\n', ""))
    installation.backup().assert_failed(2, 'postgres_env = "BOOKFERRY_POSTGRES"')
    assert sandbox.counts()["requests"] == 0
