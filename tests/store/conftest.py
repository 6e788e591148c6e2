"""A data folder for each test, and the kinds of store that keep the same promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from pipelines.store.objects.buckets import Bucket, open_bucket
from pipelines.store.objects.folders import Folder
from pipelines.store.objects.objects import Objects
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.s3 import S3, s3_server

OWNER = "this machine"


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    """A data folder that nothing was written to yet."""
    return DataFolder(tmp_path / "library-data")


@pytest.fixture(scope="session")
def s3_of_all() -> Iterator[S3]:
    """One server for all tests of a process."""
    with s3_server() as server:
        yield server


@pytest.fixture
def s3(s3_of_all: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The server, and an environment that lets us in."""
    for name, value in s3_of_all.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "20")  # of one answer to a listing, as 1,000 are of Amazon's
    return s3_of_all


@pytest.fixture(params=["folder", "memory", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """An empty store of each kind."""
    if request.param == "folder":
        return Folder(tmp_path / "library-data")
    if request.param == "memory":
        return Bucket(MemoryStore(), "memory://here", lambda: OWNER)
    server: S3 = request.getfixturevalue("s3")
    return open_bucket(f"s3://{server.bucket()}/some/prefix", lambda: OWNER, server.environ)


@pytest.fixture
def stored(objects: Objects, tmp_path: Path) -> DataFolder:
    """Data whose objects are in a store of each kind."""
    return DataFolder(tmp_path / "library-data", objects=objects)
