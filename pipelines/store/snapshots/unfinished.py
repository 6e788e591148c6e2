"""Captures in progress: a run begins one, and the next run continues it after an interruption (I9).

All functions need the tenant's lease.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from pipelines.errors import ConfigurationError, StorageError
from pipelines.store.durable import storage_errors
from pipelines.store.snapshots.capture_copies import (
    copied_captures,
    copy_key,
    fetch_copy,
    is_marked,
    remove_copies,
    remove_leftovers,
)
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import CaptureFacts
from pipelines.store.snapshots.snapshots import DataFolder
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
            _give_up(data, path, unfinished)
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
            _give_up(data, path, unfinished)
            continue
        facts = unfinished.facts
        if (facts.wanted, facts.base_url, facts.api, facts.tool, unfinished.key) == current and unfinished.is_begun:
            resumable = path
    if resumable is None:
        return None
    with storage_errors(resumable):
        resumable.rename(_path(data, tenant, run))
    return open_capture(data, tenant, run)


def _fetch_copies(data: DataFolder, tenant: str) -> None:
    """Make the local captures those of the copies: another machine may have begun, continued, published or given up one.

    What this machine wrote last stays as it is, and so does what it began before the state was shared. Another local capture without a copy
    goes: its snapshot was published or given up elsewhere, or it is less than a minute old.
    """
    is_published = partial(data.is_published, tenant)
    remove_leftovers(data.objects, tenant, is_published)
    copies = {copied.facts.snapshot: copied for copied in copied_captures(data.objects, tenant)}
    for path, local in _unfinished(data, tenant):
        copied = copies.get(local.facts.snapshot) if local is not None else None
        if copied is not None and copied.writer == data.machine():
            del copies[copied.facts.snapshot]
        elif copied is not None or local is None or is_marked(path) or is_published(local.facts.snapshot):
            _remove(path)
    for copied in copies.values():
        fetch_copy(data.objects, copied, _path(data, tenant, f"copy-{copied.facts.snapshot}"))


def _unfinished(data: DataFolder, tenant: str) -> Iterator[tuple[Path, Capture | None]]:
    """Yields the folders of unpublished captures, each with its capture, or with None where that cannot be read."""
    for path in sorted(_path(data, tenant, "").glob("*")):
        try:
            yield path, Capture.open(path, data.keys)
        except (StorageError, ConfigurationError):  # damaged, or its key is missing
            yield path, None


def _path(data: DataFolder, tenant: str, run: str) -> Path:
    return data.work_path / f"tenant={tenant}" / run


def _give_up(data: DataFolder, folder: Path, capture: Capture | None) -> None:
    """Remove a capture, and its copy."""
    if capture is not None and data.is_shared:
        remove_copies(data.objects, copy_key(capture.facts))
    _remove(folder)


def _remove(folder: Path) -> None:
    with storage_errors(folder), suppress(FileNotFoundError):
        shutil.rmtree(folder)
