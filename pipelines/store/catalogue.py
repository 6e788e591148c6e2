"""`library.duckdb`: views over the snapshots, for any DuckDB client.

`<table>` has the newest complete snapshot of each tenant with this table, `<table>_history` has every complete one, `snapshots` has the
manifests, and `tables_read` says which tables each of them has. `<table>_as_of(tenant, instant)` is what was known at an instant.
`<table>_deleted` has the records that are missing in the next complete snapshot; a partial snapshot says nothing about deletions. The file
holds no data, only views.

The views lack the personal columns, and querying encrypted tables fails with a message. `open_catalogue(personal=True)` gives both.

The file is made anew and swapped in after each backup, so that open connections keep their views.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path
from types import MappingProxyType

import duckdb
import pyarrow as pa
from filelock import FileLock

from pipelines.errors import ConfigurationError, StorageError
from pipelines.inventory import LIST_PATHS, parent_of
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.observed_columns import united, with_columns
from pipelines.records.tables.registry import MADE_FROM, NESTED, STAGED, TABLES, is_personal, raw_table, tables_of
from pipelines.records.tables.shared_columns import SNAPSHOT_AT, SNAPSHOT_COLUMNS, VIEW_COLUMNS
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKeys
from pipelines.store.parquet import connect_duckdb, escaped, literal, quoted, read_parquet, register_key
from pipelines.store.snapshots.manifest import SNAPSHOT_FORMAT
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

_log = logging.getLogger(__name__)

_BOOLEAN, _TIME = pa.bool_(), pa.timestamp("us", "UTC")

SNAPSHOTS = Table(
    "snapshots",
    "One row for each snapshot in the data folder.",
    ("tenant", "snapshot"),
    (
        *SNAPSHOT_COLUMNS,
        Column("complete", _BOOLEAN, "Whether it is proved complete; only complete ones appear in the other views."),
        Column("started_at", _TIME, "When its first record was read."),
        Column("finished_at", _TIME, "When the snapshot was published."),
        Column("api", pa.string(), "Version of the service's API that it was read with: v2 or v3."),
        Column("requests", pa.int64(), "Requests it cost."),
        Column("records", pa.int64(), "Records of all resources."),
        Column("path", pa.string(), "Folder of the snapshot."),
        Column("resources", pa.string(), "The resources it holds, separated by commas."),
        Column(
            "lists_not_read", pa.string(), "Other lists of the library, which no backup reads, separated by commas."
        ),
    ),
)

TABLES_READ = Table(
    "tables_read",
    "One row for each table of each snapshot: whether it was read. Of a table that was not, no count says anything about the library.",
    ("tenant", "snapshot", "table_name"),
    (
        *SNAPSHOT_COLUMNS,
        Column("table_name", pa.string(), "Name of the table."),
        Column("read", _BOOLEAN, "Whether the snapshot has the table, be it empty."),
        Column("reason", pa.string(), "Why it was not read."),
    ),
)

SQL_TYPES = {
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.date32(): "DATE",
    _BOOLEAN: "BOOLEAN",
    _TIME: "TIMESTAMP WITH TIME ZONE",
}
"""Arrow's type → DuckDB's."""

_FROM_PATH = ", ".join(
    [
        *(f"regexp_extract(_file, '.*/{column.name}=([^/]*)/', 1) AS \"{column.name}\"" for column in SNAPSHOT_COLUMNS),
        f"timezone('UTC', try_strptime(regexp_extract(_file, '.*/snapshot=([^/]*)/', 1), '{SNAPSHOT_FORMAT}')) AS {SNAPSHOT_AT.name}",
    ]
)
"""Only the last `tenant=` and `snapshot=` of a path count. Hive partitioning would also take a `type=books` above the data folder.

