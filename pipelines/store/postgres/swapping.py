"""Swaps a tenant's tables for new ones, and replaces the views over them: one transaction, short locks, all or nothing (I5).

Nothing is copied: each load has tables of its own, and the views are made anew over them. Readers keep their tables. The swap waits for
readers in short tries, so that they hardly wait for it, and no deadlock ends one of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import psycopg

from pipelines.errors import TemporaryError
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import TABLES
from pipelines.records.tables.shared_columns import SHA256
from pipelines.store.catalogue import SNAPSHOTS, table_views
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.analysts import grants_on_schemas, grants_on_table, revoked_grants
from pipelines.store.postgres.definitions import history_name
from pipelines.store.postgres.observed import RESOURCE_OF, observed_in_views
from pipelines.store.postgres.postgres_errors import UNTOUCHED
from pipelines.store.postgres.readers import lock_holders
from pipelines.store.postgres.schemas import TenantSchemas, columns_of, tenants_in_database
from pipelines.store.postgres.server import Session
from pipelines.store.postgres.views import (
    Columns,
    Source,
    Sources,
    create_own_views,
    create_views,
    own_views,
    views_to_replace,
    wanted_views,
)
from pipelines.store.postgres.whole_loads import (
    LOADED_TABLES,
    Loads,
    WholeLoad,
    close_load,
    newest_snapshot,
    read_loads,
    shown_snapshots,
)

VIEWS_LOCK = 0x626F6F6B76696577
"""Advisory lock of a swap. There is one swap at a time, because the views are shared by all tenants."""

MOST_LOCK_SECONDS = 0.4
"""Seconds in which all locks must be acquired: readers queue behind a waiting lock."""

PAUSES = (0.1, 0.2, 0.4, 0.8)
"""Seconds between two tries, the last one repeated. Each is multiplied by a random factor, so that two loads do not collide again."""


@dataclass(frozen=True)
class Swap:
    """The changes of one tenant. `fresh`: new tables of `snapshot` in the loading schema; `before`, `after`: its loads."""

    schemas: TenantSchemas
    views: str
    snapshot: str
    fresh: Sequence[Table]
    before: Loads
    after: Loads
    granted: bool

    @property
    def fresh_loads(self) -> dict[str, WholeLoad]:
        """New table → its load, which alone has the snapshot."""
        return {
            table.name: next(load for load in self.after[table.name] if self.snapshot in load.snapshots)
            for table in self.fresh
        }

    @property
    def shortened(self) -> list[WholeLoad]:
        """The loads that lose some of their snapshots, and keep others."""
        there = {one for loads in self.before.values() for one in loads} | {*self.fresh_loads.values()}
        return [one for loads in self.after.values() for one in loads if one not in there]

    @property
    def kept(self) -> list[WholeLoad]:
        """The loads that are there and stay, as they are afterwards."""
        fresh = self.fresh_loads
        return [load for table, loads in self.after.items() for load in loads if load != fresh.get(table)]

    @property
    def dropped(self) -> list[WholeLoad]:
        """The loads that lose all of their snapshots."""
        kept = {(load.table, load.name) for load in self.kept}
        there = (load for loads in self.before.values() for load in loads)
        return [load for load in there if (load.table, load.name) not in kept]

    @property
    def closing(self) -> list[WholeLoad]:
        """The loads of one snapshot that is not the newest any more: nothing will be written into their tables."""
        newest = {table: newest_snapshot(loads) for table, loads in self.after.items()}
        ended = [load for load in self.kept if newest[load.table] not in load.snapshots]
        return [load for load in ended if load.is_single and not load.is_closed]


def swap(session: Session, wanted: Swap, seconds: float) -> None:
    """Carry out the swap. Raises `TemporaryError` with the readers whose locks lasted all these seconds."""
    lock_seconds, contended = _lock_seconds(session), list[str]()
    until, pauses = time.monotonic() + seconds, iter(PAUSES)
    while True:
        try:
            with session.transaction():
                _try_swap(session, wanted, lock_seconds, contended)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected):
            if time.monotonic() >= until:
                who = "; ".join(lock_holders(session, (wanted.schemas.main, wanted.views))) or "it has just ended"
                raise TemporaryError(
                    f"The new tables are loaded, but not visible: for {seconds:g} seconds a transaction held locks on the old ones "
                    f"({who}). {UNTOUCHED}. When it has ended, run `bookferry stage`."
                ) from None
            time.sleep(next(pauses, PAUSES[-1]) * random.uniform(1, 2))  # noqa: S311  no secret
        else:
            return


def _lock_seconds(session: Session) -> float:
    """Seconds to wait for locks: well below the server's deadlock timeout, after which it might end a waiting reader."""
    milliseconds: int = session.value("SELECT setting::integer FROM pg_settings WHERE name = 'deadlock_timeout'")
    return max(0.01, min(MOST_LOCK_SECONDS, milliseconds / 1000 * 0.4))


