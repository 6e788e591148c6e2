"""A data folder for each test, and a store of each kind, all with the same contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from obstore.store import MemoryStore

from pipelines.store.objects.buckets import Bucket, open_bucket
from pipelines.store.objects.folders import Folder
from pipelines.store.objects.objects import Objects
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.s3 import S3, shared_s3

__all__ = ["shared_s3"]

OWNER = "this machine"


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    """A data folder that does not exist yet."""
    return DataFolder(tmp_path / "library-data")


@pytest.fixture
def bucket() -> Bucket:
    """A bucket in memory."""
    return Bucket(MemoryStore(), "memory://here", lambda: OWNER)


@pytest.fixture
def s3(shared_s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server, with its credentials in the environment."""
    for name, value in shared_s3.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "20")  # per page of a listing; Amazon has 1,000
    return shared_s3


@pytest.fixture(params=["folder", "memory", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path, bucket: Bucket) -> Objects:
    """An empty store of each kind."""
    if request.param == "folder":
        return Folder(tmp_path / "library-data")
    if request.param == "memory":
        return bucket
    server: S3 = request.getfixturevalue("s3")
    return open_bucket(f"s3://{server.bucket()}/some/prefix", lambda: OWNER, server.environ)


@pytest.fixture
def stored(objects: Objects, tmp_path: Path) -> DataFolder:
    """A data folder with its objects in a store of each kind."""
    return DataFolder(tmp_path / "library-data", objects=objects)
