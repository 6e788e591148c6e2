"""`bookferry nightly`: backup, verification and pruning in one call, and its exit status and last line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.command import Installation
from tests.kept_texts import texts_below
from tests.sandbox.process import SandboxProcess

RETENTION = "\n[retention]\nkeep_last = 1\n"


@pytest.fixture
def installation(sandbox: SandboxProcess, tmp_path: Path) -> Installation:
    """A library of three pages, of which one snapshot is kept."""
    sandbox.reset(tenant="small")
    installation = Installation.make(tmp_path, sandbox, "small")
    config = tmp_path / "bookferry.toml"
    config.write_text(config.read_text() + RETENTION)
    return installation


def kept(installation: Installation) -> int:
    return len(list((installation.folder / "library-data" / "snapshots").glob("*/*/manifest.json")))


def test_a_good_night(installation: Installation) -> None:
    """One document has all three steps; the second night removes the first snapshot."""
    first = installation.run("nightly", "small")
    (folder,) = (installation.folder / "library-data" / "snapshots").glob("*/*")
    snapshot = folder.name.removeprefix("snapshot=")
    last = f"Good night: small: backed up; verified; pruned. Snapshot small/{snapshot}."
    assert (first.status, first.lines[-1]) == (0, last), first.err
    second = installation.run("nightly", "small", "--json")
    assert (second.status, second.document["ok"], second.document["exit_status"]) == (0, True, 0)
    assert second.document["backup"]["complete"]
    assert second.document["verify"]["ok"]
    assert len(second.document["prune"]["removed"]) == 1
    assert kept(installation) == 1


@pytest.mark.long
def test_after_a_bad_night_nothing_is_removed(installation: Installation) -> None:
    """Partial, then failed: the older snapshots stay, the newest complete one is verified, and the last line says so."""
    installation.backup()
    installation.backup()
    installation.sandbox.change("small", variations={"x_total_error": 2})
    partial = installation.run("nightly", "small", "--json")
    assert (partial.status, partial.document["exit_status"], partial.document["ok"]) == (3, 3, False)
    assert partial.document["prune"] == {"left_out": "after such a night nothing is removed"}
    installation.sandbox.reset(tenant="small")
    wrong = {**installation.sign_in, "TEST_PASSWORD": "mistyped"}
    failed = installation.run("nightly", "small", variables=wrong)
    assert (failed.status, failed.lines[-1]) == (
        4,
        "NOT GOOD: small: not backed up (exit 4); verified; not pruned, because after such a night nothing is removed.",
    )
    assert "Check user name and password" in failed.err
    assert kept(installation) == 3


@pytest.mark.long
def test_damage_is_the_worst_of_a_night(installation: Installation) -> None:
    """A snapshot whose manifest cannot be read might be the newest: nothing is removed."""
    installation.backup()
    (manifest,) = (installation.folder / "library-data").rglob("manifest.json")
    manifest.write_text("{")
    outcome = installation.run("nightly", "small")
    assert (outcome.status, outcome.lines[-1].split(";")[1]) == (6, " not verified (damaged)")
    assert kept(installation) == 2


def test_a_library_without_a_complete_snapshot(installation: Installation) -> None:
    installation.sandbox.change("small", variations={"x_total_error": 2})
    outcome = installation.run("nightly", "small", "--json")
    assert (outcome.status, outcome.document["verify"]) == (3, {"left_out": "there is no complete snapshot"})
    installation.sandbox.reset(tenant="small")


@pytest.mark.long
def test_a_password_by_command(installation: Installation) -> None:
    """The whole night and doctor sign in with it; nothing that is kept has it (I10)."""
    config = installation.folder / "bookferry.toml"
    password = installation.sandbox.password
    (installation.folder / "secret.py").write_text(f"print({password!r})")
    command = f'password_command = ["{sys.executable}", "secret.py"]'
    config.write_text(config.read_text().replace('password_env = "TEST_PASSWORD"', command))
    user = {"TEST_USER": installation.sandbox.user}
    outcome = installation.run("nightly", "small", variables=user)
    assert outcome.status == 0, outcome.err
    doctor = installation.run("doctor", "small", "--json", variables=user).document["tenants"][0]["checks"]
    [secrets_check] = [check for check in doctor if check["name"] == "secrets"]
    assert secrets_check["message"] == "all that are named can be used"
    assert not [path for path, text in texts_below(installation.folder / "library-data") if password in text]
    (installation.folder / "secret.py").write_text("raise SystemExit(3)")
    installation.backup(variables=user).assert_failed(2, "password_command: ", "ended with exit status 3")