def _try_swap(session: Session, wanted: Swap, lock_seconds: float, contended: list[str]) -> None:
    schemas = wanted.schemas
    session.run(
        f"SET LOCAL lock_timeout = {round(lock_seconds * 1000)}",
        f"SET LOCAL statement_timeout = {round(lock_seconds * 1000)}",
        f"SELECT pg_advisory_xact_lock({VIEWS_LOCK})",
    )
    others = [tenant for tenant in tenants_in_database(session) if tenant.main != schemas.main]
    there = columns_of(session, wanted.views, [view.table.name for view in wanted_views({}, {})])
    own_there = columns_of(session, schemas.main, [name for table in TABLES for name in _views_of(table)], "v")
    observed = observed_in_views(session, [schemas, *others], wanted.fresh, there)
    changed = {SNAPSHOTS.name, *(name for table in {*wanted.before, *wanted.after} for name in _views_of(table))}
    views = views_to_replace(there, changed, observed)
    _lock(
        session,
        [quoted(wanted.views, name) for name in views if name in there]
        + [quoted(schemas.main, name) for name in own_there],
        _tables_to_lock(session, wanted),
        contended,
    )
    sources = _view_sources(session, wanted, others)
    create_views(session, wanted.views, sources, there, views, observed)
    _create_own_views(session, wanted, sources, own_there)
    session.run(*_drops(session, wanted))
    session.run(*(close_load(schemas.main, load) for load in wanted.closing), *_moves(wanted))
    for name in (SNAPSHOTS.name, LOADED_TABLES):
        session.run(f"DROP TABLE IF EXISTS {quoted(schemas.main, name)}", _move(schemas, name))
    if wanted.granted:
        session.run(*_grants(wanted))


def _create_own_views(session: Session, wanted: Swap, sources: Sources, there: Columns) -> None:
    """Create the views in the tenant's schema."""
    schemas = wanted.schemas
    own = {
        name: [one for one in sources[name] if one.schema in (schemas.main, schemas.loading)]
        for table in wanted.after
        for name in _views_of(table)
    }
    before = {table: there.get(history_name(table), {}) for table in TABLES}
    observed = observed_in_views(session, [schemas], wanted.fresh, before, RESOURCE_OF)
    create_own_views(session, schemas.main, own_views(own, observed), there)


def _views_of(table: str) -> tuple[str, str]:
    return table, history_name(table)


def _tables_to_lock(session: Session, wanted: Swap) -> list[str]:
    """The tables that are dropped, renamed, or get a constraint."""
    names = {SNAPSHOTS.name, LOADED_TABLES}
    for load in wanted.dropped:
        names |= {load.relation, *load.beside}
    for load in wanted.closing:
        names.add(load.relation)
    for load in wanted.kept:
        names |= {*load.beside} if load.is_closed else set()
    there = columns_of(session, wanted.schemas.main, names)
    return [quoted(wanted.schemas.main, name) for name in there]


