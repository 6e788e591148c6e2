"""Loads a snapshot into the database: it is copied beside the library's tables, compared with them, and what differs is written at once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial

import msgspec
import psycopg

from pipelines.errors import TenantBusyError
from pipelines.humanize import counted
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import table_named, tables_named
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.analysts import ROLE_MISSING, grant, prepare_role
from pipelines.store.postgres.brief_locks import briefly, lock_error
from pipelines.store.postgres.changes import (
    CopiedTable,
    find_newest_changes,
    find_older_rows,
    remove_unseen_rows,
    separate_keyless,
    step_back,
    write_newest,
    write_older,
)
from pipelines.store.postgres.copying import CopiedRows, copy_table
from pipelines.store.postgres.definitions import create_copied, create_kept, past_name, rows_name, tables_among
from pipelines.store.postgres.keys import Keyed, add_keys, dropping, index_names
from pipelines.store.postgres.loaded import (
    LOADED_TABLES,
    create_lists,
    forget_snapshots,
    note_loaded,
    read_loaded,
    write_snapshots,
)
from pipelines.store.postgres.observed import loaded_table, note_observed, observed_of
from pipelines.store.postgres.postgres_errors import statement_errors
from pipelines.store.postgres.schemas import (
    TenantSchemas,
    clear_loading,
    columns_of,
    prepare_tenant_schemas,
    prepare_views_schema,
    tenant_schemas,
)
from pipelines.store.postgres.server import Server, Session
from pipelines.store.postgres.views import make_views
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

PARALLEL_TABLES = 3
"""Tables that are copied in parallel: while one waits for the server, another has rows for it."""


class LoadResult(msgspec.Struct, kw_only=True):
    """The result of a load."""

    tenant: str
    snapshot: str
    database: str
    """The database's address without user and password."""
    schema: str
    tables: dict[str, int]
    """Table → its rows."""
    seconds: float
    written: dict[str, int]
    """Table → rows that were written or removed."""
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

    def check(self) -> None:
        """Connect as a load does. Raises the errors of a load."""
        with self._server.session():
            pass

    def loaded_snapshots(self, tenant: str) -> list[str]:
        """The loaded snapshots of a tenant, oldest first."""
        with self._session(tenant, "Looking at") as session:
            main = tenant_schemas(tenant, self._views).main
            if LOADED_TABLES not in columns_of(session, main, [LOADED_TABLES]):
                return []
            return sorted({snapshot for loaded in read_loaded(session, main).values() for snapshot in loaded})

    def load(self, data: DataFolder, snapshot: Snapshot) -> LoadResult:
        """Load one complete snapshot, in any order, and remove those that the data folder has no more.

        The library's tables then have the newest of its loaded snapshots, and its history has all of them.
        """
        tenant, begun = snapshot.manifest.tenant, time.monotonic()
        schemas = tenant_schemas(tenant, self._views)
        with self._session(tenant, f"Loading {snapshot.name} into") as session, _load_lock(session, schemas):
            is_granted = prepare_role(session)
            tables, notes = _readable_tables(data, snapshot)
            tables = [loaded_table(table, snapshot) for table in tables]
            try:
                copies = self._prepare(session, schemas, tables, snapshot, is_granted=is_granted)
                copied = self._copy(session, copies, data, snapshot)
                written = self._write(session, schemas, copies, data, snapshot)
                left_out = self._add_keys(session, schemas)
            finally:
                with suppress(psycopg.Error):  # the first error is the one to report; the next load clears the schema
                    clear_loading(session, schemas)
        notes += [_nul_note(name, rows.replaced) for name, rows in copied.items() if rows.replaced]
        return LoadResult(
            tenant=tenant,
            snapshot=snapshot.manifest.snapshot,
            database=self._server.place,
            schema=schemas.main,
            tables={name: rows.rows for name, rows in copied.items()},
            written=written,
            seconds=round(time.monotonic() - begun, 3),
            left_out=[*filter(None, (rows.keyless for rows in copied.values())), *left_out],
            notes=notes + ([] if is_granted else [ROLE_MISSING]),
        )

    @contextmanager
    def _session(self, tenant: str, trying: str) -> Iterator[Session]:
        again = f"bookferry stage {tenant}"
        with (
            statement_errors(trying, self._server.place, self._server.secret, again),
            self._server.session() as session,
        ):
            yield session

    def _prepare(
        self, session: Session, schemas: TenantSchemas, tables: Sequence[Table], snapshot: Snapshot, *, is_granted: bool
    ) -> list[CopiedTable]:
        """Make what the load needs and is not there: schemas, tables, columns and views, all of them without rows of it."""

        def make() -> None:
            prepare_views_schema(session, self._views)
            prepare_tenant_schemas(session, schemas)
            create_lists(session, schemas.main)
            kept = columns_of(session, schemas.main)
            for table in tables:
                _make_table(session, schemas.main, table, kept.get(rows_name(table.name)))
            note_observed(session, schemas.main, snapshot)
            make_views(session, schemas, self._views)
            if is_granted:
                grant(session, schemas.main, self._views)

        briefly(session, [schemas.main, self._views], self._seconds, make)
        kept = columns_of(session, schemas.main)
        return [
            CopiedTable(
                schemas.main,
                schemas.loading,
                table,
                _kept_columns(kept, table.name),
                frozenset(column.name for column in table_named(table.name).columns),
            )
            for table in tables
        ]

    def _copy(
        self, session: Session, copies: Sequence[CopiedTable], data: DataFolder, snapshot: Snapshot
    ) -> dict[str, CopiedRows]:
        """Copy the tables and compare them with those that are there, in parallel."""
        loaded = read_loaded(session, copies[0].main)

        def copy(copied: CopiedTable) -> CopiedRows:
            name = snapshot.manifest.snapshot
            with self._server.session() as beside:
                beside.run(create_copied(copied.loading, copied.table))
                rows = copy_table(beside, copied.loading, copied.table, data, snapshot)
                rows.keyless = separate_keyless(beside, copied)
                if later := _next_loaded(loaded.get(copied.table.name, ()), name):
                    find_older_rows(beside, copied, name, later)
                else:
                    find_newest_changes(beside, copied)
            return rows

        with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
            return {copied.table.name: done for copied, done in zip(copies, pool.map(copy, copies), strict=True)}

    def _write(
        self,
        session: Session,
        schemas: TenantSchemas,
        copies: Sequence[CopiedTable],
        data: DataFolder,
        snapshot: Snapshot,
    ) -> dict[str, int]:
        """Write what differs, in one transaction. An index that the rows do not allow is dropped first."""
        snapshots, damaged = data.examine_snapshots(schemas.tenant)
        unreadable = [entry.id for entry in damaged]
        while True:
            try:
                with session.transaction():
                    session.run(f"SET LOCAL lock_timeout = {round(self._seconds * 1000)}")
                    written = _write_rows(session, copies, snapshot.manifest.snapshot)
                    complete = {entry.manifest.snapshot for entry in snapshots if entry.manifest.complete}
                    _forget_gone(session, schemas.main, {*complete, *unreadable})
                    write_snapshots(session, schemas.main, snapshots, unreadable)
            except psycopg.errors.LockNotAvailable:
                raise lock_error(
                    session, [schemas.main], self._seconds, "The changes are not written", "the tables"
                ) from None
            except psycopg.errors.ProgramLimitExceeded as error:
                tables = tables_among(columns_of(session, schemas.main)).values()
                statements = [dropping(Keyed(schemas.main, table), error) for table in tables]
                statement = next(filter(None, statements), None)
                if statement is None:
                    raise
                briefly(session, [schemas.main], self._seconds, partial(session.run, statement))
            else:
                return written

    def _add_keys(self, session: Session, schemas: TenantSchemas) -> list[str]:
        """Add the keys and indexes that the tables lack. Returns a sentence for each that the rows do not allow."""
        present = index_names(session, schemas.main)
        keyed = [
            Keyed(schemas.main, table) for name, table in tables_among(present).items() if rows_name(name) in present
        ]
        lacking = [table for table in keyed if not {table.primary_key, *table.indexes}.issubset(present[table.name])]

        def add(table: Keyed) -> list[str]:
            with self._server.session() as beside:
                return add_keys(beside, table, present[table.name])

        with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
            return [sentence for sentences in pool.map(add, lacking) for sentence in sentences]


