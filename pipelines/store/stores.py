"""Opens the store that the settings name: a folder, or a bucket together with a local work folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from uuid import uuid4

from pipelines.settings.settings import Settings
from pipelines.state.opening import open_state
from pipelines.store.encryption import personal_keys
from pipelines.store.objects.folders import Folder
from pipelines.store.snapshots.snapshots import DataFolder


def open_data(settings: Settings) -> DataFolder:
    """The data that the settings name, with the keys to its personal part. Nothing is read or written yet."""
    keys = personal_keys(settings)
    if settings.bucket is None:
        return DataFolder(settings.data, keys, state=open_state(settings))
    from pipelines.store.objects.buckets import open_bucket  # noqa: PLC0415  most data is in a folder

    folder, state = Folder(settings.data), open_state(settings)

    def owner() -> str:
        """All machines that share a state are one owner: its leases say which of them may work. Raises where this run has lost one."""
        state.renew_leases()
        return _machine(folder) if state.is_own else state.identity

    return DataFolder(settings.data, keys, open_bucket(settings.bucket, owner, os.environ), state)


def as_listed(data: DataFolder, folders: Sequence[str]) -> DataFolder:
    """What the data has in these folders, as one listing shows it. In a bucket, each of many small reads would take its time."""
    if isinstance(data.objects, Folder):
        return data
    from pipelines.store.objects import buckets, listed  # noqa: PLC0415  as above

    assert isinstance(data.objects, buckets.Bucket)  # noqa: S101  there is no third kind
    return DataFolder(data.path, data.keys, listed.as_listed(data.objects, folders, data.path), data.state)


def _machine(folder: Folder) -> str:
    """The name of this work folder, made on its first use. It identifies the owner of a claim in a bucket."""
    folder.put("owner", uuid4().hex.encode())
    return folder.read("owner").decode()