def _lock(session: Session, views: Sequence[str], tables: Sequence[str], contended: list[str]) -> None:
    """Acquire all locks in one statement with a timeout, so that readers wait for a moment at most.

    Views come before tables, as in a query. A relation that a reader had locked comes first in the next try: the reader begins there, and
    the swap then waits without holding other locks. Changing the owner to itself is the way to lock a view without the tables below it.
    """
    statements = [f"ALTER VIEW {name} OWNER TO CURRENT_USER" for name in views]
    statements += [f"LOCK TABLE ONLY {name} IN ACCESS EXCLUSIVE MODE" for name in tables]
    statements.sort(key=lambda statement: contended.index(statement) if statement in contended else len(contended))
    try:
        if statements:
            session.run(f"DO {literal('BEGIN ' + '; '.join(statements) + '; END')}")
    except psycopg.Error as error:
        context = error.diag.context or ""
        failed = next((statement for statement in statements if f'"{statement}"' in context), None)
        if failed is not None:
            contended[:] = [failed, *(statement for statement in contended if statement != failed)]
        raise
    session.run("SET LOCAL statement_timeout = 0")


def _view_sources(session: Session, wanted: Swap, others: Iterable[TenantSchemas]) -> Sources:
    """The sources of each view. The new tables are in the loading schema still."""
    schemas, fresh = wanted.schemas, wanted.fresh_loads
    found: dict[str, list[tuple[str, Source]]] = {
        SNAPSHOTS.name: [(schemas.main, Source(schemas.loading, SNAPSHOTS.name, {}))]
    }
    for table, loads in wanted.after.items():
        places = [
            _Place(load, schemas.loading, table)
            if load == fresh.get(table)
            else _Place(load, schemas.main, load.relation)
            for load in loads
        ]
        for view, sources in _sources_of_table(table, schemas.loading, places):
            found.setdefault(view, []).extend((schemas.main, source) for source in sources)
    for other in others:
        found[SNAPSHOTS.name].append((other.main, Source(other.main, SNAPSHOTS.name, {})))
        for table, loads in read_loads(session, other.main).items():
            places = [_Place(load, other.main, load.relation) for load in loads]
            for view, sources in _sources_of_table(table, other.main, places):
                found.setdefault(view, []).extend((other.main, source) for source in sources)
    columns = {
        schema: columns_of(
            session, schema, {one.relation for ones in found.values() for _, one in ones if one.schema == schema}
        )
        for schema in {one.schema for ones in found.values() for _, one in ones}
    }
    return {
        view: [
            replace(source, columns=columns[source.schema][source.relation])
            for _, source in sorted(ones, key=lambda one: one[0])
            if source.relation in columns[source.schema]
        ]
        for view, ones in found.items()
    }


@dataclass(frozen=True)
class _Place:
    """Where the table of a load is now."""

    load: WholeLoad
    schema: str
    relation: str


def _sources_of_table(table: str, facts: str, places: Sequence[_Place]) -> Iterator[tuple[str, list[Source]]]:
    """The sources of the two views of a table. `facts`: the schema in which `loaded_tables` is now."""
    view, history = _views_of(table)
    newest = newest_snapshot(place.load for place in places)
    yield history, [source for place in places for source in _sources_of_load(place, facts)]
    for place in places:
        load = place.load
        if newest not in load.snapshots:
            continue
        shown = f"(SELECT max(n.snapshot) FROM {shown_snapshots(facts, load)})"  # noqa: S608  quoted
        if load.is_closed:
            yield view, [Source(place.schema, place.relation, {})]
        elif load.last == newest:
            yield view, [_own_rows(place, shown)]
        else:
            yield (
                view,
                [
                    replace(source, beside=f"{source.beside} AND n.snapshot = {shown}")
                    for source in _sources_of_load(place, facts)
                ],
            )


def _sources_of_load(place: _Place, facts: str) -> list[Source]:
    """The rows of every snapshot of a load."""
    if place.load.is_closed:
        return [Source(place.schema, place.relation, {})]
    own = _own_rows(place, "n.snapshot")
    rows = f" CROSS JOIN {shown_snapshots(facts, place.load, own.beside)} AND r.snapshot <= n.snapshot"
    return [
        replace(own, beside=rows),
        replace(own, relation=place.load.past, beside=f"{rows} AND n.snapshot < r.until"),
    ]


