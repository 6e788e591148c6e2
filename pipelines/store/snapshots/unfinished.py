"""Captures in progress: a run begins one, and the next run continues it after an interruption (I9).

All functions need the tenant's lease.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path

from pipelines.errors import ConfigurationError, StorageError
from pipelines.store.durable import storage_errors
from pipelines.store.objects.objects import is_published
from pipelines.store.snapshots.capture_copies import (
    CAPTURES,
    copies_key,
    fence_of,
    fetch_copy,
    newest_copies,
    remove_copies,
)
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
    if data.is_shared:
        _fetch_copies(data, tenant)
    capture = resume_capture(data, run, facts) or begin_capture(data, run, facts)
    if data.is_shared:
        _remove_other_copies(data, tenant)
    return capture


def begin_capture(data: DataFolder, run: str, facts: CaptureFacts) -> Capture:
    """Create a capture for `run`. Unfinished ones of the same resources are removed: this run did not continue them."""
    data.objects.clear(f"snapshots/tenant={facts.tenant}")
    for path, unfinished in _unfinished(data, facts.tenant):
        if unfinished is None or unfinished.facts.wanted == facts.wanted or path.name == run:
            _remove(path)
    return Capture.create(_path(data, facts.tenant, run), facts, data.keys.to_write())


RESUME_HOURS = 12
"""Hours after its beginning within which an interrupted capture is continued."""

_same_run = attrgetter("wanted", "base_url", "api", "tool")


def resume_capture(data: DataFolder, run: str, new: CaptureFacts) -> Capture | None:
    """Hand the unfinished capture of an interrupted run to `run`, which would begin a `new` one. Returns None where there is none.

    Captures that began `RESUME_HOURS` before are too old to continue, and are removed. One without a single record is not continued: its
    name would say that the library was read sooner than it was.
    """
    oldest = datetime.fromisoformat(new.started_at) - timedelta(hours=RESUME_HOURS)
    resumable = None
    for path, unfinished in _unfinished(data, new.tenant):
        if unfinished is None or datetime.fromisoformat(unfinished.facts.started_at) <= oldest:
            _remove(path)
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
    newest = newest_copies(data, f"{CAPTURES}/tenant={tenant}")
    for path, local in _unfinished(data, tenant):
        if local is not None and _is_newest(data, local.facts, newest):
            newest.pop(copies_key(tenant, local.facts.snapshot), None)
        else:
            _remove(path)
    for key, copy in newest.items():
        fetch_copy(data.objects, copy, _path(data, tenant, f"copy-{key.rpartition('=')[2]}"))


def _is_newest(data: DataFolder, local: CaptureFacts, newest: Mapping[str, str]) -> bool:
    """Whether no other machine has continued or published a local capture. `newest`: its copy, if there is one, and others."""
    key = copies_key(local.tenant, local.snapshot)
    is_newest = local.fence >= fence_of(newest[key]) if key in newest else local.fence == 0
    return is_newest and not is_published(data.objects, snapshot_key(local.tenant, local.snapshot))


def _remove_other_copies(data: DataFolder, tenant: str) -> None:
    """Remove the copies of captures that are no longer: published, given up, or removed by a process that was killed meanwhile."""
    folder = f"{CAPTURES}/tenant={tenant}"
    local = {copies_key(tenant, capture.facts.snapshot) for _, capture in _unfinished(data, tenant) if capture}
    for name in data.objects.folders(folder):
        if f"{folder}/{name}" not in local:
            remove_copies(data.objects, f"{folder}/{name}")


def _unfinished(data: DataFolder, tenant: str) -> Iterator[tuple[Path, Capture | None]]:
    """Yields the folders of unpublished captures, each with its capture, or with None where that cannot be read."""
    for path in sorted(_path(data, tenant, "").glob("*")):
        try:
            yield path, Capture.open(path, data.keys)
        except (StorageError, ConfigurationError):  # damaged, or its key is missing
            yield path, None


def _path(data: DataFolder, tenant: str, run: str) -> Path:
    return data.work_path / f"tenant={tenant}" / run


def _remove(folder: Path) -> None:
    with storage_errors(folder), suppress(FileNotFoundError):
        shutil.rmtree(folder)
