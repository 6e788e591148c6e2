"""What `status` reads of a bucket: one listing, and what was not read before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.store.objects.buckets import Bucket, open_bucket
from pipelines.store.objects.listed import CACHE, as_listed
from pipelines.store.objects.objects import read_all
from tests.store.s3 import S3
from tests.store.s3_proxy import Proxy, s3_proxy

FOLDERS = ("snapshots/tenant=old", "snapshots/tenant=new", "verifications")
MANIFEST = "snapshots/tenant=old/snapshot=1/manifest.json"


@pytest.fixture
def proxy(s3: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A store whose requests are counted."""
    with s3_proxy(s3) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.s3.endpoint)
        yield proxy


@pytest.fixture
def bucket(proxy: Proxy) -> Bucket:
    """Two manifests with tables beside them, one result, and a plan."""
    bucket = open_bucket(f"s3://{proxy.s3.bucket()}/nights", lambda: "me", proxy.s3.environ)
    for number in (1, 2):
        for name in ("manifest.json", "publications.parquet"):
            bucket.put(f"snapshots/tenant=old/snapshot={number}/{name}", f"{name} {number}".encode())
    bucket.put("verifications/tenant=old/snapshot=1.json", b"good")
    bucket.put("plans/one/plan.json", b"a plan")
    return bucket


def listed(bucket: Bucket, work: Path, proxy: Proxy) -> tuple[Bucket, int]:
    """A listing as another process makes it, and how many objects it read."""
    proxy.requests.clear()
    listing = as_listed(bucket, FOLDERS, work)
    return listing, sum("list-type" not in path for _method, path in proxy.requests)


def test_what_was_read_before_is_not_read_again(bucket: Bucket, proxy: Proxy, tmp_path: Path) -> None:
    """The answers are the bucket's own, and cost no further request."""
    assert listed(bucket, tmp_path, proxy)[1] == 3
    listing, reads = listed(bucket, tmp_path, proxy)
    assert (reads, len(proxy.requests)) == (0, len(FOLDERS))
    proxy.requests.clear()
    assert listing.folders("snapshots/tenant=old") == ["snapshot=1", "snapshot=2"]
    assert listing.folders("snapshots/tenant=new") == []
    assert listing.read(MANIFEST) == b"manifest.json 1"
    assert [entry.key for entry in listing.below("verifications/tenant=old")] == [
        "verifications/tenant=old/snapshot=1.json"
    ]
    assert [*read_all(listing, [MANIFEST, "snapshots/tenant=old/snapshot=3/manifest.json"])] == [
        b"manifest.json 1",
        None,
    ]
    with pytest.raises(FileNotFoundError):
        listing.read("snapshots/tenant=new/snapshot=1/manifest.json")
    assert proxy.requests == []


def test_what_changed_is_seen(bucket: Bucket, proxy: Proxy, tmp_path: Path) -> None:
    """A removed snapshot, a manifest that was damaged since, and a newer result."""
    listed(bucket, tmp_path, proxy)
    bucket.delete(MANIFEST)
    bucket.replace("snapshots/tenant=old/snapshot=2/manifest.json", b"{")
    bucket.replace("verifications/tenant=old/snapshot=1.json", b"bad")
    listing, reads = listed(bucket, tmp_path, proxy)
    assert reads == 2
    assert [*read_all(listing, [MANIFEST, "snapshots/tenant=old/snapshot=2/manifest.json"])] == [None, b"{"]
    assert listing.read("verifications/tenant=old/snapshot=1.json") == b"bad"
    assert listed(bucket, tmp_path, proxy)[1] == 0


@pytest.mark.parametrize("content", [b"", b"no msgpack", None])
def test_a_cache_that_cannot_be_used_is_none(
    bucket: Bucket, proxy: Proxy, tmp_path: Path, content: bytes | None
) -> None:
    """It is damaged, or its place cannot be written."""
    work = tmp_path / "work"
    if content is None:
        work.write_text("a file")
    else:
        work.mkdir()
        (work / CACHE).write_bytes(content)
    assert listed(bucket, work, proxy)[0].read(MANIFEST) == b"manifest.json 1"