def _own_rows(place: _Place, snapshot: str) -> Source:
    """The rows of a load's table with their checksums in a snapshot, which is an expression. Queries without checksums read no checksum."""
    source = Source(place.schema, place.relation, {}, f'{snapshot} COLLATE "default"')
    if not place.load.has_checksums:
        return source
    checksums = f"{quoted(place.schema, place.load.checksums)} AS c ON c.snapshot = {snapshot} AND c.id = r.id"
    return replace(source, beside=f" LEFT JOIN {checksums}", others={SHA256.name: "coalesce(c.sha256, r.sha256)"})


def _drops(session: Session, wanted: Swap) -> Iterator[str]:
    """The removal of the loads that have no snapshot any more, and of keys that refer to them."""
    main = wanted.schemas.main
    names = [name for load in wanted.dropped for name in (load.relation, *load.beside)]
    names += [name for load in wanted.kept if load.is_closed for name in load.beside]
    referring = session.rows(
        """SELECT child.relname, conname FROM pg_constraint
           JOIN pg_class AS child ON child.oid = conrelid JOIN pg_class AS parent ON parent.oid = confrelid
           WHERE contype = 'f' AND parent.relnamespace = %s::text::regnamespace AND parent.relname = ANY(%s)
             AND child.relnamespace = parent.relnamespace AND child.relname = ANY(%s)""",
        quoted(main),
        names,
        [load.relation for load in wanted.kept],
    )
    for child, constraint in referring:
        yield f"ALTER TABLE {quoted(main, child)} DROP CONSTRAINT {quoted(constraint)}"
    if names:
        yield f"DROP TABLE IF EXISTS {', '.join(quoted(main, name) for name in names)}"


def _moves(wanted: Swap) -> Iterator[str]:
    """The moves of the new tables, under the names of their loads."""
    schemas = wanted.schemas
    for table, load in sorted(wanted.fresh_loads.items()):
        yield f"ALTER TABLE {quoted(schemas.loading, table)} RENAME TO {quoted(load.relation)}"
        yield from (_move(schemas, one) for one in (load.relation, *load.beside))
        yield f"ALTER TABLE {quoted(schemas.main, load.relation)} RESET (autovacuum_enabled)"


def _move(schemas: TenantSchemas, name: str) -> str:
    return f"ALTER TABLE {quoted(schemas.loading, name)} SET SCHEMA {quoted(schemas.main)}"


def loads_with_dependents(session: Session, schema: str, views: str, loads: Iterable[WholeLoad]) -> list[WholeLoad]:
    """Those of these loads on whose tables something else depends. `views`: the schema of our views over all tenants."""
    rows = session.rows(
        """SELECT DISTINCT used.relname::text
           FROM pg_depend AS needs
           JOIN pg_class AS used ON used.oid = needs.refobjid AND needs.refclassid = 'pg_class'::regclass
           LEFT JOIN pg_rewrite AS rule ON rule.oid = needs.objid AND needs.classid = 'pg_rewrite'::regclass
           LEFT JOIN pg_class AS shown ON shown.oid = rule.ev_class
           WHERE used.relnamespace = %s::text::regnamespace AND needs.deptype = 'n'
             AND (needs.classid = 'pg_proc'::regclass OR shown.relnamespace <> %s::text::regnamespace)
             AND NOT (shown.relnamespace = used.relnamespace AND shown.relname = ANY(%s))""",
        quoted(schema),
        quoted(views),
        [name for table in TABLES for name in _views_of(table)],
    )
    names = {name for (name,) in rows}
    return [load for load in loads if names & {load.relation, *load.beside}]


def _grants(wanted: Swap) -> Iterator[str]:
    main = wanted.schemas.main
    yield from grants_on_schemas([main], wanted.views)
    for name in (SNAPSHOTS.name, LOADED_TABLES):
        yield from grants_on_table(main, name, SNAPSHOTS)
    for table in wanted.after:
        for view in table_views(TABLES[table]):
            yield from grants_on_table(main, view.name, view)
    for table, load in wanted.fresh_loads.items():
        for relation in (load.relation, load.past):
            yield from grants_on_table(main, relation, TABLES[table])
        if load.has_checksums:
            yield from revoked_grants(main, load.checksums)
