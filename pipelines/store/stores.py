"""Opens the store that the settings name: a folder, or a bucket together with a local work folder."""

from __future__ import annotations

import os
from uuid import uuid4

from pipelines.settings.settings import Settings
from pipelines.state.opening import open_state
from pipelines.store.encryption import PersonalKeys
from pipelines.store.objects.folders import Folder
from pipelines.store.snapshots.snapshots import DataFolder


def open_data(settings: Settings, keys: PersonalKeys | None = None) -> DataFolder:
    """The data that the settings name. Nothing is read or written yet."""
    if settings.bucket is None:
        return DataFolder(settings.data, keys, state=open_state(settings))
    from pipelines.store.objects.buckets import open_bucket  # noqa: PLC0415  most data is in a folder

    folder = Folder(settings.data)
    bucket = open_bucket(settings.bucket, lambda: _owner(folder), os.environ)
    return DataFolder(settings.data, keys, bucket, open_state(settings))


def _owner(folder: Folder) -> str:
    """The name of this work folder, made on its first use. It identifies the owner of a claim in a bucket."""
    folder.put("owner", uuid4().hex.encode())
    return folder.read("owner").decode()
