"""`snapshots verify`, `diff` and `prune` as people run them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command import Installation
from tests.sandbox.process import SandboxProcess


@pytest.fixture(scope="module")
def made_once(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A library of three pages that was backed up twice, and the names of the snapshots."""
    installation = Installation.make(tmp_path_factory.mktemp("two-backups"), sandbox, "small")
    documents = [installation.backup("--json").document for _ in range(2)]
    return installation.folder, [f"small/{document['snapshot']}" for document in documents]


@pytest.fixture
def two_backups(
    made_once: tuple[Path, list[str]], sandbox: SandboxProcess, tmp_path: Path
) -> tuple[Installation, list[str]]:
    """A copy of it for each test."""
    folder, names = made_once
    shutil.copytree(folder, tmp_path / "copy")
    return Installation(tmp_path / "copy", sandbox, "small"), names


@pytest.mark.long
def test_a_backup_is_verified_and_the_list_says_so(two_backups: tuple[Installation, list[str]]) -> None:
    """Exit 0, dated; nothing is written into the snapshot."""
    installation, (first, newest) = two_backups
    before = installation.snapshots()
    done = installation.run("snapshots", "verify", "--json")
    assert (done.status, done.document["ok"], done.document["problems"]) == (0, True, []), done.err
    assert [one["snapshot"] for one in done.document["snapshots"]] == [newest.partition("/")[2]]
    assert installation.snapshots() == before
    listed = {one["snapshot"]: one for one in installation.run("snapshots", "list", "--json").document["snapshots"]}
    assert listed[first.partition("/")[2]]["last_verified"] is None
    assert listed[newest.partition("/")[2]]["last_verified"]["ok"] is True
    printed = installation.run("snapshots", "verify", first, "--read-data", "1/7")
    assert (printed.status, printed.lines[0]) == (0, f"{first}  intact")
    assert printed.lines[-1].startswith("Good: 1 snapshot as published; 7 files")
    installation.run("snapshots", "verify", "--read-data", "2/1", "--json").assert_failed(2, "--read-data '2/1'")


@pytest.mark.long
def test_damage_is_exit_6_and_named(two_backups: tuple[Installation, list[str]]) -> None:
    """By the file, in both forms, and in the list."""
    installation, (_first, newest) = two_backups
    (file,) = (installation.folder / "library-data").rglob(
        f"snapshot={newest.partition('/')[2]}/raw/publications.parquet"
    )
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 16
    file.write_bytes(content)
    done = installation.run("snapshots", "verify", "small", "--json")
    assert (done.status, done.document["ok"]) == (6, False)
    assert str(file) in done.document["problems"][0]
    printed = installation.run("snapshots", "verify", "small")
    assert (printed.status, printed.lines[-1].split(";")[0]) == (6, "Not good: 1 problem")
    assert "DAMAGED" in installation.run("snapshots", "list").lines[-2]


def test_what_a_complete_snapshot_does_not_have(two_backups: tuple[Installation, list[str]]) -> None:
    """Resources that were not read are named once for all snapshots that lack the same, by `status` too, and in JSON."""
    installation, (_first, newest) = two_backups
    unread = ["users", "hard_copies", "locations", "collections", "authorities", "tasks"]
    said = "users, hard copies, locations, collections, authorities, tasks."
    assert installation.run("snapshots", "list").lines[-1] == f"Not read in {newest} and 1 more: {said}"
    assert f"Not read in small: {said}" in installation.run("status").lines
    listed = installation.run("snapshots", "list", "--json").document["snapshots"]
    [library] = installation.run("status", "--json").document["libraries"]
    assert [one["not_read"] for one in (*listed, library["backup"])] == [unread, unread, unread]
    shown = installation.run("snapshots", "show", newest).lines
    assert [line.split("│")[0].strip() for line in shown if "not read" in line] == unread


def test_differences_are_exit_6(two_backups: tuple[Installation, list[str]]) -> None:
    """Two nights of an unchanged library are equal: exit 0."""
    installation, (first, newest) = two_backups
    done = installation.run("snapshots", "diff", first, newest, "--json")
    assert (done.status, done.document["equal"]) == (0, True), done.err
    assert done.document["resources"]["publications"]["unchanged"] == 120
    assert (
        installation.run("snapshots", "diff", first, newest).lines[-1]
        == f"No differences between {first} and {newest}."
    )
    installation.configure(base_url=installation.sandbox.base_url("bare"))
    assert installation.backup("--json").status == 0
    emptied = installation.run("snapshots", "diff", first, "small")
    assert emptied.status == 6
    assert "0 added, 120 removed, 0 changed" in emptied.lines[-1]
    installation.run("snapshots", "diff", first, newest, "--resource", "users", "--json").assert_failed(
        2, "--resource users"
    )


def test_old_ones_are_removed_as_the_policy_says(two_backups: tuple[Installation, list[str]]) -> None:
    """Empty policies are refused; a dry run removes nothing; the newest complete one stays."""
    installation, (first, newest) = two_backups
    installation.run("snapshots", "prune", "--json").assert_failed(2, "nothing says what to keep")
    config = installation.folder / "bookferry.toml"
    config.write_text(f"{config.read_text()}\n[retention]\nkeep_last = 1\n")
    installation.run("snapshots", "prune", "smal", "--json").assert_failed(2, "did you mean 'small'?")
    before = installation.snapshots()
    dry = installation.run("snapshots", "prune", "--dry-run", "--json")
    assert dry.status == 0, dry.err
    assert ([one["snapshot"] for one in dry.document["removed"]], installation.snapshots()) == ([first], before)
    printed = installation.run("snapshots", "prune", "small")
    assert (printed.status, printed.lines[-1].split(",")[0]) == (0, "Removed 1 snapshot")
    assert "last" in next(line for line in printed.lines if newest in line)
    (remaining,) = installation.run("snapshots", "list", "--json").document["snapshots"]
    assert f"small/{remaining['snapshot']}" == newest
    counted = installation.run("query", "SELECT count(*) AS n FROM publications_history", "--json").document["rows"]
    assert counted == [{"n": 120}]
