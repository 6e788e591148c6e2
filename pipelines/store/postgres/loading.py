"""Loads a snapshot into the database: new tables are filled, keyed, and then swapped in together."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import msgspec
import psycopg

from pipelines.errors import ConfigurationError, TenantBusyError
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import STAGED, TABLES
from pipelines.store.catalogue import SNAPSHOTS, row_of
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.analysts import ROLE_MISSING, prepare_role
from pipelines.store.postgres.copying import CopyProgress, copy_table
from pipelines.store.postgres.definitions import (
    column_list,
    create_table,
    fitting_name,
    history_name,
    sql_type,
    staged_columns,
)
from pipelines.store.postgres.keys import ForeignKey, KeyedTable, add_foreign_keys, add_own_keys, validate
from pipelines.store.postgres.observed import loaded_table, widened_columns
from pipelines.store.postgres.postgres_errors import later_connection_errors, statement_errors
from pipelines.store.postgres.readers import transactions_before, wait_for_older
from pipelines.store.postgres.schemas import (
    TenantSchemas,
    clear_loading,
    columns_of,
    loaded_tables,
    prepare_tenant_schemas,
    prepare_views_schema,
    tenant_schemas,
)
from pipelines.store.postgres.server import Server, Session
from pipelines.store.postgres.swapping import VIEWS_LOCK, Swap, swap
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

PARALLEL_TABLES = 3
"""Tables that are filled in parallel: while one waits for the server, or has its indexes built, another has rows for it."""


class LoadResult(msgspec.Struct, kw_only=True):
    """The result of a load."""

    tenant: str
    snapshot: str
    database: str
    """The database's address without user and password."""
    schema: str
    tables: dict[str, int]
    """Table → loaded rows."""
    seconds: float
    left_out: list[str] = []
    """Keys and indexes that the data does not allow, a sentence each."""
    notes: list[str] = []

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(self.tables.values())


class Database:
    """The database with the staged tables of all tenants. `views`: the schema with views over them; `seconds`: time to wait for readers."""

    def __init__(self, address: str, views: str = "library", seconds: float = 60) -> None:
        self._server = Server(address)
        self._views = views
        self._seconds = seconds

    @property
    def place(self) -> str:
        """The address without user and password."""
        return self._server.place

    @property
    def secret(self) -> str:
        """The password in the address."""
        return self._server.secret

    def loaded_snapshots(self, tenant: str) -> list[str]:
        """The loaded snapshots of a tenant, oldest first."""
        with self._session(tenant, "Looking at") as session:
            schemas = tenant_schemas(tenant, self._views)
            existing = {name for (name,) in session.rows("SELECT nspname FROM pg_namespace")}
            found = loaded_tables(session, schemas.main) if schemas.main in existing else {}
            return sorted({snapshot for tables in found.values() for snapshot in tables})

    def load(self, data: DataFolder, snapshot: Snapshot) -> LoadResult:
        """Load one complete snapshot. The tenant's tables then have the newest of its loaded snapshots."""
        tenant, begun = snapshot.manifest.tenant, time.monotonic()
        schemas = tenant_schemas(tenant, self._views)
        with self._session(tenant, f"Loading {snapshot.name} into") as session, _load_lock(session, schemas):
            granted = self._prepare(session, schemas)
            try:
                staged, keyed = self._fill(session, data, snapshot, schemas)
                self._swap_in(session, data, schemas, staged, keyed, granted=granted)
            finally:
                with suppress(psycopg.Error):  # the first error is the one to report; the next load clears the schema
                    clear_loading(session, schemas)
        staged.notes += [] if granted else [ROLE_MISSING]
        staged.seconds = round(time.monotonic() - begun, 3)
        return staged

    @contextmanager
    def _session(self, tenant: str, trying: str) -> Iterator[Session]:
        again = f"bookferry stage {tenant}"
        with (
            statement_errors(trying, self._server.place, self._server.secret, again),
            self._server.session() as session,
            later_connection_errors(trying, self._server.place, again),
        ):
            yield session

    def _prepare(self, session: Session, schemas: TenantSchemas) -> bool:
        """Create role and schemas. Returns whether there is a role to grant to."""
        with session.transaction():
            session.run(f"SELECT pg_advisory_xact_lock({VIEWS_LOCK})")  # two tenants may be the first at once
            prepare_views_schema(session, self._views)
            prepare_tenant_schemas(session, schemas)
        return prepare_role(session)

    def _fill(
        self, session: Session, data: DataFolder, snapshot: Snapshot, schemas: TenantSchemas
    ) -> tuple[LoadResult, list[KeyedTable]]:
        """Create, fill and key the tables in parallel."""
        tables, notes = _readable_tables(data, snapshot)
        known = data.snapshots(schemas.tenant)
        tables = [loaded_table(session, schemas, table, known) for table in tables]

        def fill(table: Table) -> tuple[CopyProgress, KeyedTable]:
            with self._server.copier() as cursor:
                cursor.execute(
                    creating[table]
                )  # with its rows: so a server with wal_level = minimal writes them only once
                copied = copy_table(cursor, schemas.loading, table, data, snapshot)
            with self._server.session() as beside:
                return copied, add_own_keys(beside, schemas.loading, table, schemas.tenant, snapshot.manifest.snapshot)

        creating = {
            table: create_table(schemas.loading, table, _former_columns(session, schemas, table)) for table in tables
        }
        with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
            filled = dict(zip(tables, pool.map(fill, tables), strict=True))
        notes += [_nul_note(table, copied.replaced) for table, (copied, _) in filled.items() if copied.replaced]
        keyed = [table for _, table in filled.values()]
        staged = LoadResult(
            tenant=schemas.tenant,
            snapshot=snapshot.manifest.snapshot,
            database=self._server.place,
            schema=schemas.main,
            tables={table.name: copied.rows for table, (copied, _) in filled.items()},
            seconds=0,
            left_out=[sentence for table in keyed for sentence in table.left_out],
            notes=notes,
        )
        return staged, keyed

    def _add_foreign_keys(self, session: Session, schemas: TenantSchemas, keyed: Sequence[KeyedTable]) -> list[str]:
        """Add foreign keys. Returns a sentence for each that was left out."""

        def validated(key: ForeignKey) -> list[str]:
            with self._server.session() as beside:
                return list(validate(beside, key))

        made, left_out = add_foreign_keys(session, schemas.loading, keyed)
        with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
            return left_out + [sentence for sentences in pool.map(validated, made) for sentence in sentences]

    def _swap_in(
        self,
        session: Session,
        data: DataFolder,
        schemas: TenantSchemas,
        staged: LoadResult,
        keyed: Sequence[KeyedTable],
        *,
        granted: bool,
    ) -> None:
        tables = [filled.table for filled in keyed]
        known = data.snapshots(schemas.tenant)
        there = {name: set(snapshots) for name, snapshots in loaded_tables(session, schemas.main).items()}
        gone = frozenset(
            set().union(*there.values())
            - {snapshot.manifest.snapshot for snapshot in known if snapshot.manifest.complete}
        )
        for table in tables:
            there.setdefault(table.name, set()).add(staged.snapshot)
        _list_snapshots(session, schemas, known, there)
        before = transactions_before(session)
        staged.left_out += self._add_foreign_keys(session, schemas, keyed)
        wait_for_older(session, before, self._seconds)
        wanted = Swap(schemas, self._views, staged.snapshot, tables, gone, granted)
        swap(session, wanted, self._seconds)
        staged.notes += wanted.notes


