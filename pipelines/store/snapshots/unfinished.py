"""Captures in progress: a run begins one, and the next run continues it after an interruption (I9).

All functions need the tenant's lease.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from operator import attrgetter
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


def continue_capture(
    data: DataFolder, tenant: str, run: str, resources: Collection[str], *, base_url: str, api: str, now: datetime
) -> Capture:
    """The unfinished capture of an interrupted run of the same resources, else a new one."""
    facts = CaptureFacts(
        tenant=tenant,
        snapshot=data.free_snapshot_id(tenant, now),
        base_url=base_url,
        api=api,
        started_at=now.isoformat(timespec="seconds"),
        tool=VERSION,
        wanted=sorted(resources),
    )
    return resume_capture(data, run, facts) or begin_capture(data, run, facts)


def begin_capture(data: DataFolder, run: str, facts: CaptureFacts) -> Capture:
    """Create a capture for `run`. Unfinished ones of the same resources are removed: this run did not continue them."""
    data.objects.clear(f"snapshots/tenant={facts.tenant}")
    for path, unfinished in _unfinished(data, facts.tenant):
        if unfinished is None or unfinished.facts.wanted == facts.wanted or path.name == run:
            _give_up(data, path)
    return Capture.create(_path(data, facts.tenant, run), facts, data.keys.to_write())


RESUME_HOURS = 12
"""Hours after its beginning within which an interrupted capture is continued."""

_same_run = attrgetter("wanted", "base_url", "api", "tool")


def resume_capture(data: DataFolder, run: str, new: CaptureFacts) -> Capture | None:
    """Hand the unfinished capture of an interrupted run to `run`, which would begin a `new` one. Returns None where there is none.

    Captures that began `RESUME_HOURS` before are too old to continue, and are removed. One without a single record is not continued: its
    name would say that the library was read sooner than it was.
    """
    if data.is_shared:
        _fetch_copies(data, new.tenant)
    oldest = datetime.fromisoformat(new.started_at) - timedelta(hours=RESUME_HOURS)
    resumable = None
    for path, unfinished in _unfinished(data, new.tenant):
        if unfinished is None or datetime.fromisoformat(unfinished.facts.started_at) <= oldest:
            _give_up(data, path)
            continue
        is_same = _same_run(unfinished.facts) == _same_run(new) and unfinished.key == data.keys.to_write()
        if is_same and unfinished.is_begun:
            resumable = path
    if resumable is None:
        return None
    with storage_errors(resumable):
        resumable.rename(_path(data, new.tenant, run))
    return open_capture(data, new.tenant, run)


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