def _make_table(session: Session, main: str, table: Table, kept: Mapping[str, str] | None) -> None:
    """Make the two tables of a library for a table, or the columns that they lack."""
    if kept is None:
        session.run(*create_kept(main, table_named(table.name)))
    for column in observed_of(table):
        if kept is None or column.name not in kept:
            for name in (rows_name(table.name), past_name(table.name)):
                session.run(
                    f"ALTER TABLE {quoted(main, name)} ADD COLUMN {quoted(column.name)} jsonb",
                    f"COMMENT ON COLUMN {quoted(main, name, column.name)} IS {literal(column.comment)}",
                )


def _kept_columns(columns: Mapping[str, Mapping[str, str]], table: str) -> tuple[str, ...]:
    """The columns of both tables of a library for a table, without `snapshot` and `until`. `columns`: relation → column → type."""
    return tuple(name for name in columns[rows_name(table)] if name != "snapshot")


def _next_loaded(loaded: Sequence[str], snapshot: str) -> str:
    """The oldest loaded snapshot after this one; empty if this is the newest."""
    return min((name for name in loaded if name > snapshot), default="")


def _write_rows(session: Session, copies: Sequence[CopiedTable], snapshot: str) -> dict[str, int]:
    """Write the rows of a snapshot, and note it. Returns table → rows that were written or removed."""
    loaded, written = read_loaded(session, copies[0].main), dict[str, int]()
    for copy in copies:
        if later := _next_loaded(loaded.get(copy.table.name, ()), snapshot):
            written[copy.table.name] = write_older(session, copy, snapshot, later)
        else:
            written[copy.table.name] = write_newest(session, copy, snapshot)
    note_loaded(session, copies[0].main, [*written], snapshot)
    return written


