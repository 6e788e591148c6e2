"""What changed from night to night: a small file for each library beside its reports, so that no report reads ninety snapshots.

Each report adds its night. A snapshot that is pruned leaves its numbers here. Only complete snapshots are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec

from pipelines.errors import StorageError
from pipelines.store.maintenance.reports import history_key
from pipelines.store.snapshots.manifest import SNAPSHOT_FORMAT, Manifest
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

MOST_NIGHTS = 400
"""Nights that the file keeps; the page shows those of the last `SHOWN_DAYS`."""

SHOWN_DAYS = 90

A_WEEK = timedelta(days=6, hours=12), timedelta(days=14)
"""How much older the snapshot of last week is, at least and at most. A backup may begin a little earlier than a week before."""


class Changes(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What changed since an earlier snapshot. Issues are unknown (None) where that one has no report of this version."""

    since: str
    """Id of the earlier snapshot."""
    added: int
    changed: int
    removed: int
    new: int | None = None
    """Issues that it did not have."""
    solved: int | None = None
    """Issues that it had."""
    new_by_rules: int = 0
    """New issues of records that did not change: the rules did."""
    solved_by_rules: int = 0


class Night(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One snapshot in the history of a library."""

    snapshot: str
    publications: int
    issues: int | None = None
    """Open issues."""
    last_night: Changes | None = None
    last_week: Changes | None = None

    @property
    def moment(self) -> datetime:
        """When it was begun."""
        return moment_of(self.snapshot)


class History(msgspec.Struct, kw_only=True):
    """history.json: the nights of one library, oldest first."""

    base_url: str
    api: str
    nights: list[Night] = []


def moment_of(snapshot: str) -> datetime:
    """The moment of a snapshot's id."""
    return datetime.strptime(snapshot, SNAPSHOT_FORMAT).replace(tzinfo=UTC)


def earlier_snapshots(data: DataFolder, snapshot: Snapshot) -> list[Snapshot]:
    """The complete snapshots of the same library with publications before this one, oldest first."""
    manifest = snapshot.manifest
    return [
        past
        for past in data.snapshots(manifest.tenant)
        if past.manifest.complete and past.holds_publications and _is_before(past.manifest, manifest)
    ]


def _is_before(manifest: Manifest, other: Manifest) -> bool:
    return manifest.snapshot < other.snapshot and (manifest.base_url, manifest.api) == (other.base_url, other.api)


def of_last_week(earlier: Sequence[Snapshot], snapshot: Snapshot) -> Snapshot | None:
    """The newest of some earlier snapshots that is about a week older, if there is one."""
    least, most = A_WEEK
    began = moment_of(snapshot.manifest.snapshot)
    fit = [past for past in earlier if least <= began - moment_of(past.manifest.snapshot) <= most]
    return fit[-1] if fit else None


def remember(data: DataFolder, snapshot: Snapshot, night: Night) -> None:
    """Add a night to the history of its library, in place of an earlier report of the same snapshot."""
    history = _read(data, snapshot.manifest)
    nights = {past.snapshot: past for past in history.nights} | {night.snapshot: night}
    history.nights = [nights[name] for name in sorted(nights)][-MOST_NIGHTS:]
    data.objects.replace(history_key(snapshot.manifest.tenant), msgspec.json.encode(history))


def recent_nights(data: DataFolder, snapshot: Snapshot, night: Night) -> list[Night]:
    """The nights of the last `SHOWN_DAYS` that have a report, up to this one, oldest first."""
    first = night.moment - timedelta(days=SHOWN_DAYS)
    nights = {past.snapshot: past for past in _read(data, snapshot.manifest).nights} | {night.snapshot: night}
    return [nights[name] for name in sorted(nights) if name <= night.snapshot and nights[name].moment > first]


def _read(data: DataFolder, manifest: Manifest) -> History:
    """The history of a library; an empty one where there is none, where it is damaged, or where it is that of another library."""
    with suppress(FileNotFoundError, StorageError, msgspec.MsgspecError, UnicodeDecodeError):
        history = _HISTORY_DECODER.decode(data.objects.read(history_key(manifest.tenant)))
        if (history.base_url, history.api) == (manifest.base_url, manifest.api):
            return history
    return History(base_url=manifest.base_url, api=manifest.api)


_HISTORY_DECODER = msgspec.json.Decoder(History)
