"""A snapshot's life in every kind of store: published, listed, read, verified, compared, removed (I5), with a kill at any point."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from obstore.store import MemoryStore

from pipelines.errors import ConfigurationError, StorageError, TenantBusyError
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.store.catalogue import rebuild_catalogue
from pipelines.store.maintenance.retention import prune
from pipelines.store.maintenance.verification import keys_to_verify, verify
from pipelines.store.objects import claims
from pipelines.store.objects.buckets import Bucket
from pipelines.store.objects.claims import CLAIMS
from pipelines.store.objects.objects import Objects
from pipelines.store.snapshots.publishing import publish
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot, snapshot_key
from pipelines.store.snapshots.unfinished import open_capture
from tests.store.conftest import OWNER
from tests.store.snapshot_factory import (
    SNAPSHOT_ID,
    STARTED_AT,
    finished_capture,
    make_snapshot,
    new_capture,
)

NEXT = "20261121T020000Z"


def all_keys(objects: Objects) -> list[str]:
    return [entry.key for folder in ("files", "snapshots", CLAIMS, "verifications") for entry in objects.below(folder)]


def pruned(data: DataFolder, **policy: int) -> Any:
    return prune(data, [], RetentionSettings(**policy), ZoneInfo("UTC"), tenant=None, dry_run=False)


def test_damage_is_reported(data: DataFolder) -> None:
    """A flipped bit in the middle of any object, a shortened or missing object, and an unknown one."""
    snapshot = make_snapshot(data)
    keys = [entry.key for entry in data.objects.below(snapshot.key)]
    assert len(keys) == 1 + len(snapshot.manifest.tables)
    for key in keys:
        content = data.objects.read(key)
        damaged = bytearray(content)
        damaged[len(damaged) // 2] ^= 4
        for harmed in (bytes(damaged), content[:-1], None):
            data.objects.delete(key)
            if harmed is not None:
                data.objects.put(key, harmed)
            problems = "\n".join(verify(data, snapshot.key, now=STARTED_AT).problems)
            assert data.objects.address_of(key) in problems
        data.objects.put(key, content)
    data.objects.put(f"{snapshot.key}/raw/stranger", b"?")
    assert "raw/stranger" in verify(data, snapshot.key, now=STARTED_AT).problems[0]


class Killed(BaseException):
    """A kill: nothing after it happens."""


class DyingStore:
    """A store that kills the process before the given call, and counts the calls."""

    def __init__(self, bucket: Bucket, before: int = 0, owner: str = OWNER) -> None:
        self.owner = owner
        self.bucket = bucket
        self.left = before
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        if name in {"publish", "hide", "clear"}:  # through the counting methods
            return partial(getattr(claims, name), self, lambda: self.owner)
        method = getattr(self.bucket, name)
        if name not in {"put", "replace", "read", "size", "below", "folders", "delete"}:
            return method

        def counted(*arguments: Any) -> Any:
            self.calls += 1
            if self.calls == self.left:
                raise Killed
            return method(*arguments)

        return counted


def assert_only_whole_ones(data: DataFolder, names: Iterator[str] | list[str]) -> None:
    """After any kill, readers see these snapshots, and verification finds no damage."""
    assert [snapshot.name for snapshot in data.snapshots()] == list(names)
    assert all(verify(data, key, now=STARTED_AT).ok for key in keys_to_verify(data, None))


class TestKills:
    """Kill -9 before any request to a bucket."""

    def test_while_publishing(self, bucket: Bucket, tmp_path: Path) -> None:
        """The next attempt publishes the same capture, and nothing is left over."""
        good = make_snapshot(DataFolder(tmp_path / "before", objects=bucket), now=STARTED_AT - timedelta(days=1))
        contents: set[str] = set()
        for death in range(1, 100):
            path = tmp_path / str(death)
            dying = DyingStore(bucket, death)
            capture = finished_capture(DataFolder(path, objects=bucket))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(capture, "save", lambda: None)
                try:
                    publish(DataFolder(path, objects=dying), capture, STARTED_AT)  # type: ignore[arg-type]
                except Killed:
                    names = [snapshot.name for snapshot in DataFolder(path, objects=bucket).snapshots()]
                    assert_only_whole_ones(DataFolder(path, objects=bucket), names)
                    data = DataFolder(path, objects=bucket)
                    published = publish(data, open_capture(data, "old", "run"), STARTED_AT)
                else:
                    break
            assert [snapshot.name for snapshot in data.snapshots()] == [good.name, published.name]
            assert verify(data, published.key, now=STARTED_AT).ok
            assert not data.work_path.joinpath("tenant=old", "run").exists()
            bucket.clear("snapshots/tenant=old")
            assert list(bucket.below(CLAIMS)) == []
            contents.add(str(all_keys(bucket)))
            self._forget(bucket, published)
        assert death > 8, "the kills happen during a publication"
        assert len(contents) == 1, "after every kill, the bucket ends with the same content"

    def _forget(self, bucket: Bucket, snapshot: Snapshot) -> None:
        for entry in list(bucket.below(snapshot.key)):
            bucket.delete(entry.key)

    @pytest.mark.long
    def test_while_removing(self, bucket: Bucket, tmp_path: Path) -> None:
        """Each snapshot is complete or invisible; the next removal finishes the work."""
        for day in range(3):
            make_snapshot(DataFolder(tmp_path, objects=bucket), now=STARTED_AT + timedelta(days=day))
        before = {key: bucket.read(key) for key in all_keys(bucket)}
        for death in range(1, 200, 4):
            bucket = Bucket(MemoryStore(), bucket.address, lambda: OWNER)
            for key, content in before.items():
                bucket.put(key, content)
            data = DataFolder(tmp_path, objects=bucket)
            dying = DataFolder(tmp_path, objects=DyingStore(bucket, death))  # type: ignore[arg-type]
            try:
                pruned(dying, keep_last=1)
            except Killed:
                for snapshot in data.snapshots():
                    assert verify(data, snapshot.key, now=STARTED_AT).ok
                assert all(verify(data, key, now=STARTED_AT).ok for key in keys_to_verify(data, None))
                rebuild_catalogue(data)
                pruned(data, keep_last=1)
            else:
                break
            assert [snapshot.name for snapshot in data.snapshots()] == ["old/20261122T020000Z"]
            assert [key for key in all_keys(bucket) if "20261122" not in key] == []
        assert death > 20, "the kills happen during a removal"


class TestTwoMachines:
    """Two machines on one bucket do not harm each other's snapshots."""

    def test_an_upload_of_another_machine_is_left_alone(self, bucket: Bucket, tmp_path: Path) -> None:
        """An upload in progress is invisible, not damage, and not removed; nobody else writes into it."""
        first_machine = DataFolder(tmp_path / "here", objects=bucket)
        second_machine = DataFolder(
            tmp_path / "there", objects=Bucket(bucket._store, bucket.address, lambda: "another")
        )
        first_capture, second_capture = finished_capture(first_machine), finished_capture(second_machine)
        with pytest.raises(Killed):
            publish(
                DataFolder(tmp_path / "there", objects=DyingStore(second_machine.objects, 8, "another")),
                second_capture,
                STARTED_AT,
            )  # type: ignore[arg-type]
        half = all_keys(bucket)
        assert half
        assert first_machine.snapshots() == []
        with pytest.raises(ConfigurationError, match="no snapshot"):
            keys_to_verify(first_machine, "old")
        bucket.clear("snapshots/tenant=old")
        with pytest.raises(TenantBusyError, match="another machine"):
            publish(first_machine, first_capture, STARTED_AT)
        assert all_keys(bucket) == half
        assert new_capture(first_machine, run="next").facts.snapshot != SNAPSHOT_ID

    def test_an_existing_object_is_not_replaced(self, bucket: Bucket, tmp_path: Path) -> None:
        """Whoever wrote it."""
        data = DataFolder(tmp_path, objects=bucket)
        capture = finished_capture(data)
        bucket.put(f"{snapshot_key('old', SNAPSHOT_ID)}/publications.parquet", b"mine")
        with pytest.raises(StorageError, match="is there already"):
            publish(data, capture, STARTED_AT)
        assert bucket.read(f"{snapshot_key('old', SNAPSHOT_ID)}/publications.parquet") == b"mine"

    def test_a_store_that_loses_objects_publishes_nothing(self, bucket: Bucket, tmp_path: Path) -> None:
        """The manifest is put only when everything else is listed in its size."""

        class LosingBucket(Bucket):
            def put(self, key: str, content: bytes | Path) -> bool:
                return True if key.endswith("publications.parquet") else super().put(key, content)

        data = DataFolder(tmp_path, objects=LosingBucket(bucket._store, bucket.address, lambda: OWNER))
        with pytest.raises(StorageError, match="Nothing was published"):
            publish(data, finished_capture(data), STARTED_AT)
        assert data.snapshots() == []