def _readable_tables(data: DataFolder, snapshot: Snapshot) -> tuple[list[Table], list[str]]:
    """The tables of a snapshot that are readable with our keys, and a note about the others."""
    manifest = snapshot.manifest
    present = [table for name, table in TABLES.items() if name in manifest.tables]
    locked = [table for table in present if (key := manifest.tables[table.name].key) and data.keys.get(key) is None]
    if not locked:
        return present, []
    names = ", ".join(table.name for table in locked)
    note = f"{names}: not loaded, because personal data is encrypted and its key is not here. {data.keys.why_missing}"
    return [table for table in present if table not in locked], [note]


def _nul_note(table: Table, count: int) -> str:
    return f"{table.name}: {count:,} values have the character NUL, which no text in Postgres can have; U+FFFD stands in its place."


def _former_columns(session: Session, schemas: TenantSchemas, table: Table) -> dict[str, str]:
    """Columns of the history that the description lacks. A history cannot hold a column in two types, so a changed type is an error."""
    name = history_name(table.name)
    existing = columns_of(session, schemas.main, [name]).get(name, {})
    wanted = {column.name: sql_type(column) for column in staged_columns(table)}
    widened = {column.name for column in widened_columns(table, existing)}
    for column, kind in wanted.items():
        if existing.get(column, kind) != kind and column not in widened:
            raise ConfigurationError(
                f"{schemas.main}.{name} was made by another version of Bookferry: {column} is {existing[column]} there and {kind} now. "
                f"The data folder is enough to make it anew: DROP SCHEMA {quoted(schemas.main)} CASCADE, then run "
                f"`bookferry stage {schemas.tenant} --history`."
            )
    return {column: kind for column, kind in existing.items() if column not in wanted}


def _list_snapshots(
    session: Session, schemas: TenantSchemas, known: Sequence[Snapshot], there: dict[str, set[str]]
) -> None:
    """Create the table of snapshots: the complete ones that are loaded, with their loaded resources, and the partial ones."""
    columns = SNAPSHOTS.columns
    described = ", ".join(f"{quoted(column.name)} {sql_type(column)}" for column in columns)
    name = quoted(schemas.loading, SNAPSHOTS.name)
    key = quoted(fitting_name(f"{SNAPSHOTS.name}_pkey"))
    session.run(
        f"CREATE TABLE {name} ({described}, CONSTRAINT {key} PRIMARY KEY ({column_list(SNAPSHOTS.key)}))",
        f"COMMENT ON TABLE {name} IS {literal(f'{SNAPSHOTS.comment} Complete ones are listed where they are loaded.')}",
        *(f"COMMENT ON COLUMN {name}.{quoted(column.name)} IS {literal(column.comment)}" for column in columns),
    )
    for snapshot in known:
        manifest = snapshot.manifest
        loaded = [
            resource for resource in manifest.resources if manifest.snapshot in there.get(STAGED[resource][0].name, ())
        ]
        if manifest.complete and not loaded:
            continue
        row = {**row_of(snapshot), **({"resources": ",".join(loaded)} if manifest.complete else {})}
        values = ", ".join(f"{literal(str(row[column.name]))}::{sql_type(column)}" for column in columns)
        session.run(f"INSERT INTO {name} VALUES ({values})")  # noqa: S608  quoted


@contextmanager
def _load_lock(session: Session, schemas: TenantSchemas) -> Iterator[None]:
    """Allow one load of a tenant at a time, on any machine. The server releases the lock when the session ends."""
    digest = hashlib.sha256(f"bookferry load {schemas.main}".encode()).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    if not session.value("SELECT pg_try_advisory_lock(%s)", number):
        raise TenantBusyError(
            f"Another run is loading '{schemas.tenant}' into this database at this moment. Wait until it ends, then run this again if you "
            "still need to."
        )
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            session.run(f"SELECT pg_advisory_unlock({number})")