Files of older snapshots lack these two columns, so that the path says it for all of them."""

_OTHER_COLUMNS = "COLUMNS(lambda name: name NOT IN ({}))".format(
    ", ".join(literal(column.name) for column in SNAPSHOT_COLUMNS)
)


def rebuild_catalogue(data: DataFolder) -> Path:
    """Write `library.duckdb` anew from the current snapshots. Queries of a table with a damaged file fail; the others are not affected."""
    target = data.catalogue_path
    with storage_errors(target), FileLock(data.path / ".catalogue.lock"):  # two tenants may publish at once
        building = target.with_name(f".library.{os.getpid()}.duckdb")
        _remove_unfinished(data)  # leftovers of a killed process
        try:
            with connect_duckdb(building) as database:
                data.objects.attach(database)
                _create_views(database, data, data.snapshots())
                database.execute("CHECKPOINT")
            building.replace(target)
        finally:
            _remove_unfinished(data)
    return target


@contextmanager
def open_catalogue(data: DataFolder, *, personal: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a read-only connection to the catalogue, which is rebuilt first where it is missing or out of date.

    `personal`: the tables about people have all columns in this connection alone, decrypted with the keys of `data`.
    """
    snapshots = _required_snapshots(data)
    if not _is_current(data, snapshots):
        rebuild_catalogue(data)
    with storage_errors(data.catalogue_path):
        database = connect_duckdb(data.catalogue_path, read_only=True)
    with database:
        _prepare(database, data)
        if personal:
            _create_personal_views(database, data, snapshots)
        yield database


def _prepare(database: duckdb.DuckDBPyConnection, data: DataFolder) -> None:
    data.objects.attach(database)
    database.execute("SET TimeZone = 'UTC'")


def _create_views(database: duckdb.DuckDBPyConnection, data: DataFolder, snapshots: Sequence[Snapshot]) -> None:
    """Create all views. One over a damaged file fails with what is wrong with it: without its rows it would mislead.

    A snapshot that another run has removed meanwhile is not damaged.
    """
    damaged = _of_other_sizes(data, snapshots)
    while True:
        statements = _statements(snapshots, damaged)
        database.execute("BEGIN")
        try:
            for statement in (*statements, f"CREATE MACRO bookferry_catalogue() AS '{_digest(statements)}'", "COMMIT"):
                database.execute(statement)
        except _OF_READING as error:
            database.execute("ROLLBACK")
            addresses = {snapshot.address for snapshot in data.snapshots()}
            remaining = [snapshot for snapshot in snapshots if snapshot.address in addresses]
            faults = _faults_behind(error, remaining, damaged)
            if not faults and len(remaining) == len(snapshots):
                raise
            for wrong in faults.values():
                _log.warning("%s", wrong)
            snapshots, damaged = remaining, damaged | faults
        else:
            return


def _of_other_sizes(data: DataFolder, snapshots: Sequence[Snapshot]) -> dict[str, str]:
    """Address → what is wrong with a file of another size than was published. DuckDB reads a sound one of another table, too."""
    sizes = {entry.key: entry.size for entry in data.objects.below("snapshots")}
    return {
        snapshot.address_of(facts): snapshot.damage_of_size(facts, size)
        for snapshot in snapshots
        for facts in snapshot.manifest.tables.values()
        if (size := sizes.get(f"{snapshot.key}/{facts.path}", facts.bytes)) != facts.bytes
    }


_OF_READING = (duckdb.Error, RuntimeError, UnicodeDecodeError)
"""Errors of a query; the last two of texts that are none."""

_OF_A_STATEMENT = (
    *(duckdb.BinderException, duckdb.CatalogException, duckdb.ConversionException, duckdb.InterruptException),
    *(duckdb.OutOfMemoryException, duckdb.OutOfRangeException, duckdb.ParserException, duckdb.PermissionException),
)
"""Those that no damaged file explains."""

_IN_A_FILE = re.compile(r"(?i)file|parquet|stats")
"""Words of DuckDB about a file, where it has the same kind of error for a value."""


@contextmanager
def damage_named(data: DataFolder) -> Iterator[None]:
    """Turns an error of reading a damaged table into a `StorageError` that names its file. Another error stays as it is."""
    try:
        yield
    except _OF_READING as error:
        if "`bookferry snapshots verify " in str(error):  # of a view that fails with what is wrong
            raise StorageError(str(error).removeprefix("Invalid Input Error: ")) from error
        for wrong in _faults_behind(error, data.snapshots()).values():
            raise StorageError(wrong) from error
        raise


