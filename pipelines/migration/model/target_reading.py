"""Reads what a migration compares: the target as it is now, proved like a backup, and the tables of a snapshot, wherever that is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from pipelines.backup import read
from pipelines.errors import StopError
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock
from pipelines.settings.tenant import TenantSettings
from pipelines.store.durable import storage_errors
from pipelines.store.snapshots.captures import Capture, Unreadable
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.store.snapshots.unfinished import begin_capture, resume_capture


class ResourceReading:
    """One reading of a resource of a target, under its lease. `run`: what for; what was broken off is gone on with by the same."""

    def __init__(self, data: DataFolder, chosen: TenantSettings, target: str, run: str, clock: Clock) -> None:
        self._data = data
        self._chosen = chosen
        self._target = target
        self._run = run
        self._clock = clock

    def read(
        self,
        client: LibraryClient,
        folder: Path,
        kinds: Kinds,
        on_progress: Callable[[read.Progress], None],
        resource: str = "publications",
    ) -> Path:
        """List the resource; its raw table, moved into `folder`. Raises `StopError` where it cannot be proved whole."""
        capture = self._capture(resource)
        if (facts := capture.facts.resources.get(resource)) is None:
            found = read.read_raw(
                capture, client, resource, on_progress, walks=self._chosen.walks, alone=True, kinds=kinds
            )
            if isinstance(found, Unreadable):
                raise StopError(found.message)
            facts = found
        if not facts.complete:
            shutil.rmtree(capture.path, ignore_errors=True)
            raise StopError(
                f"{resource} of '{self._target}' could not be read whole, so nobody can tell what is missing there: "
                f"{' '.join(facts.problems)} Wait until nobody works in it, then run the same command again."
            )
        raw = folder / f"target-{resource}.parquet"
        with storage_errors(raw):
            shutil.move(capture.raw_path(resource), raw)
            shutil.rmtree(capture.path)
        return raw

    def _capture(self, resource: str) -> Capture:
        """What an earlier run read of the target and was broken off, or a new one."""
        chosen, now = self._chosen, self._clock.now()
        library = {"base_url": chosen.base_url, "api": chosen.api}
        oldest = now - timedelta(hours=chosen.resume_hours)
        run, wanted = f"{self._run}-{resource}", (resource, f"to {self._run}")
        resumed = resume_capture(self._data, self._target, run, wanted, **library, begun_after=oldest)
        return resumed or begin_capture(self._data, self._target, run, wanted, **library, now=now)


def local_table(data: DataFolder, source: Snapshot, table: str, folder: Path) -> Path:
    """A table of a snapshot as a file of this machine; copied into `folder` from a bucket."""
    facts = source.manifest.tables[table]
    address = source.address_of(facts)
    if "://" not in address:
        return Path(address)
    copy = folder / f"source-{table}.parquet"
    with storage_errors(copy), data.objects.open(f"{source.key}/{facts.path}") as content, copy.open("wb") as to:
        shutil.copyfileobj(content, to)
    return copy


def files_of(data: DataFolder, source: Snapshot, folder: Path) -> str | None:
    """Where the snapshot's table of files is, on this machine."""
    if PUBLICATION_FILES.name not in source.manifest.tables:
        return None
    return str(local_table(data, source, PUBLICATION_FILES.name, folder))
