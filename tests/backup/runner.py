"""Backups of version 2 of a library, with a configuration in a folder of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.backup.flow import Backup
from pipelines.service.clock import Clock
from pipelines.store.snapshots.manifest import Manifest
from pipelines.store.snapshots.snapshots import Snapshot
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Script, ScriptedServer

CONFIG = """
data = "library-data"
[tenants.old]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000
{tenant_lines}
"""


def take_steps(
    library: Backup, tenant: str, run: str, resources: Iterable[str] = ("publications",), *, learn: bool = False
) -> Snapshot:
    """All steps of a backup. `learn`: asks for the service's own description, too."""
    resources = [*resources]
    for resource in resources:
        library.read_raw(tenant, run, resource)
    for resource in resources:
        library.stage(tenant, run, resource)
    if "publications" in resources:
        library.fetch_files(tenant, run)
    if learn:
        library.learn(tenant, run)
    return library.publish(tenant, run)


def ids_in(snapshot: Snapshot, table: str = "raw/publications") -> list[int]:
    """The ids in a table of a snapshot."""
    ids: list[int] = pq.read_table(snapshot.path / f"{table}.parquet").column("id").to_pylist()
    return ids


class BackupRunner:
    """Writes a configuration and runs backups with it. `tenant_lines`: further lines for the tenant."""

    def __init__(self, folder: Path, base_url: str, tenant_lines: str = "", clock: Clock | None = None) -> None:
        self.config = folder / "bookferry.toml"
        self.config.write_text(CONFIG.format(base_url=base_url, tenant_lines=tenant_lines))
        self._clock = clock

    def library(self, **options: Any) -> Backup:
        """A new `Backup`, as each run has one."""
        settings = Backup.open(self.config).settings
        return Backup(settings, clock=self._clock, **options)

    def back_up(self, run: str = "run", **options: Any) -> Snapshot:
        """Run all steps of a backup."""
        with self.library(**options) as library:
            return take_steps(library, "old", run)

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.config.parent / "library-data"

    def blobs(self) -> dict[str, bytes]:
        """SHA-256 → content of every file in the folder of blobs."""
        folder = self.data / "files" / "sha256"
        return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

    def raw_rows(self, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Rows of the raw table of publications."""
        rows: list[dict[str, Any]] = pq.read_table(snapshot.path / "raw" / "publications.parquet").to_pylist()
        return rows


@contextmanager
def backups_of(
    folder: Path, serve: Script, clock: Clock | None = None
) -> Iterator[tuple[BackupRunner, ScriptedServer]]:
    """Backups of a scripted library without its files; waits end at once."""
    with ScriptedServer(serve) as server:
        yield BackupRunner(folder, server.url, "files = false", clock or ManualClock()), server


def notes_on_reading(manifest: Manifest) -> list[str]:
    """Returns the notes without those about the future of version 2, which every backup of it has in its last weeks."""
    return [
        note
        for note in manifest.notes
        if not note.startswith(("NEW: ", "The service announces ", "Version 2 of the API "))
    ]
