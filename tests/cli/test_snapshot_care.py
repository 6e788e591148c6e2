"""The care of snapshots, in a folder and in a bucket: `snapshots list`, `verify`, `diff`, `prune`, and a query over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.store.objects.buckets import open_bucket
from pipelines.store.objects.folders import Folder
from pipelines.store.objects.objects import Objects
from tests.cli.command import Installation
from tests.sandbox.process import SandboxProcess
from tests.store.conftest import OWNER, s3, shared_s3
from tests.store.s3 import S3

__all__ = ["s3", "shared_s3"]  # fixtures

UNREAD = ["users", "hard_copies", "locations", "collections", "authorities", "tasks"]
"""What version 2 has no list of."""


def in_bucket(config: Path, address: str) -> None:
    """Have the data in a bucket, and the work folder beside the configuration."""
    config.write_text(config.read_text().replace('data = "library-data"', f'data = "{address}"\nwork = "work"'))


@dataclass(frozen=True)
class Care(Installation):
    """An installation whose objects the test can read and damage, wherever they are."""

    objects: Objects

    def back_up(self) -> str:
        """Make a complete backup. Returns the name of the snapshot."""
        document = self.answer("backup", "small")
        assert document["path"] == self.objects.address_of(f"snapshots/tenant=small/snapshot={document['snapshot']}")
        return f"small/{document['snapshot']}"

    def kept(self) -> dict[str, int | None]:
        """Every object of a snapshot, and its size."""
        return {entry.key: entry.size for entry in self.objects.below("snapshots")}


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.long)])
def care(request: pytest.FixtureRequest, sandbox: SandboxProcess, s3: S3, tmp_path: Path) -> Care:
    Installation.make(tmp_path, sandbox, "small")
    objects: Objects = Folder(tmp_path / "library-data")
    if request.param == "bucket":
        address = f"s3://{s3.bucket()}/libraries"
        objects = open_bucket(address, lambda: OWNER, s3.environ)
        in_bucket(tmp_path / "bookferry.toml", f"{address}/")
    return Care(tmp_path, sandbox, "small", objects)


def test_from_the_first_backup_to_the_last_removal(care: Care) -> None:
    """What is verified is not changed; damage is named by the list and by `status`; of what is in a bucket nothing stays here."""
    config, sandbox = care.folder / "bookferry.toml", care.sandbox
    first, newest = care.back_up(), care.back_up()
    assert not list((care.folder / "work").rglob("*.parquet"))
    assert care.answer("query", "SELECT count(*) AS n FROM publications_history")["rows"] == [{"n": 240}]

    names = "users, hard copies, locations, collections, authorities, tasks."
    assert care.printed("snapshots", "list")[-1] == f"Not read in {newest} and 1 more: {names}"
    assert f"Not read in small: {names}" in care.printed("status")
    shown = care.printed("snapshots", "show", newest)
    assert [line.split("│")[0].strip() for line in shown if "not read" in line] == UNREAD
    [library] = care.answer("status")["libraries"]
    assert [entry["not_read"] for entry in (*care.answer("snapshots", "list")["snapshots"], library["backup"])] == [
        UNREAD
    ] * 3

    before = care.kept()
    verified = care.answer("snapshots", "verify")
    assert (verified["ok"], verified["problems"]) == (True, [])
    assert [f"small/{entry['snapshot']}" for entry in verified["snapshots"]] == [newest]
    listed = {
        f"small/{entry['snapshot']}": entry["last_verified"] for entry in care.answer("snapshots", "list")["snapshots"]
    }
    assert (listed[first], listed[newest]["ok"]) == (None, True)
    part = care.printed("snapshots", "verify", first, "--read-data", "1/7")
    assert (part[0], part[-1].split(",")[0]) == (f"{first}  intact", "Good: 1 snapshot as published; 7 files")
    assert care.kept() == before

    key = f"snapshots/tenant=small/snapshot={newest.partition('/')[2]}/raw/publications.parquet"
    content = care.objects.read(key)
    middle = len(content) // 2
    care.objects.replace(key, content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :])
    damaged = care.answer("snapshots", "verify", "small", status=6)
    assert (damaged["ok"], care.objects.address_of(key) in damaged["problems"][0]) == (False, True)
    assert care.printed("snapshots", "verify", "small", status=6)[-1].split(";")[0] == "Not good: 1 problem"
    assert "DAMAGED" in care.printed("snapshots", "list")[-2]
    [library] = care.answer("status", status=3)["libraries"]
    assert [problem["code"] for problem in library["problems"]] == ["damaged"]
    care.objects.replace(key, content)
    care.printed("snapshots", "verify")
    care.printed("status")

    compared = care.answer("snapshots", "diff", first, newest)
    assert (compared["equal"], compared["resources"]["publications"]["unchanged"]) == (True, 120)
    assert care.printed("snapshots", "diff", first, newest)[-1] == f"No differences between {first} and {newest}."
    care.run("snapshots", "diff", first, newest, "--resource", "users").assert_failed(2, "--resource users")
    config.write_text(config.read_text().replace(sandbox.base_url("small"), sandbox.base_url("bare")))
    emptied = care.back_up()
    assert "0 added, 120 removed, 0 changed" in care.printed("snapshots", "diff", first, "small", status=6)[-1]

    config.write_text(f"{config.read_text()}\n[retention]\nkeep_last = 1\n")
    before = care.kept()
    removed = [entry["snapshot"] for entry in care.answer("snapshots", "prune", "--dry-run")["removed"]]
    assert (removed, care.kept()) == ([first, newest], before)
    pruned = care.printed("snapshots", "prune", "small")
    assert pruned[-1].startswith("Removed 2 snapshots")
    assert "last" in next(line for line in pruned if emptied in line)
    assert {name.split("/")[2] for name in care.kept()} == {f"snapshot={emptied.partition('/')[2]}"}
    assert care.answer("query", "SELECT count(*) AS n FROM publications_history")["rows"] == [{"n": 0}]


def test_a_bucket_that_is_not_there(sandbox: SandboxProcess, s3: S3, tmp_path: Path) -> None:
    """Exit 2, before any request to the library."""
    installation = Installation.make(tmp_path, sandbox, "small")
    in_bucket(tmp_path / "bookferry.toml", "s3://no-such-bucket")
    before = sandbox.counts("small")["requests"]
    outcome = installation.backup("--json")
    outcome.assert_failed(2, "s3://no-such-bucket", "there is no such bucket", "Make it, or correct `data`")
    assert sandbox.counts("small")["requests"] == before
