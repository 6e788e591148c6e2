"""A snapshot into the database: fresh tables, filled and keyed, then shown all at once."""

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
from pipelines.store.postgres.analysts import WITHOUT, prepare_role
from pipelines.store.postgres.copying import Copied, copy_table
from pipelines.store.postgres.definitions import (
    create_table,
    fitting,
    history_name,
    listed,
    sql_type,
    staged_columns,
)
from pipelines.store.postgres.keys import ForeignKey, Keyed, add_foreign_keys, add_own_keys, validate
from pipelines.store.postgres.postgres_errors import complaints, midway
from pipelines.store.postgres.readers import transactions_before, wait_for_older
from pipelines.store.postgres.schemas import (
    Place,
    clear_loading,
    columns_of,
    held,
    place_of,
    prepare_place,
    prepare_views_schema,
)
from pipelines.store.postgres.server import Server, Session
from pipelines.store.postgres.swapping import VIEWS_LOCK, Exchange, exchange
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

AT_ONCE = 2
"""Tables that are filled at once: while one waits for the server, another has rows for it."""


class Staged(msgspec.Struct, kw_only=True):
    """What a load did."""

    tenant: str
    snapshot: str
    database: str
    """Its address without user and password."""
    schema: str
    tables: dict[str, int]
    """Table → rows that were loaded; empty where all was there before."""
    seconds: float
    left_out: list[str] = []
    """Keys and indexes that the data does not allow, a sentence each."""
    notes: list[str] = []

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(self.tables.values())


class Database:
    """Where the staged tables of all tenants go. `views`: schema over all of them; `seconds`: how long to wait for readers."""

    def __init__(self, address: str, views: str = "library", seconds: float = 60) -> None:
        self._server = Server(address)
        self._views = views
        self._seconds = seconds

    @property
    def place(self) -> str:
        """Its address without user and password."""
        return self._server.place

    @property
    def secret(self) -> str:
        """The password in its address."""
        return self._server.secret

    def held(self, tenant: str) -> list[str]:
        """The snapshots of a tenant that can be asked here, oldest first."""
        with self._session(tenant, "Looking at") as session:
            place = place_of(tenant, self._views)
            names = {name for (name,) in session.rows("SELECT nspname FROM pg_namespace")}
            found = held(session, place.schema) if place.schema in names else {}
            return sorted({snapshot for tables in found.values() for snapshot in tables})

    def load(self, data: DataFolder, snapshot: Snapshot) -> Staged:
        """Copy one complete snapshot, and show it; the tables of its tenant show the newest of those that are loaded."""
        tenant, begun = snapshot.manifest.tenant, time.monotonic()
        place = place_of(tenant, self._views)
        with self._session(tenant, f"Loading {snapshot.name} into") as session, _alone(session, place):
            granted = self._prepare(session, place)
            try:
                staged, keyed = self._fill(session, data, snapshot, place)
                self._show(session, data, place, staged, keyed, granted=granted)
            finally:
                with suppress(psycopg.Error):  # what went wrong first is what counts; the next load clears it
                    clear_loading(session, place)
        staged.notes += [] if granted else [WITHOUT]
        staged.seconds = round(time.monotonic() - begun, 3)
        return staged

    @contextmanager
    def _session(self, tenant: str, trying: str) -> Iterator[Session]:
        again = f"bookferry stage {tenant}"
        with (
            complaints(trying, self._server.place, self._server.secret, again),
            self._server.session() as session,
            midway(trying, self._server.place, again),
        ):
            yield session

    def _prepare(self, session: Session, place: Place) -> bool:
        """Role and schemas; whether there is a role to grant to."""
        with session.transaction():
            session.run(f"SELECT pg_advisory_xact_lock({VIEWS_LOCK})")  # two tenants may be the first at once
            prepare_views_schema(session, self._views)
            prepare_place(session, place)
        return prepare_role(session)

    def _fill(self, session: Session, data: DataFolder, snapshot: Snapshot, place: Place) -> tuple[Staged, list[Keyed]]:
        """Make, copy and key the tables, some at a time."""
        tables, notes = _readable(data, snapshot)

        def fill(table: Table) -> tuple[Copied, Keyed]:
            with self._server.copier() as cursor:
                cursor.execute(
                    creating[table]
                )  # with its rows: so a server with wal_level = minimal writes them only once
                copied = copy_table(cursor, place.loading, table, data, snapshot)
            with self._server.session() as beside:
                return copied, add_own_keys(beside, place.loading, table, place.tenant, snapshot.manifest.snapshot)

        creating = {table: create_table(place.loading, table, _beside(session, place, table)) for table in tables}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            filled = dict(zip(tables, pool.map(fill, tables), strict=True))
        notes += [_replaced(table, copied.replaced) for table, (copied, _) in filled.items() if copied.replaced]
        keyed = [one for _, one in filled.values()]
        staged = Staged(
            tenant=place.tenant,
            snapshot=snapshot.manifest.snapshot,
            database=self._server.place,
            schema=place.schema,
            tables={table.name: copied.rows for table, (copied, _) in filled.items()},
            seconds=0,
            left_out=[sentence for one in keyed for sentence in one.left_out],
            notes=notes,
        )
        return staged, keyed

    def _refer(self, session: Session, place: Place, keyed: Sequence[Keyed]) -> list[str]:
        """Foreign keys; what could not be made, a sentence each."""

        def told(key: ForeignKey) -> list[str]:
            with self._server.session() as beside:
                return list(validate(beside, key))

        made, left_out = add_foreign_keys(session, place.loading, keyed)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return left_out + [sentence for sentences in pool.map(told, made) for sentence in sentences]

    def _show(
        self, session: Session, data: DataFolder, place: Place, staged: Staged, keyed: Sequence[Keyed], *, granted: bool
    ) -> None:
        tables = [TABLES[name] for name in staged.tables]
        known = data.snapshots(place.tenant)
        there = {name: set(snapshots) for name, snapshots in held(session, place.schema).items()}
        gone = frozenset(
            set().union(*there.values()) - {one.manifest.snapshot for one in known if one.manifest.complete}
        )
        for table in tables:
            there.setdefault(table.name, set()).add(staged.snapshot)
        _list_snapshots(session, place, known, there)
        before = transactions_before(session)
        staged.left_out += self._refer(session, place, keyed)
        wait_for_older(session, before, self._seconds)
        wanted = Exchange(place, self._views, staged.snapshot, tables, gone, granted)
        exchange(session, wanted, self._seconds)
        staged.notes += wanted.notes