def _faults_behind(
    error: Exception, snapshots: Iterable[Snapshot], known: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Address → what is wrong, for the files of the first snapshot that is not as published. `known`: those that are left out already."""
    words = str(error)
    if isinstance(error, _OF_A_STATEMENT) or (
        isinstance(error, duckdb.InvalidInputException) and not _IN_A_FILE.search(words)
    ):
        return {}
    for snapshot in sorted(snapshots, key=lambda snapshot: snapshot.key not in words):  # one that is named first
        faults = {address: wrong for address, wrong in snapshot.faults() if address not in known}
        if faults:
            return faults
    return {}


def catalogue_in_memory(data: DataFolder, *, personal: bool = False) -> duckdb.DuckDBPyConnection:
    """The same views in a DuckDB in memory: nothing is written, and later backups do not change them. The caller closes it."""
    snapshots = _required_snapshots(data)
    database = duckdb.connect()  # in a notebook, DuckDB refuses to change its progress bar without ipywidgets
    _prepare(database, data)
    _create_views(database, data, snapshots)
    if personal:
        _create_personal_views(database, data, snapshots)
    return database


def _required_snapshots(data: DataFolder) -> list[Snapshot]:
    if not (snapshots := data.snapshots()):
        if data.snapshot_keys():
            raise StorageError(
                f"No snapshot in {data.objects.address} can be used, so there is nothing to query. `bookferry snapshots verify` says what "
                "to do."
            )
        raise ConfigurationError(
            f"There is no snapshot in {data.objects.address} yet, so there is nothing to query. Run `bookferry backup TENANT` first."
        )
    return snapshots


def _create_personal_views(
    database: duckdb.DuckDBPyConnection, data: DataFolder, snapshots: Sequence[Snapshot]
) -> None:
    """Create temporary views in this connection; they come before views of the same names in the file."""
    for fingerprint in data.keys.fingerprints:
        register_key(database, data.keys.get(fingerprint))
    with damage_named(data):
        for statement in _views(snapshots, data.keys):
            database.execute(statement.replace("CREATE VIEW", "CREATE TEMP VIEW", 1))


def _remove_unfinished(data: DataFolder) -> None:
    for path in data.path.glob(".library.*.duckdb*"):
        path.unlink(missing_ok=True)


def _is_current(data: DataFolder, snapshots: Sequence[Snapshot]) -> bool:
    """Whether the catalogue is up to date: snapshots may have been pruned, the folder moved, Bookferry updated."""
    if not data.catalogue_path.exists():
        return False
    try:
        with connect_duckdb(data.catalogue_path, read_only=True) as database:
            return database.execute("SELECT bookferry_catalogue()").fetchall() == [
                (_digest(_statements(snapshots, _of_other_sizes(data, snapshots))),)
            ]
    except duckdb.Error:
        return False


def _digest(statements: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()


def _statements(snapshots: Sequence[Snapshot], damaged: Mapping[str, str]) -> list[str]:
    """All SQL statements of the catalogue. `damaged`: address of a file → what is wrong with it."""
    return [
        *_view(SNAPSHOTS, _snapshot_rows(snapshots)),
        *_view(TABLES_READ, tables_read_rows(resources_of(snapshots))),
        *_views(snapshots, damaged=damaged),
        *_as_of_macros(snapshots),
    ]


def tables_read_rows(of: Iterable[str]) -> str:
    """The SELECT of the view `tables_read`, from `snapshots`, in SQL that every database takes. `of`: whose tables it names."""
    rows = [
        f"({literal(table.name)}, {literal(resource)}, {literal(_nested_list(table))})"
        for resource in of
        for table in tables_of(resource)
    ]
    return _sql("tables_read").format(tables=", ".join(rows)) if rows else ""


def _nested_list(table: Table) -> str:
    """The address that a library may have for the entries of a described table: `/collections/:id/publications`."""
    if table.name not in MADE_FROM:
        return ""
    return f"/{LIST_PATHS[MADE_FROM[table.name].removeprefix('raw_')]}/:id/{table.name.partition('_')[2]}"


def _views(
    snapshots: Sequence[Snapshot],
    keys: PersonalKeys | None = None,
    damaged: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[str]:
    """The views over all tables. Without `keys` they lack personal columns and encrypted tables; with them, only personal ones are made."""
    complete = [snapshot for snapshot in snapshots if snapshot.manifest.complete]
    for resource in resources_of(snapshots):
        if keys is not None and not is_personal(resource):
            continue
        tables = [observed_table(table, resource, complete) for table in tables_of(resource)]
        for description in (*tables, raw_table(resource)):
            table = description.impersonal if keys is None else description
            newest, history = table_views(table)
            for view, shown in ((newest, newest_with_table(table, complete)), (history, complete)):
                yield from _view(view, _rows(table, shown, keys, damaged), describes_columns=view is newest)
        if resource in STAGED:
            records = tables[0] if keys is not None else tables[0].impersonal
            yield from _view(deleted_view(records), deleted_rows(records, resource), describes_columns=False)


def resources_of(snapshots: Iterable[Snapshot]) -> list[str]:
    """All resources, and the lists at addresses of their own that any of these snapshots has."""
    nested = {name for snapshot in snapshots for name in snapshot.manifest.resources if parent_of(name)}
    return [*STAGED, *sorted(nested.union(NESTED))]


def observed_table(table: Table, resource: str, snapshots: Iterable[Snapshot]) -> Table:
    """A table of a resource; that of its records with the columns that were observed in any of these snapshots."""
    if resource not in STAGED or table != STAGED[resource][0]:
        return table
    observed = (column for snapshot in snapshots for column in snapshot.manifest.observed.get(resource, ()))
    return with_columns(table, united(observed))


def table_views(table: Table) -> tuple[Table, Table]:
    """The descriptions of the views over a table and over its history."""
    columns = (*VIEW_COLUMNS, *table.columns)
    newest = f"{table.comment} Newest complete snapshot of each tenant that holds it; tables_read says which did not read it."
    every = f"{table.comment} Every complete snapshot."
    history = replace(table, name=f"{table.name}_history", columns=columns, comment=every)
    return replace(table, columns=columns, comment=newest), history


_MISSING_IN = Column("missing_in", pa.string(), "The next complete snapshot, which lacks the record.")


def deleted_rows(records: Table, resource: str) -> str:
    """The SELECT of the view `_deleted`, from `snapshots` and the history of the table, in SQL that every database takes.

    An id that is no whole number stands in the observed column `id_raw`, else in the residue.
    """
    columns = {column.name for column in records.columns}

    def key(row: str) -> str:
        ids = [f"CAST({row}.{name} AS VARCHAR)" for name in ("id", "id_raw") if name in columns]
        if "residue" in columns:
            ids.append(f"{row}.residue ->> 'id'")
        return f"coalesce({', '.join(ids)})"

    return _sql("deleted").format(table=records.name, resource=resource, seen_key=key("seen"), later_key=key("later"))


def deleted_view(records: Table) -> Table:
    """The description of the view `_deleted` of a table with one row per record."""
    comment = (
        f"{records.comment} Those that a complete snapshot has, and the next complete one of the same library has not."
    )
    columns = (*VIEW_COLUMNS, _MISSING_IN, *records.columns)
    return replace(records, name=f"{records.name}_deleted", columns=columns, comment=comment)


def _as_of_macros(snapshots: Iterable[Snapshot]) -> Iterator[str]:
    for resource in resources_of(snapshots):
        for table in (*tables_of(resource), raw_table(resource)):
            yield _sql("as_of").format(table=table.name, resource=resource)


def _sql(name: str) -> str:
    return resources.files("sql").joinpath("catalogue", f"{name}.sql").read_text(encoding="utf-8")


def newest_with_table(table: Table, complete: Iterable[Snapshot]) -> list[Snapshot]:
    """The newest snapshot of each tenant that has this table. A snapshot of users alone does not hide the publications."""
    return list(
        {snapshot.manifest.tenant: snapshot for snapshot in complete if table.name in snapshot.manifest.tables}.values()
    )


def newest_snapshots(complete: Sequence[Snapshot]) -> list[Snapshot]:
    """The newest of a tenant's complete snapshots, and older ones where it lacks some resources; newest first."""
    newest = {snapshot.name: snapshot for table in TABLES.values() for snapshot in newest_with_table(table, complete)}
    return sorted(newest.values(), key=lambda snapshot: snapshot.manifest.snapshot, reverse=True)


def _view(table: Table, source: str, *, describes_columns: bool = True) -> list[str]:
    """The statements of a view with the columns and types of `table`. Columns that an old snapshot lacks are null.

    `describes_columns`: with a comment on each. History and deletions have the columns of the table, and each comment takes DuckDB time.
    """
    names = ", ".join(quoted(column.name) for column in table.columns)
    nothing = ", ".join(f"NULL::{SQL_TYPES[column.type]} AS {quoted(column.name)}" for column in table.columns)
    rows = f"SELECT {nothing} WHERE false" + (f" UNION ALL BY NAME {source}" if source else "")
    view = quoted(table.name)
    return [
        f"CREATE VIEW {view} AS SELECT {names} FROM ({rows})",  # noqa: S608  names of our descriptions, quoted; a view binds nothing
        f"COMMENT ON VIEW {view} IS {literal(table.comment)}",
        *(
            f"COMMENT ON COLUMN {view}.{quoted(column.name)} IS {literal(column.comment)}"
            for column in (table.columns if describes_columns else ())
        ),
    ]


def _rows(table: Table, snapshots: Iterable[Snapshot], keys: PersonalKeys | None, damaged: Mapping[str, str]) -> str:
    """The SELECT of a table's rows in some snapshots.

    If a key is missing or a file is damaged, it fails with a message: a part of the rows would mislead.
    """
    files: dict[str, list[str]] = {}
    for snapshot in snapshots:
        if (facts := snapshot.manifest.tables.get(table.name)) is not None:
            address = snapshot.address_of(facts)
            if address in damaged:
                return _error_rows(table, damaged[address])
            files.setdefault(facts.key, []).append(escaped(address))
    for fingerprint in files:
        if fingerprint and (keys is None or keys.get(fingerprint) is None):
            return _error_rows(table, _refusal_message(table, fingerprint, keys))
    options = "union_by_name = true, hive_partitioning = false, filename = '_file'"
    return " UNION ALL BY NAME ".join(
        f"SELECT {_FROM_PATH}, {_OTHER_COLUMNS} FROM {read_parquet(addresses, fingerprint, options)}"  # noqa: S608  as above
        for fingerprint, addresses in files.items()
    )


def _error_rows(table: Table, message: str) -> str:
    """A SELECT that fails with this message, whichever columns a query names, compares or counts."""
    error = f"error({literal(message)})"
    columns = ", ".join(
        f"{error}::{SQL_TYPES[column.type]} AS {quoted(column.name)}" for column in (*VIEW_COLUMNS, *table.columns)
    )
    return f"SELECT {columns} WHERE {error}::BOOLEAN"


def _refusal_message(table: Table, fingerprint: str, keys: PersonalKeys | None) -> str:
    if keys is None:
        return (
            f"{table.name} is encrypted, because it is about people. With the key, `bookferry query --personal` reads it; "
            "docs/operating.md (Personal data) explains how other programs read it."
        )
    return f"{table.name} is encrypted with the personal key {fingerprint}. {keys.why_missing}"


def row_of(snapshot: Snapshot) -> dict[str, str | int | bool]:
    """The row of a snapshot in `snapshots`, by column. Instants are texts."""
    manifest = snapshot.manifest
    return {
        "tenant": manifest.tenant,
        "snapshot": manifest.snapshot,
        "complete": manifest.complete,
        "started_at": manifest.started_at,
        "finished_at": manifest.finished_at,
        "api": manifest.api,
        "requests": manifest.requests,
        "records": sum(snapshot.counts.values()),
        "path": snapshot.address,
        "resources": ",".join(manifest.resources),
        "lists_not_read": ",".join(manifest.not_read),
    }


def snapshot_values(rows: Iterable[Mapping[str, str | int | bool]], sql_type: Callable[[Column], str]) -> str:
    """Rows of `snapshots` as VALUES has them."""
    return ", ".join(
        f"({', '.join(f'{literal(str(row[column.name]))}::{sql_type(column)}' for column in SNAPSHOTS.columns)})"
        for row in rows
    )


def _snapshot_rows(snapshots: Iterable[Snapshot]) -> str:
    values = snapshot_values(map(row_of, snapshots), lambda column: SQL_TYPES[column.type])
    columns = ", ".join(quoted(column.name) for column in SNAPSHOTS.columns)
    return f"SELECT * FROM (VALUES {values}) AS manifests ({columns})" if values else ""  # noqa: S608  as above
