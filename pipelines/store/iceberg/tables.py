"""Registers the staged files of complete snapshots in Iceberg tables, one table for each staged table, and removes them again.

Files are registered where they are: only their footers are read. A snapshot is added to a table by one commit, and only if the table lacks
it, so that everything can be repeated. Tables about people stay out: whoever reads the catalogue reads all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import msgspec
from filelock import FileLock
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions.parser import parse
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update import AddSchemaUpdate, AssertCurrentSchemaId, AssertTableUUID, SetCurrentSchemaUpdate
from pyiceberg.typedef import Record

from pipelines.errors import StorageError
from pipelines.records.tables.field_ids import SNAPSHOT_IDS
from pipelines.records.tables.registry import TABLES, is_personal
from pipelines.store.iceberg.catalogue import CatalogueSettings, catalogue_errors, open_catalogue
from pipelines.store.iceberg.schemas import FIRST_SCHEMA, PARTITIONS, extended, file_schema
from pipelines.store.parquet import literal
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

REGISTERED = tuple(name for name in TABLES if not is_personal(name))
"""The staged tables that are Iceberg tables."""

PROPERTIES = {
    "commit.retry.num-retries": "0",  # PyIceberg's own retry would append a second time what another process has appended
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}
"""Properties of our tables."""

TRIES = 10
"""Commits that may fail because another process committed first. After each the table is read again."""


class Registration(msgspec.Struct, kw_only=True):
    """What was registered of one snapshot."""

    tenant: str
    snapshot: str
    catalogue: str
    namespace: str
    tables: dict[str, int]
    """Table → rows that it has of the snapshot now."""
    added: list[str]
    """The tables that lacked the snapshot."""
    seconds: float

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.tables.values())


class IcebergTables:
    """The Iceberg tables of a data folder. `again`: the command that repeats what failed, for messages."""

    def __init__(self, settings: CatalogueSettings, data: DataFolder) -> None:
        self._settings = settings
        self._data = data

    @property
    def place(self) -> str:
        """The catalogue's address without user and password."""
        return self._settings.place

    def register(self, snapshot: Snapshot) -> Registration:
        """Register the files of one complete snapshot that the tables lack."""
        manifest, begun = snapshot.manifest, time.monotonic()
        done = Registration(
            tenant=manifest.tenant,
            snapshot=manifest.snapshot,
            catalogue=self.place,
            namespace=self._settings.namespace,
            tables={},
            added=[],
            seconds=0,
        )
        with self._session(f"Registering {snapshot.name} in", f"bookferry stage {manifest.tenant}") as catalog:
            for name in _names(snapshot):
                done.added += [name] if self._add(catalog, snapshot, name) else []
                done.tables[name] = manifest.tables[name].rows
        done.seconds = round(time.monotonic() - begun, 3)
        return done

    def missing(self, snapshots: Collection[Snapshot]) -> list[Snapshot]:
        """The newest of a library's complete snapshots, up to the first one that is registered; oldest first."""
        unregistered: list[Snapshot] = []
        if not snapshots:
            return unregistered
        tenant = next(iter(snapshots)).manifest.tenant
        with self._session("Looking at", f"bookferry stage {tenant}") as catalog:
            for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.manifest.snapshot, reverse=True):
                names = _names(snapshot)
                if not names:  # of people alone
                    continue
                if all(self._has(catalog, snapshot, name) for name in names):
                    break
                unregistered.insert(0, snapshot)
        return unregistered

    def keep_only(self, kept: Mapping[str, Collection[str]]) -> list[str]:
        """Remove the other snapshots of these libraries from all tables, by one commit each. Returns the tables that had some.

        `kept`: library → its snapshots that stay. Iceberg's own history of the removed files goes, too: they will be deleted.
        """
        if not kept:
            return []
        with self._session("Removing snapshots from", "bookferry snapshots prune") as catalog:
            return [name for name in REGISTERED if self._keep_only(catalog, name, kept)]

    @contextmanager
    def _session(self, trying: str, again: str) -> Iterator[Catalog]:
        """The open catalogue. One process of this machine at a time changes it; others are told apart by their commits."""
        self._data.prepare()
        with (
            FileLock(self._data.path / ".iceberg.lock"),
            catalogue_errors(trying, self._settings, again),
            open_catalogue(self._settings, self._data.path) as catalog,
        ):
            yield catalog

    def _identifier(self, name: str) -> tuple[str, str]:
        return self._settings.namespace, name

    def _table(self, catalog: Catalog, name: str) -> Table:
        """The table, which is created if it is missing."""
        identifier, warehouse = self._identifier(name), self._settings.properties.get("warehouse", "")
        with suppress(NoSuchTableError):
            return catalog.load_table(identifier)
        with suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(self._settings.namespace)
        place = (
            f"{warehouse}/{self._settings.namespace}/{name}" if "://" in warehouse else None
        )  # a REST catalogue takes a name
        properties = {**PROPERTIES, "comment": TABLES[name].comment}
        with suppress(TableAlreadyExistsError):
            return catalog.create_table(identifier, FIRST_SCHEMA, place, PARTITIONS, properties=properties)
        return catalog.load_table(identifier)

    def _has(self, catalog: Catalog, snapshot: Snapshot, name: str) -> bool:
        with suppress(NoSuchTableError):
            return _is_there(catalog.load_table(self._identifier(name)), snapshot, name)
        return False

    def _add(self, catalog: Catalog, snapshot: Snapshot, name: str) -> bool:
        """Add the file of a table unless its snapshot is there. Returns whether it was added."""
        with self._data.open_table(snapshot, name) as file:
            of_file = file_schema(file.schema_arrow, snapshot.address_of(snapshot.manifest.tables[name]))

        def add() -> bool:
            table = self._table(catalog, name)
            _extend_schema(catalog, table, of_file)
            if _is_there(table, snapshot, name):
                return False
            named = {"bookferry.tenant": snapshot.manifest.tenant, "bookferry.snapshot": snapshot.manifest.snapshot}
            with table.transaction() as change, change.update_snapshot(named).fast_append() as append:
                append.append_data_file(_data_file(snapshot, name))
            return True

        return _committed(name, add)

    def _keep_only(self, catalog: Catalog, name: str, kept: Mapping[str, Collection[str]]) -> bool:
        removed = " or ".join(f"({_others(tenant, snapshots)})" for tenant, snapshots in sorted(kept.items()))

        def remove() -> bool:
            try:
                table = catalog.load_table(self._identifier(name))
            except NoSuchTableError:
                return False
            if not _has_rows(table, removed):
                return False
            with table.transaction() as change, change.update_snapshot().delete() as delete:
                delete.delete_by_predicate(parse(removed))
            table.maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
            return True

        return _committed(name, remove)