def _readable(data: DataFolder, snapshot: Snapshot) -> tuple[list[Table], list[str]]:
    """The tables of a snapshot that we have the keys for; what is left out is told."""
    manifest = snapshot.manifest
    present = [table for name, table in TABLES.items() if name in manifest.tables]
    locked = [table for table in present if (key := manifest.tables[table.name].key) and data.keys.get(key) is None]
    if not locked:
        return present, []
    names = ", ".join(table.name for table in locked)
    told = f"{names}: not loaded, because what is personal is encrypted and its key is not here. {data.keys.why_not}"
    return [table for table in present if table not in locked], [told]


def _replaced(table: Table, count: int) -> str:
    what = "which no text in Postgres can; U+FFFD stands in its place"
    return f"{table.name}: {count:,} values hold the character NUL, {what}."


def _beside(session: Session, place: Place, table: Table) -> dict[str, str]:
    """Columns of the history that the description has no more. One whose type has changed cannot be in one history with itself."""
    name = history_name(table.name)
    there = columns_of(session, place.schema, [name]).get(name, {})
    wanted = {column.name: sql_type(column) for column in staged_columns(table)}
    for column, kind in wanted.items():
        if there.get(column, kind) != kind:
            raise ConfigurationError(
                f"{place.schema}.{name} was made by another version of Bookferry: {column} is {there[column]} there and {kind} now. "
                f"Nothing but the data folder is needed to make it anew: DROP SCHEMA {quoted(place.schema)} CASCADE, then run "
                f"`bookferry stage {place.tenant} --history`."
            )
    return {column: kind for column, kind in there.items() if column not in wanted}


def _list_snapshots(session: Session, place: Place, known: Sequence[Snapshot], there: dict[str, set[str]]) -> None:
    """The fresh table of snapshots: the complete ones that are loaded, with the resources that are, and the partial ones."""
    columns = SNAPSHOTS.columns
    described = ", ".join(f"{quoted(one.name)} {sql_type(one)}" for one in columns)
    name = quoted(place.loading, SNAPSHOTS.name)
    key = quoted(fitting(f"{SNAPSHOTS.name}_pkey"))
    session.run(
        f"CREATE TABLE {name} ({described}, CONSTRAINT {key} PRIMARY KEY ({listed(SNAPSHOTS.key)}))",
        f"COMMENT ON TABLE {name} IS {literal(f'{SNAPSHOTS.comment} Complete ones are listed where they are loaded.')}",
        *(f"COMMENT ON COLUMN {name}.{quoted(one.name)} IS {literal(one.comment)}" for one in columns),
    )
    for snapshot in known:
        manifest = snapshot.manifest
        loaded = [one for one in manifest.resources if manifest.snapshot in there.get(STAGED[one][0].name, ())]
        if manifest.complete and not loaded:
            continue
        row = {**row_of(snapshot), **({"resources": ",".join(loaded)} if manifest.complete else {})}
        values = ", ".join(f"{literal(str(row[one.name]))}::{sql_type(one)}" for one in columns)
        session.run(f"INSERT INTO {name} VALUES ({values})")  # noqa: S608  quoted


@contextmanager
def _alone(session: Session, place: Place) -> Iterator[None]:
    """One load of a tenant at a time, whichever machine it runs on; the server takes the lock back when the session ends."""
    digest = hashlib.sha256(f"bookferry load {place.schema}".encode()).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    if not session.value("SELECT pg_try_advisory_lock(%s)", number):
        raise TenantBusyError(
            f"Another run is loading '{place.tenant}' into this database at this moment. Wait until it ends, then run this again if you "
            "still need to."
        )
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            session.run(f"SELECT pg_advisory_unlock({number})")
