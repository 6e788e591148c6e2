"""Compares two snapshots record by record: added, removed, and changed with the names of the fields.

DuckDB compares the raw Parquet files and spills to disk, so that a million records never become Python objects (I11).
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import duckdb
import msgspec

from pipelines.errors import ConfigurationError
from pipelines.inventory import RESOURCES, parent_of
from pipelines.store.parquet import create_view, escaped
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot, reading

MOST_FIELDS = 1000
"""Field names that are counted; a hostile library may send a new one with every record."""


class ChangedRecord(msgspec.Struct):
    """One changed record, and the members of its JSON that differ."""

    id: str
    fields: list[str]


class ResourceDifferences(msgspec.Struct, kw_only=True):
    """The differences in one resource. The lists are examples; the numbers are complete."""

    only_in: str | None = None
    """The only snapshot with this resource. Nothing is compared then."""
    added: int = 0
    removed: int = 0
    changed: int = 0
    unchanged: int = 0
    rewritten: int = 0
    """Unchanged records with other bytes: a new order of members, or a new signature in an address."""
    added_without_id: int = 0
    removed_without_id: int = 0
    fields: dict[str, int] = {}
    """Member → number of changed records."""
    added_ids: list[str] = []
    removed_ids: list[str] = []
    changed_records: list[ChangedRecord] = []

    @property
    def different(self) -> bool:
        """Whether there is any difference."""
        counted = self.added + self.removed + self.changed + self.added_without_id + self.removed_without_id
        return self.only_in is not None or counted > 0


class Differences(msgspec.Struct, kw_only=True):
    """The differences between two snapshots."""

    a: str
    b: str
    notes: list[str]
    resources: dict[str, ResourceDifferences]

    @property
    def equal(self) -> bool:
        """Whether there is no difference."""
        return not any(differences.different for differences in self.resources.values())


def compare(data: DataFolder, a: Snapshot, b: Snapshot, resource: str | None = None, limit: int = 20) -> Differences:
    """Returns the changes from `a` to `b`. `limit`: examples of each kind."""
    present = {*a.manifest.resources, *b.manifest.resources}
    if resource is not None and resource not in present:
        names = ", ".join(name for name in RESOURCES if name in present)
        raise ConfigurationError(f"--resource {resource}: neither {a.name} nor {b.name} has it; they have {names}.")
    ordered = [name for name in (*RESOURCES, *sorted(present.difference(RESOURCES))) if name in present]
    differences = {name: _compare(data, a, b, name, limit) for name in ordered if resource in (None, name)}
    return Differences(a=a.name, b=b.name, notes=_notes(a, b), resources=differences)


def _notes(a: Snapshot, b: Snapshot) -> list[str]:
    notes = [
        f"{snapshot.name} is partial: records that it lacks may still be in the library."
        for snapshot in (a, b)
        if not snapshot.manifest.complete
    ]
    if a.manifest.tenant != b.manifest.tenant:
        notes.append("These are snapshots of two tenants: equal ids may be different records.")
    return notes


def _compare(data: DataFolder, a: Snapshot, b: Snapshot, resource: str, limit: int) -> ResourceDifferences:
    files = []
    for snapshot, opposite in ((a, b), (b, a)):
        facts = snapshot.manifest.tables.get(f"raw_{resource}")
        if facts is None:
            return ResourceDifferences(only_in=opposite.name)
        key = data.keys.to_read(facts.key, f"{resource} of {snapshot.name}")
        files.append((escaped(snapshot.sound_address_of(facts)), key))
    with data.duckdb("1GB", 2) as database, reading(a, b):
        for name, (file, key) in zip(("raw_a", "raw_b"), files, strict=True):
            nested = parent_of(resource)
            create_view(database, f"{name}_file" if nested else name, file, key)
            if nested:  # an entry is the same in the list of the same record only
                entry = "owner || '/' || coalesce(CAST(id AS VARCHAR), sha256) AS id"
                database.execute(f"CREATE VIEW {name} AS SELECT * REPLACE ({entry}) FROM {name}_file")  # noqa: S608  names of ours
        database.execute(resources.files("sql").joinpath("differences.sql").read_text(encoding="utf-8"))
        return _read(database, limit)


def _read(database: duckdb.DuckDBPyConnection, limit: int) -> ResourceDifferences:
    totals = database.execute("SELECT * FROM totals")
    names, [counts] = [column[0] for column in totals.description], totals.fetchall()
    return ResourceDifferences(
        **dict(zip(names, counts, strict=True)),
        fields=dict(_rows(database, "SELECT * FROM fields LIMIT ?", MOST_FIELDS)),
        added_ids=[row[0] for row in _rows(database, "SELECT id FROM added LIMIT ?", limit)],
        removed_ids=[row[0] for row in _rows(database, "SELECT id FROM removed LIMIT ?", limit)],
        changed_records=[
            ChangedRecord(*row) for row in _rows(database, "SELECT id, fields FROM changed LIMIT ?", limit)
        ],
    )


def _rows(database: duckdb.DuckDBPyConnection, sql: str, most: int) -> list[tuple[Any, ...]]:
    return database.execute(sql, [most]).fetchall()