def _forget_gone(session: Session, main: str, present: Collection[str]) -> None:
    """Remove the snapshots that the data folder has no more, and the rows that no other one has."""
    loaded = read_loaded(session, main)
    gone = {name for names in loaded.values() for name in names} - {*present}
    if not gone:
        return
    forget_snapshots(session, main, gone)
    columns = columns_of(session, main)
    for table, names in loaded.items():
        if gone.isdisjoint(names):
            continue
        remaining = [name for name in names if name not in gone]
        if names[-1] in gone:
            step_back(
                session, main, table_named(table), _kept_columns(columns, table), remaining[-1] if remaining else ""
            )
        remove_unseen_rows(session, main, table_named(table))


def _readable_tables(data: DataFolder, snapshot: Snapshot) -> tuple[list[Table], list[str]]:
    """The tables of a snapshot that are readable with our keys, and a note about the others."""
    manifest = snapshot.manifest
    present = [table for name, table in tables_named(manifest.tables).items() if name in manifest.tables]
    locked = [table for table in present if (key := manifest.tables[table.name].key) and data.keys.get(key) is None]
    if not locked:
        return present, []
    names = ", ".join(table.name for table in locked)
    note = f"{names}: not loaded, because personal data is encrypted and its key is not here. {data.keys.why_missing}"
    return [table for table in present if table not in locked], [note]


def _nul_note(table: str, count: int) -> str:
    return f"{table}: {counted(count, 'value')} with the character NUL, which no text in Postgres can have; U+FFFD stands in its place."


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
