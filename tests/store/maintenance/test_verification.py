"""`snapshots verify`: a flipped bit in any file is found and named; the result is stored with its date."""

from __future__ import annotations

import hashlib
import os
import shutil
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigurationError
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.durable import sha256_of
from pipelines.store.maintenance.results import VERIFICATIONS
from pipelines.store.maintenance.retention import prune
from pipelines.store.maintenance.verification import (
    Part,
    keys_to_verify,
    verify,
)
from pipelines.store.objects.objects import MANIFEST
from pipelines.store.snapshots.manifest import encode_manifest
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot, blob_key, snapshot_key
from tests.store.snapshot_factory import SNAPSHOT_ID, STARTED_AT, make_snapshot, publication_payloads

TOMORROW = STARTED_AT + timedelta(days=1)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """One snapshot. Tests copy it before they damage it."""
    return make_snapshot(DataFolder(tmp_path_factory.mktemp("published") / "data"), publication_payloads(40))


@pytest.fixture
def snapshot(published: Snapshot, data: DataFolder) -> Snapshot:
    """A copy of it in a new data folder."""
    folder = data.path / snapshot_key("old", SNAPSHOT_ID)
    shutil.copytree(published.path, folder)
    return data.find_snapshot("old")


def problems(data: DataFolder, snapshot: Snapshot) -> list[str]:
    result = verify(data, snapshot.key, now=STARTED_AT)
    assert result.ok is not bool(result.problems)
    return result.problems


def flip(path: Path, byte: int, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[byte] ^= 1 << bit
    path.write_bytes(content)


@pytest.mark.long
def test_a_flipped_bit_anywhere_in_the_manifest(data: DataFolder, snapshot: Snapshot) -> None:
    """The manifest has its own checksum: no number and no letter changes unnoticed."""
    path = snapshot.path / MANIFEST
    for byte in range(0, path.stat().st_size, 7):
        flip(path, byte, byte % 7)
        messages = problems(data, snapshot)
        assert any(str(path) in problem for problem in messages), (byte, messages)
        flip(path, byte, byte % 7)


def test_counts_that_contradict_each_other(data: DataFolder, snapshot: Snapshot) -> None:
    """Contradictions are found even under a valid checksum (I4)."""
    manifest = snapshot.manifest
    manifest.resources["publications"].x_total = 41
    manifest.tables["raw_publications"].rows = 39
    manifest.tables["publications"].path = "../../../elsewhere.parquet"
    (snapshot.path / MANIFEST).write_bytes(encode_manifest(manifest))
    text = "\n".join(problems(data, snapshot))
    for words in (
        "40 records listed, 39 kept, 40 staged",
        "X-Total 41",
        "has 40 rows; the manifest says 39",
        "cannot be the name",
    ):
        assert words in text


class TestBlobs:
    """Blobs that the records refer to."""

    @pytest.fixture
    def blobs(self, data: DataFolder, snapshot: Snapshot) -> list[str]:
        """Sixty blobs in the snapshot's `publication_files`."""
        contents = [f"content {number}".encode() for number in range(60)]
        names = [hashlib.sha256(content).hexdigest() for content in contents]
        for name, content in zip(names, contents, strict=True):
            path = data.path / blob_key(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        sizes = [len(content) for content in contents]
        write_files(snapshot, [*names, names[0], None], [*sizes, sizes[0], None])
        return names

    def test_a_part_each_day_proves_them_all_in_as_many_days(
        self, data: DataFolder, snapshot: Snapshot, blobs: list[str]
    ) -> None:
        """A flipped bit is found on exactly one of the days; one that is lost or short on each. By default every blob is read."""
        whole = verify(data, snapshot.key, now=STARTED_AT)
        assert (whole.ok, whole.blobs, whole.blobs_read) == (True, len(blobs), 60)
        flip((data.path / blob_key(blobs[7])), 3, 1)
        nights = [verify(data, snapshot.key, Part(1, 7), now=STARTED_AT + timedelta(days=day)) for day in range(7)]
        assert sum(night.blobs_read for night in nights) == 60
        assert max(night.blobs_read for night in nights) < 30
        (messages,) = [night.problems for night in nights if not night.ok]
        assert str(data.path / blob_key(blobs[7])) in messages[0]
        (data.path / blob_key(blobs[1])).unlink()
        os.truncate(data.path / blob_key(blobs[2]), 2)
        unread = "\n".join(verify(data, snapshot.key, Part(1, 9999), now=STARTED_AT).problems)
        assert f"{data.path / blob_key(blobs[1])} is missing" in unread
        assert f"{data.path / blob_key(blobs[2])} has 2 bytes" in unread

    def test_a_name_that_is_no_hash_is_not_used_as_a_path(self, data: DataFolder, snapshot: Snapshot) -> None:
        """No path leaves its folder (I13)."""
        write_files(snapshot, ["../../../../etc/passwd"], [1])
        assert "is not a SHA-256" in problems(data, snapshot)[0]


def write_files(snapshot: Snapshot, names: list[str | None], sizes: list[int | None]) -> None:
    """Write a `publication_files` table with these blobs into a snapshot, and a matching manifest."""
    facts = snapshot.manifest.tables["publication_files"]
    path = snapshot.path / facts.path
    pq.write_table(pa.table({"sha256": pa.array(names, pa.string()), "bytes": pa.array(sizes, pa.int64())}), path)
    facts.rows, facts.bytes, facts.sha256 = len(names), path.stat().st_size, sha256_of(path)
    (snapshot.path / MANIFEST).write_bytes(encode_manifest(snapshot.manifest))


@pytest.mark.parametrize("text", ["", "1", "0/7", "8/7", "1/0", "-1/7", "1/7x", "١/٧"])
def test_a_part_that_is_none(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--read-data"):
        Part.parse(text)


class TestTargets:
    """Without a name: the newest complete snapshot of every tenant."""

    def test_an_unreadable_snapshot_is_never_skipped(self, data: DataFolder) -> None:
        """Nor does it hide the previous one."""
        good = make_snapshot(data)
        torn = make_snapshot(data, now=TOMORROW)
        (torn.path / MANIFEST).write_text("{")
        assert keys_to_verify(data, None) == keys_to_verify(data, "old") == [torn.key, good.key]
        assert "damaged" in problems(data, torn)[0]

    def test_nothing_to_verify(self, data: DataFolder) -> None:
        """Exit 2, never "good"."""
        with pytest.raises(ConfigurationError, match="no snapshot 'nobody'"):
            keys_to_verify(data, "nobody")


def test_the_result_is_stored_until_the_snapshot_is_gone(data: DataFolder) -> None:
    """It is beside the snapshots, which never change."""
    snapshot = make_snapshot(data)
    assert VERIFICATIONS.last(data, "old", SNAPSHOT_ID) is None
    result = verify(data, snapshot.key, now=TOMORROW)
    VERIFICATIONS.save(data, result)
    assert VERIFICATIONS.last(data, "old", SNAPSHOT_ID) == result
    assert problems(data, snapshot) == []
    make_snapshot(data, now=TOMORROW)
    prune(data, [], RetentionSettings(keep_last=1), ZoneInfo("UTC"), tenant=None, dry_run=False)
    assert VERIFICATIONS.last(data, "old", SNAPSHOT_ID) is None
    VERIFICATIONS.save(data, result)
    assert VERIFICATIONS.last(data, "old", SNAPSHOT_ID) is None
