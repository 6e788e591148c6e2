"""Registers the staged files of complete snapshots in Iceberg tables, one table for each staged table, and removes them again.

Files are registered where they are: only their footers are read. A snapshot is added to a table by one commit, and only if the table lacks
it, so that everything can be repeated. Tables about people stay out: whoever reads the catalogue reads all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow.parquet as pq
from filelock import FileLock
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions.parser import parse
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSchemaUpdate, AssertCurrentSchemaId, AssertTableUUID, SetCurrentSchemaUpdate
from pyiceberg.typedef import Record

from pipelines.errors import StorageError
from pipelines.records.tables.registry import PERSONAL_TABLES, TABLES
from pipelines.store.durable import storage_errors
from pipelines.store.iceberg.catalogue import CatalogueSettings, catalogue_errors, open_catalogue
from pipelines.store.iceberg.schemas import FIRST_SCHEMA, PARTITIONS, FileColumn, extended, file_columns
from pipelines.store.parquet import literal
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

REGISTERED = tuple(name for name in TABLES if name not in PERSONAL_TABLES)
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
                file = _StagedFile(self._data, snapshot, name)
                done.added += [name] if self._add(catalog, name, file) else []
                done.tables[name] = file.rows
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
                files = [_StagedFile(self._data, snapshot, name) for name in _names(snapshot)]
                if not files:  # of people alone
                    continue
                if all(self._has(catalog, file) for file in files):
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

    def _has(self, catalog: Catalog, file: _StagedFile) -> bool:
        if not catalog.table_exists(self._identifier(file.name)):
            return False
        return _is_there(catalog.load_table(self._identifier(file.name)), file)

    def _add(self, catalog: Catalog, name: str, file: _StagedFile) -> bool:
        """Add a file unless its snapshot is there. Returns whether it was added."""

        def add() -> bool:
            table = self._table(catalog, name)
            _extend_schema(catalog, table, file.columns)
            if _is_there(table, file):
                return False
            named = {"bookferry.tenant": file.tenant, "bookferry.snapshot": file.snapshot}
            with table.transaction() as change, change.update_snapshot(named).fast_append() as append:
                append.append_data_file(file.data_file(table.metadata))
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


class _StagedFile:
    """One staged file of a snapshot, as its footer describes it."""

    def __init__(self, data: DataFolder, snapshot: Snapshot, name: str) -> None:
        facts = snapshot.manifest.tables[name]
        key = f"{snapshot.key}/{facts.path}"
        address = data.objects.address_of(key)
        self.name, self.rows = name, facts.rows
        self.tenant, self.snapshot = snapshot.manifest.tenant, snapshot.manifest.snapshot
        self._address = address if "://" in address else f"file://{address}"
        self._bytes = facts.bytes
        with storage_errors(address), data.objects.open(key) as file:
            self._footer = pq.read_metadata(file)
        if self._footer.num_rows != facts.rows:
            raise StorageError(f"{address} has {self._footer.num_rows:,} rows; the manifest says {facts.rows:,}.")
        self.columns = file_columns(self._footer.schema.to_arrow_schema(), address)

    def data_file(self, table: TableMetadata) -> DataFile:
        """The file as an entry of an Iceberg table."""
        ids = {column.name: column.id for column in self.columns}
        plan = compute_statistics_plan(table.schema(), table.properties)
        for name in self._without_statistics():
            plan[ids[name]] = replace(plan[ids[name]], mode=MetricsMode(MetricModeTypes.NONE))
        statistics = data_file_statistics_from_parquet_metadata(self._footer, plan, ids)
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=self._address,
            file_format=FileFormat.PARQUET,
            partition=Record(self.tenant, self.snapshot),
            file_size_in_bytes=self._bytes,
            sort_order_id=None,
            spec_id=table.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )

    def _without_statistics(self) -> Iterator[str]:
        group = self._footer.row_group(0)
        for number in range(self._footer.num_columns):
            column: Any = group.column(number)
            if not column.is_stats_set:
                yield column.path_in_schema


def _names(snapshot: Snapshot) -> list[str]:
    return [name for name in REGISTERED if name in snapshot.manifest.tables]


def _is_there(table: Table, file: _StagedFile) -> bool:
    """Whether a table has the snapshot of a file. An Iceberg table has no file without rows."""
    return file.rows == 0 or _has_rows(
        table, f"tenant = {literal(file.tenant)} and snapshot = {literal(file.snapshot)}"
    )


def _has_rows(table: Table, rows: str) -> bool:
    """Whether a table has files with such rows, by their partitions: no file is opened."""
    return any(True for _ in table.scan(row_filter=rows, selected_fields=("tenant",)).plan_files())


def _others(tenant: str, kept: Collection[str]) -> str:
    """The rows of a library's other snapshots."""
    condition = f" and snapshot not in ({', '.join(map(literal, sorted(kept)))})" if kept else ""
    return f"tenant = {literal(tenant)}{condition}"


def _extend_schema(catalog: Catalog, table: Table, columns: list[FileColumn]) -> None:
    """Add the columns that the table lacks, with the ids of the files: PyIceberg's own `add_column` would number them itself."""
    metadata = table.metadata
    new_schema = extended(table.schema(), columns, 1 + max(schema.schema_id for schema in metadata.schemas))
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
