"""Captures in progress: a run begins one, and the next run continues it after an interruption (I9).

All functions need the tenant's lease.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from pipelines.errors import ConfigurationError, StorageError
from pipelines.store.durable import storage_errors
from pipelines.store.snapshots.capture_copies import CAPTURES, copies_key, fetch_copy, newest_copies, remove_copies
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import CaptureFacts
from pipelines.store.snapshots.snapshots import DataFolder, snapshot_key
from pipelines.version import VERSION


def open_capture(data: DataFolder, tenant: str, run: str) -> Capture:
    """The capture of `run`. Raises as `Capture.open` does."""
    return Capture.open(_path(data, tenant, run), data.keys)


def begin_capture(
    data: DataFolder, tenant: str, run: str, resources: Collection[str], *, base_url: str, api: str, now: datetime
) -> Capture:
    """Create a capture for `run`, which reads `resources`.

    Unfinished captures of the same resources are removed: this run did not continue them.
    """
    facts = CaptureFacts(
        tenant=tenant,
        snapshot=data.free_snapshot_id(tenant, now),
        base_url=base_url,
        api=api,
        started_at=now.isoformat(timespec="seconds"),
        tool=VERSION,
        wanted=sorted(resources),
    )
    data.objects.clear(f"snapshots/tenant={tenant}")
    for path, unfinished in _unfinished(data, tenant):
        if unfinished is None or unfinished.facts.wanted == facts.wanted or path.name == run:
            _give_up(data, path)
    return Capture.create(_path(data, tenant, run), facts, data.keys.to_write())


RESUME_HOURS = 12
"""Hours after its beginning within which an interrupted capture is continued."""


def resume_capture(
    data: DataFolder, tenant: str, run: str, resources: Collection[str], *, base_url: str, api: str, now: datetime
) -> Capture | None:
    """Hand the unfinished capture of an interrupted run, of the same resources, to `run`. Returns None where there is none.

    Captures that began `RESUME_HOURS` before `now` are too old to continue, and are removed. One without a single record is not continued:
    its name would say that the library was read sooner than it was.
    """
    if data.is_shared:
        _fetch_copies(data, tenant)
    oldest = now - timedelta(hours=RESUME_HOURS)
    resumable, current = None, (sorted(resources), base_url, api, VERSION, data.keys.to_write())
    for path, unfinished in _unfinished(data, tenant):
        if unfinished is None or datetime.fromisoformat(unfinished.facts.started_at) <= oldest:
            _give_up(data, path)
            continue
        facts = unfinished.facts
        if (facts.wanted, facts.base_url, facts.api, facts.tool, unfinished.key) == current and unfinished.is_begun:
            resumable = path
    if resumable is None:
        return None
    with storage_errors(resumable):
        resumable.rename(_path(data, tenant, run))
    return open_capture(data, tenant, run)


def continue_capture(
    data: DataFolder, tenant: str, run: str, resources: Collection[str], *, base_url: str, api: str, now: datetime
) -> Capture:
    """The unfinished capture of an interrupted run, else a new one."""
    resumed = resume_capture(data, tenant, run, resources, base_url=base_url, api=api, now=now)
    return resumed or begin_capture(data, tenant, run, resources, base_url=base_url, api=api, now=now)


def _fetch_copies(data: DataFolder, tenant: str) -> None:
    """Make the local captures those of the copies: another machine may have begun, continued, published or given up one.

    A capture that no other machine has continued stays as it is, and so does what this one began before the state was shared. Another one
    without a copy goes: its snapshot was published or given up elsewhere, or it is less than a minute old.
    """
    folder = f"{CAPTURES}/tenant={tenant}"
    newest = newest_copies(data, folder)
    for name in data.objects.folders(folder):
        if f"{folder}/{name}" not in newest:  # published, or what a removal left that was killed
            remove_copies(data.objects, f"{folder}/{name}")
    for path, local in _unfinished(data, tenant):
        own, key = _copy_of(path), copies_key(tenant, local.facts.snapshot) if local is not None else ""
        is_kept = own >= newest[key] if key in newest else not own
        if local is not None and is_kept and not data.is_published(snapshot_key(tenant, local.facts.snapshot)):
            newest.pop(key, None)
        else:
            _remove(path)
    for key, copy in newest.items():
        fetch_copy(data.objects, copy, _path(data, tenant, f"copy-{key.rpartition('=')[2]}"))


def _unfinished(data: DataFolder, tenant: str) -> Iterator[tuple[Path, Capture | None]]:
    """Yields the folders of unpublished captures, each with its capture, or with None where that cannot be read."""
    for path in sorted(_path(data, tenant, "").glob("*")):
        try:
            yield path, Capture.open(path, data.keys)
        except (StorageError, ConfigurationError):  # damaged, or its key is missing
            yield path, None


def _path(data: DataFolder, tenant: str, run: str) -> Path:
    return data.work_path / f"tenant={tenant}" / run


def _copy_of(folder: Path) -> str:
    """The key of the copy that a local capture was made from, or that was made of it last; empty where there is none."""
    with storage_errors(folder), suppress(FileNotFoundError):
        return (folder / Capture.COPY).read_text()
    return ""


def _give_up(data: DataFolder, folder: Path) -> None:
    """Remove a capture, and its copies."""
    if data.is_shared and (copy := _copy_of(folder)):
        remove_copies(data.objects, copy.rpartition("/")[0])
    _remove(folder)


def _remove(folder: Path) -> None:
    with storage_errors(folder), suppress(FileNotFoundError):
        shutil.rmtree(folder)
