"""The commands on data in a bucket, from the first backup to the last removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Installation, Outcome
from tests.sandbox.process import SandboxProcess
from tests.store.s3 import S3, SECRET, shared_s3

__all__ = ["shared_s3"]


class BucketInstallation(Installation):
    """An installation with its data in a bucket, and its work folder beside the configuration."""

    def run(self, *arguments: str | Path, **options: Any) -> Outcome:
        """With the credentials of the bucket."""
        return super().run(*arguments, **{"variables": {**self.sign_in, **options.pop("s3")}, **options})


@pytest.mark.long
def test_backup_and_maintenance_in_a_bucket(sandbox: SandboxProcess, shared_s3: S3, tmp_path: Path) -> None:
    """Backup, list, verify, query, diff, prune and doctor; nothing of a snapshot stays on this machine."""
    installation = BucketInstallation.make(tmp_path, sandbox, "small")
    bucket = shared_s3.bucket()
    config = tmp_path / "bookferry.toml"
    config.write_text(
        config.read_text().replace('data = "library-data"', f'data = "s3://{bucket}/libraries/"\nwork = "work"')
    )

    def run(*arguments: str, status: int = 0) -> Any:
        done = installation.run(*arguments, "--json", s3=shared_s3.environ)
        assert done.status == status, done.err
        assert SECRET not in done.out + done.err
        return done.document

    assert "storage" in {one["name"] for one in run("doctor", "small")["tenants"][0]["checks"]}
    names = []
    for _ in range(2):
        document = run("backup", "small")
        assert (document["complete"], document["counts"]) == (True, {"publications": 120})
        assert document["path"] == f"s3://{bucket}/libraries/snapshots/tenant=small/snapshot={document['snapshot']}"
        names.append(f"small/{document['snapshot']}")
    assert not list((tmp_path / "work").rglob("*.parquet"))
    assert [f"small/{one['snapshot']}" for one in run("snapshots", "list")["snapshots"]] == names

    assert run("snapshots", "verify")["ok"]
    assert run("query", "SELECT count(*) AS n FROM publications_history")["rows"] == [{"n": 240}]
    assert run("snapshots", "diff", *names)["equal"]

    keys = {one["Key"] for one in shared_s3.client.list_objects_v2(Bucket=bucket)["Contents"]}
    raw = next(key for key in keys if key.endswith(f"{names[1].partition('/')[2]}/raw/publications.parquet"))
    content = bytearray(shared_s3.client.get_object(Bucket=bucket, Key=raw)["Body"].read())
    content[len(content) // 2] ^= 1
    shared_s3.client.put_object(Bucket=bucket, Key=raw, Body=bytes(content))
    assert f"s3://{bucket}/{raw}" in run("snapshots", "verify", status=6)["problems"][0]

    config.write_text(f"{config.read_text()}\n[retention]\nkeep_last = 1\n")
    assert [one["snapshot"] for one in run("snapshots", "prune")["removed"]] == names[:1]
    left = {one["Key"] for one in shared_s3.client.list_objects_v2(Bucket=bucket)["Contents"]}
    assert [key for key in left if names[0].partition("/")[2] in key] == []
    assert raw in left


def test_a_bucket_that_is_not_there(sandbox: SandboxProcess, shared_s3: S3, tmp_path: Path) -> None:
    """Exit 2, before any request to the library."""
    installation = BucketInstallation.make(tmp_path, sandbox, "small")
    config = tmp_path / "bookferry.toml"
    config.write_text(
        config.read_text().replace('data = "library-data"', 'data = "s3://no-such-bucket"\nwork = "work"')
    )
    before = sandbox.counts("small")["requests"]
    done = installation.run("backup", "small", "--json", s3=shared_s3.environ)
    done.assert_failed(2, "s3://no-such-bucket", "there is no such bucket", "Make it, or correct `data`")
    assert sandbox.counts("small")["requests"] == before
