"""Publishing and removing in a bucket by a run that has lost its lease."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from pipelines.errors import StorageError
from pipelines.store.objects.buckets import Bucket
from pipelines.store.objects.objects import MANIFEST

KEY = "snapshots/tenant=old/snapshot=1"


class Watched(Bucket):
    """A bucket whose lease is lost after the first request of a kind."""

    def __init__(self, lost_after: str = "") -> None:
        super().__init__(MemoryStore(), "memory://here", self._held)
        self.lost_after = lost_after
        self.is_lost = False

    def _held(self) -> str:
        if self.is_lost:
            raise StorageError("lost")
        return "shared"

    def put(self, key: str, content: bytes | Path) -> bool:
        """Put an object; after a file, the lease may be lost."""
        is_new = super().put(key, content)
        self.is_lost = self.lost_after == "put" and isinstance(content, Path)
        return is_new

    def delete(self, key: str) -> None:
        """Delete an object, after which the lease may be lost."""
        super().delete(key)
        self.is_lost = self.lost_after == "delete"

    def replace(self, key: str, content: bytes | Path) -> None:
        """Write an object, after which the lease may be lost."""
        super().replace(key, content)
        self.is_lost = self.lost_after == "replace"


@pytest.fixture
def publish(tmp_path: Path) -> Callable[[Bucket], None]:
    """Publishes a folder with three files."""
    files = ["one", "two", MANIFEST]

    def run(bucket: Bucket) -> None:
        folder = tmp_path / "folder"
        folder.mkdir(exist_ok=True)
        for name in files:
            (folder / name).write_text(name)
        bucket.publish(folder, KEY, files)

    return run


def names(bucket: Bucket) -> list[str]:
    return [entry.key.rpartition("/")[2] for entry in bucket.below(KEY)]


def test_nothing_is_hidden_without_the_lease(publish: Callable[[Bucket], None]) -> None:
    bucket = Watched()
    publish(bucket)
    bucket.lost_after = "replace"
    with pytest.raises(StorageError, match="lost"):
        bucket.hide(KEY)
    assert names(bucket) == [MANIFEST, "one", "two"]


def test_a_removal_ends_with_the_lease(publish: Callable[[Bucket], None]) -> None:
    """The next owner may publish below the same key meanwhile."""
    bucket = Watched("put")
    with pytest.raises(StorageError, match="lost"):
        publish(bucket)
    bucket.is_lost, bucket.lost_after = False, "delete"
    with pytest.raises(StorageError, match="lost"):
        bucket.clear("snapshots/tenant=old")
    assert names(bucket) == ["two"]
    bucket.is_lost, bucket.lost_after = False, ""
    bucket.clear("snapshots/tenant=old")
    assert (names(bucket), bucket.unfinished("snapshots")) == ([], set())
