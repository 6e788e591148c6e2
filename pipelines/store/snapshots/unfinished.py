"""Captures under way: begun by one run, and gone on with by the next one where that was broken off (I9).

All of it happens under the tenant's lease.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pipelines.errors import ConfigurationError, StorageError
from pipelines.store.durable import storage_errors
from pipelines.store.snapshots.captures import Capture, CaptureFacts
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.version import VERSION


def begin_capture(
    data: DataFolder, tenant: str, run: str, wanted: Collection[str], *, base_url: str, api: str, now: datetime
) -> Capture:
    """A new capture for `run`, which reads the resources `wanted`.

    What another run left unfinished of the same resources is removed: this one has not gone on with it.
    """
    facts = CaptureFacts(
        tenant=tenant,
        snapshot=data.free_snapshot_id(tenant, now),
        base_url=base_url,
        api=api,
        started_at=now.isoformat(timespec="seconds"),
        tool=VERSION,
        wanted=sorted(wanted),
    )
    data.objects.clear(f"snapshots/tenant={tenant}")
    for path, unfinished in _unfinished(data, tenant):
        if unfinished is None or unfinished.facts.wanted == facts.wanted or path.name == run:
            _remove(path)
    return Capture.create(_path(data, tenant, run), facts, data.keys.to_write())


def resume_capture(
    data: DataFolder, tenant: str, run: str, wanted: Collection[str], *, base_url: str, api: str, begun_after: datetime
) -> Capture | None:
    """What a run that was broken off has captured of the same resources, now for `run`; `None` where there is nothing.

    What was begun at `begun_after` or before is too old to go on with, and is removed.
    """
    found, alike = None, (sorted(wanted), base_url, api, VERSION, data.keys.to_write())
    for path, unfinished in _unfinished(data, tenant):
        if unfinished is None or datetime.fromisoformat(unfinished.facts.started_at) <= begun_after:
            _remove(path)
            continue
        facts = unfinished.facts
        if (facts.wanted, facts.base_url, facts.api, facts.tool, unfinished.key) == alike:
            found = path
    if found is None:
        return None
    with storage_errors(found):
        found.rename(_path(data, tenant, run))
    return data.capture(tenant, run)


def _unfinished(data: DataFolder, tenant: str) -> Iterator[tuple[Path, Capture | None]]:
    """The folders in which captures were begun and not published; without a capture where it cannot be read."""
    for path in sorted(_path(data, tenant, "").glob("*")):
        try:
            yield path, Capture.open(path, data.keys)
        except (StorageError, ConfigurationError):  # damaged, or of a key that is not there any more
            yield path, None


def _path(data: DataFolder, tenant: str, run: str) -> Path:
    return data.work_path / f"tenant={tenant}" / run


def _remove(folder: Path) -> None:
    with storage_errors(folder), suppress(FileNotFoundError):
        shutil.rmtree(folder)
