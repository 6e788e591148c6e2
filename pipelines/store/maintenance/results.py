"""Results about snapshots, such as drills. They are stored beside these, which never change: `<data>/<folder>/tenant=…/snapshot=….json`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from pipelines.errors import StorageError
from pipelines.humanize import MOST_LISTED
from pipelines.store.objects.objects import read_all
from pipelines.store.snapshots.snapshots import DataFolder, snapshot_key


class SnapshotResult(msgspec.Struct, kw_only=True):
    """A result about one snapshot."""

    tenant: str
    snapshot: str
    ok: bool

    @property
    def name(self) -> str:
        """`tenant/snapshot`."""
        return f"{self.tenant}/{self.snapshot}"


_OWNER = re.compile(r"tenant=[^/]+(/snapshot=\w+)?")
"""The snapshot or the tenant that a result or a report belongs to."""

R = TypeVar("R", bound=SnapshotResult)


class ResultFiles(Generic[R]):
    """The newest result of one kind for each snapshot, a JSON file each in `folder`."""

    def __init__(self, folder: str, result_type: type[R]) -> None:
        self.folder = folder
        self._decoder = msgspec.json.Decoder(result_type)

    def save(self, data: DataFolder, result: R) -> None:
        """Replace the last result of a snapshot, unless the snapshot was pruned meanwhile."""
        key = snapshot_key(result.tenant, result.snapshot)
        if next(data.objects.below(key), None) is not None:
            data.objects.replace(self._key(key), msgspec.json.format(msgspec.json.encode(result)))

    def last(self, data: DataFolder, tenant: str, snapshot: str) -> R | None:
        """The last result of a snapshot; None where there is none, or where it cannot be read."""
        with suppress(FileNotFoundError, StorageError):
            return self._decoded(data.objects.read(self._key(snapshot_key(tenant, snapshot))))
        return None

    def all(self, data: DataFolder, tenant: str) -> Iterator[R]:
        """Yields the last result of each snapshot of a tenant, in the order of the snapshots; without those that cannot be read."""
        keys = (entry.key for entry in data.objects.below(f"{self.folder}/tenant={tenant}"))
        for content in read_all(data.objects, keys):
            if content is not None and (result := self._decoded(content)) is not None:
                yield result

    def _decoded(self, content: bytes) -> R | None:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            return self._decoder.decode(content)
        return None

    def _key(self, key_of_snapshot: str) -> str:
        return key_of_snapshot.replace("snapshots/", f"{self.folder}/", 1) + ".json"


def remove_orphans(data: DataFolder, folder: str) -> None:
    """Remove what belongs to snapshots that are gone, and what belongs to a tenant without any."""
    entries = list(data.objects.below(folder))  # first: the snapshot of each of them is published by now
    current = {name for key in data.snapshot_keys() for name in (key, key.rpartition("/")[0])}
    for entry in entries:
        owner = _OWNER.match(entry.key.removeprefix(f"{folder}/"))
        if owner is not None and f"snapshots/{owner[0]}" not in current:
            data.objects.delete(entry.key)


class SnapshotVerification(SnapshotResult, kw_only=True):
    """The result of verifying one snapshot."""

    problems: list[str] = []
    problems_count: int = 0
    notes: list[str] = []
    """What could not be checked, although no damage is known."""
    verified_at: str
    files: int = 0
    """Files of the snapshot that were read completely."""
    bytes: int = 0
    """Bytes read."""
    blobs: int = 0
    """Blobs that the records name, and that exist in the right size."""
    blobs_read: int = 0
    read_data: str

    def problem(self, text: str) -> None:
        """Note a problem. The first ones are listed, all are counted."""
        self.ok = False
        self.problems_count += 1
        if len(self.problems) < MOST_LISTED:
            self.problems.append(text)


class DrillResult(SnapshotResult, kw_only=True):
    """The result of one drill. It is `ok` where all that was restored came back equal, and nothing could not be restored but `lost`."""

    drilled_at: str
    seconds: float
    records: int
    """Records that were restored and read again."""
    files: int
    bytes: int
    """Size of the files, which were read back and compared byte by byte."""
    problems: list[str]
    """With what was left out, which comes last."""
    problems_count: int
    resources: dict[str, int] = {}
    """Resource → its records that were restored and read again."""
    lost: str = ""
    """What was left out, in a few words: what the API does not take, or nobody knows what it refers to. No problem of the snapshot."""
    locations: int = 0
    """Locations that the drill entered by itself, as a person has to before a restore: the API creates none."""


VERIFICATIONS = ResultFiles("verifications", SnapshotVerification)
"""The last verification of each snapshot."""

DRILLS = ResultFiles("drills", DrillResult)
"""The last drill of each snapshot."""
