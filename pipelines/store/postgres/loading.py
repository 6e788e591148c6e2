"""Loads a snapshot into the database: new tables are filled, keyed, and then swapped in together."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property

import msgspec
import psycopg

from pipelines.errors import TemporaryError, TenantBusyError
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import TABLES
from pipelines.store.postgres.analysts import ROLE_MISSING, may_read, prepare_role
from pipelines.store.postgres.changes import (
    Differences,
    NotComparableError,
    changes_into,
    copy_changes,
    differences,
    load_rules,
    write_changes,
)
from pipelines.store.postgres.copying import CopyProgress, copy_table
from pipelines.store.postgres.definitions import create_table
from pipelines.store.postgres.keys import ForeignKey, KeyedTable, add_foreign_keys, add_own_keys, validate
from pipelines.store.postgres.observed import loaded_table
from pipelines.store.postgres.postgres_errors import UNTOUCHED, later_connection_errors, statement_errors
from pipelines.store.postgres.readers import lock_holders, transactions_before, wait_for_older
from pipelines.store.postgres.schemas import (
    TenantSchemas,
    clear_loading,
    prepare_tenant_schemas,
    prepare_views_schema,
    tenant_schemas,
)
from pipelines.store.postgres.server import Server, Session
from pipelines.store.postgres.snapshot_list import create_snapshots, keep_snapshots, replace_snapshots
from pipelines.store.postgres.swapping import VIEWS_LOCK, Swap, loads_with_dependents, swap
from pipelines.store.postgres.whole_loads import (
    Loads,
    WholeLoad,
    create_beside,
    create_loaded_tables,
    forget_rules,
    hide_snapshots,
    loads_afterwards,
    read_loads,
    remove_unseen_rows,
    validate_closed,
)
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
    """Table → its rows."""
    seconds: float
    written: dict[str, int] | None = None
    """Table → rows that were written or removed, where only the changes were loaded."""
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
        """Connect as a load does, with both of its drivers. Raises the errors of a load."""
        with self._server.session(), self._server.copier():
            pass

    def loaded_snapshots(self, tenant: str) -> list[str]:
        """The loaded snapshots of a tenant, oldest first."""
        with self._session(tenant, "Looking at") as session:
            schemas = tenant_schemas(tenant, self._views)
            existing = {name for (name,) in session.rows("SELECT nspname FROM pg_namespace")}
            found = read_loads(session, schemas.main) if schemas.main in existing else {}
            return sorted({snapshot for loads in found.values() for load in loads for snapshot in load.snapshots})

    def load(self, data: DataFolder, snapshot: Snapshot) -> LoadResult:
        """Load one complete snapshot. The tenant's tables then have the newest of its loaded snapshots.

        Where the tables have the snapshot before, only the changes are written, if they are few.
        """
        tenant, begun = snapshot.manifest.tenant, time.monotonic()
        schemas = tenant_schemas(tenant, self._views)
        with self._session(tenant, f"Loading {snapshot.name} into") as session, _load_lock(session, schemas):
            granted = self._prepare(session, schemas)
            tables, notes = _readable_tables(data, snapshot)
            tables = [loaded_table(table, snapshot) for table in tables]
            known, damaged = data.examine_snapshots(tenant)
            load = _Load(
                schemas, data, snapshot, tables, read_loads(session, schemas.main), known, [one.id for one in damaged]
            )
            try:
                staged = self._load_changes(session, load, granted=granted) or self._load_whole(
                    session, load, granted=granted
                )
            finally:
                with suppress(psycopg.Error):  # the first error is the one to report; the next load clears the schema
                    clear_loading(session, schemas)
        staged.notes += notes + ([] if granted else [ROLE_MISSING])
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

    def _load_changes(self, session: Session, load: _Load, *, granted: bool) -> LoadResult | None:
        """Write only what changed. Returns None where that cannot be done, or would take longer than a whole load."""
        schemas, snapshot = load.schemas, load.snapshot
        follows = changes_into(schemas.main, load.loads, load.tables, snapshot, load.gone)
        if follows is None or (granted and not may_read(session, self._views)):
            return None
        before, changes = follows
        former = next((one for one in load.known if one.manifest.snapshot == before), None)
        if former is None or any(
            former.manifest.tables[change.table.name].sha256 != change.load.sha256 for change in changes
        ):
            return None
        try:
            with differences(load.data, former, snapshot) as found:
                if not found.find_records(load.tables):
                    return None
                copied = self._copy_changes(load, found)
            with session.transaction():
                session.run(f"SET LOCAL lock_timeout = {round(self._seconds * 1000)}")
                written = write_changes(session, schemas.loading, schemas.main, changes, before, snapshot)
                hide_snapshots(session, schemas.main, load.loads, load.gone)
                replace_snapshots(session, schemas.main, load.known, read_loads(session, schemas.main), load.unreadable)
        except psycopg.errors.LockNotAvailable:
            who = "; ".join(lock_holders(session, [schemas.main])) or "it has just ended"
            raise TemporaryError(
                f"The changes are not written: for {self._seconds:g} seconds a transaction held locks on the tables ({who}). {UNTOUCHED}. "
                "When it has ended, run `bookferry stage`."
            ) from None
        except (NotComparableError, psycopg.errors.IntegrityError, psycopg.errors.ProgramLimitExceeded):
            clear_loading(session, schemas)
            prepare_tenant_schemas(session, schemas)
            return None  # a whole load names the damaged file, or leaves out the key or index that the rows violate, and says so
        return LoadResult(
            tenant=schemas.tenant,
            snapshot=snapshot.manifest.snapshot,
            database=self._server.place,
            schema=schemas.main,
            tables={table.name: snapshot.manifest.tables[table.name].rows for table in load.tables},
            written=written,
            seconds=0,
            notes=[_nul_note(table.name, one.replaced) for table, one in copied if one.replaced],
        )

    def _copy_changes(self, load: _Load, found: Differences) -> list[tuple[Table, CopyProgress]]:
        """Copy what changed into the loading schema: the largest table beside all others."""
        facts = load.snapshot.manifest.tables
        largest = max(load.tables, key=lambda table: facts[table.name].bytes)
        parts = [[largest], [table for table in load.tables if table is not largest]]
        with ThreadPoolExecutor(len(parts)) as pool:
            done = pool.map(lambda tables: copy_changes(self._server, load.schemas.loading, tables, found), parts)
            return [one for part in done for one in part]

    def _load_whole(self, session: Session, load: _Load, *, granted: bool) -> LoadResult:
        """Fill new tables, and swap them in."""
        schemas = load.schemas
        kept = loads_with_dependents(session, schemas.main, self._views, load.emptied)
        wanted = Swap(
            schemas=schemas,
            views=self._views,
            snapshot=load.snapshot.manifest.snapshot,
            fresh=load.tables,
            before=load.loads,
            after=loads_afterwards(load.loads, load.fresh, load.gone, kept),
            granted=granted,
        )
        staged, keyed = self._fill(load, wanted.fresh_loads)
        create_loaded_tables(session, schemas.loading, wanted.after)
        create_snapshots(session, schemas.loading, load.known, wanted.after)
        keep_snapshots(session, schemas, load.unreadable)
        before = transactions_before(session)
        absent, violated = self._add_foreign_keys(session, schemas, keyed)
        if staged.left_out or violated:  # a whole load makes again what rows of this one do not allow
            forget_rules(session, schemas.loading, wanted.fresh_loads.values())
        staged.left_out += absent + violated
        wait_for_older(session, before, self._seconds)
        swap(session, wanted, self._seconds)
        for one in wanted.shortened:
            remove_unseen_rows(session, schemas.main, one)
        for one in wanted.closing:
            validate_closed(session, schemas.main, one)
        staged.notes += [
            f"The tables of snapshot {name}, which the data folder has no more, stay: other views depend on them. Views over "
            f"{self._views} would follow the newest tables instead."
            for name in sorted({name for one in kept for name in one.snapshots})
        ]
        return staged

    def _fill(self, load: _Load, loads: Mapping[str, WholeLoad]) -> tuple[LoadResult, list[KeyedTable]]:
        """Create, fill and key the tables in parallel. `loads`: table → its load."""
        schemas, snapshot = load.schemas, load.snapshot

        def fill(table: Table) -> tuple[CopyProgress, KeyedTable]:
            with self._server.copier() as cursor:
                cursor.execute(
                    create_table(schemas.loading, table)
                )  # with its rows: so a server with wal_level = minimal writes them only once
                copied = copy_table(cursor, schemas.loading, table, load.data, snapshot)
            with self._server.session() as beside:
                name = loads[table.name].name
                keyed = add_own_keys(beside, schemas.loading, table, schemas.tenant, snapshot.manifest.snapshot, name)
                beside.run(*create_beside(schemas.loading, loads[table.name], table.key[0]))
                return copied, keyed

        with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
            filled = dict(zip(load.tables, pool.map(fill, load.tables), strict=True))
        keyed = [table for _, table in filled.values()]
        staged = LoadResult(
            tenant=schemas.tenant,
            snapshot=snapshot.manifest.snapshot,
            database=self._server.place,
            schema=schemas.main,
            tables={table.name: copied.rows for table, (copied, _) in filled.items()},
            seconds=0,
            left_out=[sentence for table in keyed for sentence in table.left_out],
            notes=[_nul_note(table.name, copied.replaced) for table, (copied, _) in filled.items() if copied.replaced],
        )
        return staged, keyed

    def _add_foreign_keys(
        self, session: Session, schemas: TenantSchemas, keyed: Sequence[KeyedTable]
    ) -> tuple[list[str], list[str]]:
        """Add foreign keys. Returns a sentence for each that was left out: without a key to refer to, and because rows violate it."""

        def validated(key: ForeignKey) -> list[str]:
            with self._server.session() as beside:
                return list(validate(beside, key))

        made, absent = add_foreign_keys(session, schemas.loading, keyed)
        with ThreadPoolExecutor(PARALLEL_TABLES) as pool:
            return absent, [sentence for sentences in pool.map(validated, made) for sentence in sentences]


@dataclass(frozen=True)
class _Load:
    """What a load begins with: its tables, the loads that are there, and the snapshots of the data folder."""

    schemas: TenantSchemas
    data: DataFolder
    snapshot: Snapshot
    tables: Sequence[Table]
    loads: Loads
    known: Sequence[Snapshot]
    unreadable: Sequence[str]
    """The snapshots with a damaged manifest: what the database has of them stays."""

    @cached_property
    def gone(self) -> frozenset[str]:
        """The snapshots in the database that the data folder has no more."""
        complete = {snapshot.manifest.snapshot for snapshot in self.known if snapshot.manifest.complete}
        there = {name for loads in self.loads.values() for load in loads for name in load.snapshots}
        return frozenset(there - complete - {*self.unreadable})

    @property
    def emptied(self) -> list[WholeLoad]:
        """The loads of which no snapshot is left."""
        return [load for loads in self.loads.values() for load in loads if self.gone.issuperset(load.snapshots)]

    @property
    def fresh(self) -> list[WholeLoad]:
        """The loads of new tables."""
        name, tables = self.snapshot.manifest.snapshot, self.snapshot.manifest.tables
        return [
            WholeLoad(
                table.name,
                name,
                (name,),
                name,
                load_rules(table, self.snapshot),
                tables[table.name].sha256,
            )
            for table in self.tables
        ]


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


def _nul_note(table: str, count: int) -> str:
    return f"{table}: {count:,} values have the character NUL, which no text in Postgres can have; U+FFFD stands in its place."


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
