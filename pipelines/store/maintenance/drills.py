"""What drills found, kept beside the snapshots, which never change: `<data>/drills/tenant=…/snapshot=….json`."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from pipelines.errors import StorageError
from pipelines.store.snapshots.snapshots import DataFolder, snapshot_key

DRILLS = "drills"


class Drill(msgspec.Struct, kw_only=True):
    """What one drill found."""

    tenant: str
    snapshot: str
    ok: bool
    drilled_at: str
    seconds: float
    records: int
    """Records that were put back and read again."""
    files: int
    bytes: int
    """Of the files, read back and compared byte by byte."""
    problems: list[str]
    problems_count: int
    resources: dict[str, int] = {}
    """Resource → its records that were put back and read again."""
    left: list[str] = []
    """What no program can put back over this API, in words: no problem of the snapshot."""

    @property
    def name(self) -> str:
        """`tenant/snapshot`."""
        return f"{self.tenant}/{self.snapshot}"


def keep(data: DataFolder, result: Drill) -> None:
    """Keep the date and the result, unless the snapshot was pruned meanwhile."""
    if next(data.objects.below(snapshot_key(result.tenant, result.snapshot)), None) is not None:
        content = msgspec.json.format(msgspec.json.encode(result))
        data.objects.replace(_key(result.tenant, result.snapshot), content)


def last_drill(data: DataFolder, tenant: str, snapshot: str) -> Drill | None:
    """The last drill of a snapshot; none where there is none that can be read."""
    with suppress(FileNotFoundError, StorageError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(data.objects.read(_key(tenant, snapshot)), type=Drill)
    return None


def forget_drills(data: DataFolder) -> None:
    """Remove what is kept of snapshots that are gone."""
    there = {key.replace("snapshots/", f"{DRILLS}/", 1) + ".json" for key in data.snapshot_keys()}
    for entry in list(data.objects.below(DRILLS)):
        if entry.key not in there:
            data.objects.delete(entry.key)


def _key(tenant: str, snapshot: str) -> str:
    return f"{DRILLS}/tenant={tenant}/snapshot={snapshot}.json"