def _committed(name: str, change: Callable[[], bool]) -> bool:
    """Returns what `change` returns. Where somebody else commits meanwhile, it looks again."""
    for _ in range(TRIES):
        with suppress(CommitFailedException):
            return change()
    raise StorageError(f"Others change the Iceberg table {name} all the time. Run the same command again later.")


def _data_file(snapshot: Snapshot, name: str) -> DataFile:
    """The file of a table as an entry of an Iceberg table, with the bounds of its partition alone: PyIceberg removes whole files by them.

    Other columns of a whole library let no reader leave a file out. PyIceberg's own `add_files` would take the bounds of a column for those
    of another one, whose name it has in the table.
    """
    manifest = snapshot.manifest
    facts = manifest.tables[name]
    address = snapshot.address_of(facts)
    bounds = {SNAPSHOT_IDS["tenant"]: manifest.tenant.encode(), SNAPSHOT_IDS["snapshot"]: manifest.snapshot.encode()}
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=address if "://" in address else f"file://{address}",
        file_format=FileFormat.PARQUET,
        partition=Record(manifest.tenant, manifest.snapshot),
        record_count=facts.rows,
        file_size_in_bytes=facts.bytes,
        value_counts=dict.fromkeys(bounds, facts.rows),
        null_value_counts=dict.fromkeys(bounds, 0),
        lower_bounds=bounds,
        upper_bounds=bounds,
        spec_id=PARTITIONS.spec_id,
    )


def _names(snapshot: Snapshot) -> list[str]:
    return [name for name in REGISTERED if name in snapshot.manifest.tables]


def _is_there(table: Table, snapshot: Snapshot, name: str) -> bool:
    """Whether a table has the file of a snapshot. An Iceberg table has no file without rows."""
    manifest = snapshot.manifest
    return manifest.tables[name].rows == 0 or _has_rows(
        table, f"tenant = {literal(manifest.tenant)} and snapshot = {literal(manifest.snapshot)}"
    )


def _has_rows(table: Table, rows: str) -> bool:
    """Whether a table has files with such rows, by their partitions: no file is opened."""
    return any(True for _ in table.scan(row_filter=rows, selected_fields=("tenant",)).plan_files())


def _others(tenant: str, kept: Collection[str]) -> str:
    """The rows of a library's other snapshots."""
    condition = f" and snapshot not in ({', '.join(map(literal, sorted(kept)))})" if kept else ""
    return f"tenant = {literal(tenant)}{condition}"


def _extend_schema(catalog: Catalog, table: Table, of_file: Schema) -> None:
    """Add the columns that the table lacks, with the ids of the files: PyIceberg's own `add_column` would number them itself."""
    metadata = table.metadata
    new_schema = extended(table.schema(), of_file, 1 + max(schema.schema_id for schema in metadata.schemas))
    if new_schema is None:
        return
    current = {"current-schema-id": metadata.current_schema_id}  # a later one of somebody else must not be lost
    catalog.commit_table(
        table,
        (AssertTableUUID.model_validate({"uuid": metadata.table_uuid}), AssertCurrentSchemaId.model_validate(current)),
        (
            AddSchemaUpdate.model_validate({"schema": new_schema}),
            SetCurrentSchemaUpdate.model_validate({"schema-id": -1}),
        ),
    )
    table.refresh()
