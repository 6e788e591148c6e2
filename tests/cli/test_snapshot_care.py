"""`snapshots verify`, `diff` and `prune` as people run them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Home
from tests.sandbox.process import SandboxProcess


@pytest.fixture
def twice(sandbox: SandboxProcess, tmp_path: Path) -> tuple[Home, list[str]]:
    """A library of three pages that was backed up twice, and the names of the snapshots."""
    home = Home.make(tmp_path, sandbox, "small")
    documents = [home.backup("--json").document for _ in range(2)]
    return home, [f"small/{document['snapshot']}" for document in documents]


def test_a_backup_is_verified_and_the_list_says_so(twice: tuple[Home, list[str]]) -> None:
    """Exit 0, dated; nothing is written into the snapshot."""
    home, (first, newest) = twice
    before = home.snapshots()
    done = home.run("snapshots", "verify", "--json")
    assert (done.status, done.document["ok"], done.document["problems"]) == (0, True, []), done.err
    assert [one["snapshot"] for one in done.document["snapshots"]] == [newest.partition("/")[2]]
    assert home.snapshots() == before
    listed = {one["snapshot"]: one for one in home.run("snapshots", "list", "--json").document["snapshots"]}
    assert listed[first.partition("/")[2]]["last_verified"] is None
    assert listed[newest.partition("/")[2]]["last_verified"]["ok"] is True
    shown = home.run("snapshots", "verify", first, "--read-data", "1/7")
    assert (shown.status, shown.lines[0]) == (0, f"{first}  intact")
    assert shown.lines[-1].startswith("Good: 1 snapshot as published; 7 files")
    home.run("snapshots", "verify", "--read-data", "2/1", "--json").assert_failed(2, "--read-data '2/1'")


def test_damage_is_exit_6_and_named(twice: tuple[Home, list[str]]) -> None:
    """By the file, in both forms, and in the list."""
    home, (_first, newest) = twice
    (file,) = (home.folder / "library-data").rglob(f"snapshot={newest.partition('/')[2]}/raw/publications.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 16
    file.write_bytes(content)
    done = home.run("snapshots", "verify", "small", "--json")
    assert (done.status, done.document["ok"]) == (6, False)
    assert str(file) in done.document["problems"][0]
    shown = home.run("snapshots", "verify", "small")
    assert (shown.status, shown.lines[-1].split(";")[0]) == (6, "Not good: 1 problem")
    assert "DAMAGED" in home.run("snapshots", "list").lines[-1]


def test_differences_are_exit_6(twice: tuple[Home, list[str]]) -> None:
    """Two nights of an unchanged library are equal: exit 0."""
    home, (first, newest) = twice
    done = home.run("snapshots", "diff", first, newest, "--json")
    assert (done.status, done.document["equal"]) == (0, True), done.err
    assert done.document["resources"]["publications"]["unchanged"] == 120
    assert home.run("snapshots", "diff", first, newest).lines[-1] == f"No differences between {first} and {newest}."
    home.configure(base_url=home.sandbox.base_url("bare"))
    assert home.backup("--json").status == 0
    emptied = home.run("snapshots", "diff", first, "small", "--limit", "3")
    assert emptied.status == 6
    assert "0 added, 120 removed, 0 changed" in emptied.lines[-1]
    home.run("snapshots", "diff", first, newest, "--resource", "users", "--json").assert_failed(2, "--resource users")


def test_old_ones_are_removed_as_the_policy_says(twice: tuple[Home, list[str]]) -> None:
    """Empty policies are refused; a dry run removes nothing; the newest complete one stays."""
    home, (first, newest) = twice
    home.run("snapshots", "prune", "--json").assert_failed(2, "Nothing says what to keep")
    home.run("snapshots", "prune", "--keep-daily", "-1", "--json").assert_failed(2, "--keep-daily")
    home.run("snapshots", "prune", "smal", "--keep-last", "1", "--json").assert_failed(2, "did you mean 'small'?")
    before = home.snapshots()
    dry = home.run("snapshots", "prune", "--keep-last", "1", "--dry-run", "--json")
    assert dry.status == 0, dry.err
    assert ([one["snapshot"] for one in dry.document["removed"]], home.snapshots()) == ([first], before)
    shown = home.run("snapshots", "prune", "small", "--keep-last", "1")
    assert (shown.status, shown.lines[-1].split(",")[0]) == (0, "Removed 1 snapshot")
    assert "last" in next(line for line in shown.lines if newest in line)
    (left,) = home.run("snapshots", "list", "--json").document["snapshots"]
    assert f"small/{left['snapshot']}" == newest
    counted = home.run("query", "SELECT count(*) AS n FROM publications_history", "--json").document["rows"]
    assert counted == [{"n": 120}]
