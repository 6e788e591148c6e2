"""Results about snapshots. They are stored beside the snapshots, which never change: `<data>/<folder>/tenant=…/snapshot=….json`."""

from __future__ import annotations

from contextlib import suppress
from typing import Generic, Protocol, TypeVar

import msgspec

from pipelines.errors import StorageError
from pipelines.store.snapshots.snapshots import DataFolder, snapshot_key


class SnapshotResult(Protocol):
    """A result about one snapshot."""

    tenant: str
    snapshot: str


R = TypeVar("R", bound=SnapshotResult)


class ResultFiles(Generic[R]):
    """The newest result of one kind for each snapshot, a JSON file each in `folder`."""

    def __init__(self, folder: str, result_type: type[R]) -> None:
        self._folder = folder
        self._type = result_type

    def save(self, data: DataFolder, result: R) -> None:
        """Replace the last result of a snapshot, unless the snapshot was pruned meanwhile."""
        key = snapshot_key(result.tenant, result.snapshot)
        if next(data.objects.below(key), None) is not None:
            data.objects.replace(self._key(key), msgspec.json.format(msgspec.json.encode(result)))

    def last(self, data: DataFolder, tenant: str, snapshot: str) -> R | None:
        """The last result of a snapshot; None where there is none, or where it cannot be read."""
        with suppress(FileNotFoundError, StorageError, msgspec.MsgspecError, UnicodeDecodeError):
            content = data.objects.read(self._key(snapshot_key(tenant, snapshot)))
            return msgspec.json.decode(content, type=self._type)
        return None

    def remove_orphans(self, data: DataFolder) -> None:
        """Remove the results of snapshots that are gone."""
        current = {self._key(key) for key in data.snapshot_keys()}
        for entry in list(data.objects.below(self._folder)):
            if entry.key not in current:
                data.objects.delete(entry.key)

    def _key(self, key_of_snapshot: str) -> str:
        return key_of_snapshot.replace("snapshots/", f"{self._folder}/", 1) + ".json"
