"""What differs between two snapshots, record by record: added, removed, and changed with the names of the fields.

All of it happens in DuckDB over the raw Parquet files, which spills to disk, so that a million records are no Python objects (I11).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

import duckdb
import msgspec

from pipelines.errors import ConfigurationError
from pipelines.inventory import RESOURCES
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import exactly, show
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

MOST_FIELDS = 1000
"""Names of fields that are counted; a hostile library may send a new one with every record."""


class Changed(msgspec.Struct):
    """One record that changed: the members of its JSON that are not the same."""

    id: str
    fields: list[str]


class ResourceDifferences(msgspec.Struct, kw_only=True):
    """What differs in one resource. The lists are examples; the numbers are of all."""

    only_in: str | None = None
    """The snapshot that holds the resource, where one of the two does not; then nothing is compared."""
    added: int = 0
    removed: int = 0
    changed: int = 0
    unchanged: int = 0
    rewritten: int = 0
    """Records of those unchanged whose bytes differ and no member does: members in another order, another signature in an address."""
    added_without_id: int = 0
    removed_without_id: int = 0
    fields: dict[str, int] = {}
    """Member → in how many changed records."""
    added_ids: list[str] = []
    removed_ids: list[str] = []
    changed_records: list[Changed] = []

    @property
    def different(self) -> bool:
        """Whether there is any difference."""
        counted = self.added + self.removed + self.changed + self.added_without_id + self.removed_without_id
        return self.only_in is not None or counted > 0


class Differences(msgspec.Struct, kw_only=True):
    """What differs between two snapshots."""

    a: str
    b: str
    notes: list[str]
    resources: dict[str, ResourceDifferences]

    @property
    def equal(self) -> bool:
        """Whether there is no difference."""
        return not any(one.different for one in self.resources.values())


def compare(data: DataFolder, a: Snapshot, b: Snapshot, resource: str | None = None, limit: int = 20) -> Differences:
    """What one has to do to `a` to get `b`. `limit`: examples of each kind."""
    held = {*a.manifest.resources, *b.manifest.resources}
    if resource is not None and resource not in held:
        known = ", ".join(one for one in RESOURCES if one in held)
        raise ConfigurationError(f"--resource {resource}: neither {a.name} nor {b.name} holds it; they hold {known}.")
    wanted = [one for one in (*RESOURCES, *sorted(held.difference(RESOURCES))) if one in held]
    found = {one: _compare(data, a, b, one, limit) for one in wanted if resource in (None, one)}
    return Differences(a=a.name, b=b.name, notes=_notes(a, b), resources=found)


def _notes(a: Snapshot, b: Snapshot) -> list[str]:
    notes = [
        f"{one.name} is partial: what it lacks need not be gone from the library."
        for one in (a, b)
        if not one.manifest.complete
    ]
    if a.manifest.tenant != b.manifest.tenant:
        notes.append("These are snapshots of two tenants: equal ids need not be equal records.")
    return notes


def _compare(data: DataFolder, a: Snapshot, b: Snapshot, resource: str, limit: int) -> ResourceDifferences:
    files = []
    for one, other in ((a, b), (b, a)):
        facts = one.manifest.tables.get(f"raw_{resource}")
        if facts is None:
            return ResourceDifferences(only_in=other.name)
        key = data.keys.to_read(facts.key, f"{resource} of {one.name}")
        files.append((exactly(one.address_of(facts)), key))
    with _database(data) as database, storage_errors(a.address):
        for name, (file, key) in zip(("raw_a", "raw_b"), files, strict=True):
            show(database, name, file, key)
        database.execute(resources.files("sql").joinpath("differences.sql").read_text(encoding="utf-8"))
        return _read(database, limit)


def _read(database: duckdb.DuckDBPyConnection, limit: int) -> ResourceDifferences:
    added, removed, changed, rewritten, unchanged, added_no_id, removed_no_id = _rows(database, "SELECT * FROM totals")[
        0
    ]
    return ResourceDifferences(
        added=added,
        removed=removed,
        changed=changed,
        unchanged=unchanged,
        rewritten=rewritten,
        added_without_id=added_no_id,
        removed_without_id=removed_no_id,
        fields=dict(_rows(database, "SELECT * FROM fields LIMIT ?", MOST_FIELDS)),
        added_ids=[row[0] for row in _rows(database, "SELECT id FROM added LIMIT ?", limit)],
        removed_ids=[row[0] for row in _rows(database, "SELECT id FROM removed LIMIT ?", limit)],
        changed_records=[Changed(*row) for row in _rows(database, "SELECT id, fields FROM changed LIMIT ?", limit)],
    )


def _rows(database: duckdb.DuckDBPyConnection, sql: str, *values: int) -> list[tuple[Any, ...]]:
    return database.execute(sql, values or None).fetchall()


@contextmanager
def _database(data: DataFolder) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with no more memory than this, however large the library; what it spills goes into the data folder, which has room."""
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "1GB",
        "threads": 2,
        "preserve_insertion_order": False,
        "temp_directory": str(data.path / f".spilled-{os.getpid()}"),
    }
    with storage_errors(data.path), duckdb.connect(config=limits) as database:
        data.objects.attach(database)
        yield database
