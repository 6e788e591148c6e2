"""Swaps a tenant's tables for new ones, and replaces the views over them: one transaction, short locks, all or nothing (I5).

The newest tables are themselves the newest partitions of their histories, so that nothing is copied: the previous ones are renamed, the new
ones take their names and are attached. Readers keep their tables. The swap waits for readers in short tries, so that they hardly wait
for it, and no deadlock ends one of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psycopg

from pipelines.errors import TemporaryError
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import TABLES
from pipelines.store.catalogue import SNAPSHOTS
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.analysts import grants_on_schemas, grants_on_table
from pipelines.store.postgres.definitions import create_history, history_name, partition_name, sql_type
from pipelines.store.postgres.observed import comments_of, observed_in_views, widen, widened_columns
from pipelines.store.postgres.postgres_errors import UNTOUCHED
from pipelines.store.postgres.readers import lock_holders
from pipelines.store.postgres.schemas import LoadedTables, TenantSchemas, columns_of, loaded_tables, tenants_in_database
from pipelines.store.postgres.server import Session
from pipelines.store.postgres.views import Source, create_views, drop_views, views_to_replace, wanted_views

VIEWS_LOCK = 0x626F6F6B76696577
"""Advisory lock of a swap. There is one swap at a time, because the views are shared by all tenants."""

MOST_LOCK_SECONDS = 0.4
"""Seconds in which all locks must be acquired: readers queue behind a waiting lock."""

PAUSES = (0.1, 0.2, 0.4, 0.8)
"""Seconds between two tries, the last one repeated. Each is multiplied by a random factor, so that two loads do not collide again."""


@dataclass
class Swap:
    """The changes of one tenant. `fresh`: new tables of `snapshot` in the loading schema; `gone`: snapshots to drop."""

    schemas: TenantSchemas
    views: str
    snapshot: str
    fresh: Sequence[Table]
    gone: frozenset[str]
    granted: bool
    notes: list[str] = field(default_factory=list)


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
                    f"({who}). {UNTOUCHED}. When it has ended, run `bookferry stage`; `wait_seconds` in [postgres] of bookferry.toml says "
                    "how long to wait."
                ) from None
            time.sleep(next(pauses, PAUSES[-1]) * random.uniform(1, 2))  # noqa: S311  no secret
        else:
            return


def _lock_seconds(session: Session) -> float:
    """Seconds to wait for locks: well below the server's deadlock timeout, after which it might end a waiting reader."""
    milliseconds: int = session.value("SELECT setting::integer FROM pg_settings WHERE name = 'deadlock_timeout'")
    return max(0.01, min(MOST_LOCK_SECONDS, milliseconds / 1000 * 0.4))


def _try_swap(session: Session, wanted: Swap, lock_seconds: float, contended: list[str]) -> None:
    schemas, fresh = wanted.schemas, {table.name: table for table in wanted.fresh}
    session.run(
        f"SET LOCAL lock_timeout = {round(lock_seconds * 1000)}",
        f"SET LOCAL statement_timeout = {round(lock_seconds * 1000)}",
        f"SELECT pg_advisory_xact_lock({VIEWS_LOCK})",
    )
    holding = loaded_tables(session, schemas.main)
    after = _tables_afterwards(holding, wanted, fresh)
    histories, widened = _history_statements(session, schemas, wanted.fresh)
    observed = observed_in_views(session, [schemas, *tenants_in_database(session)], wanted.fresh)
    there = columns_of(session, wanted.views, [view.table.name for view in wanted_views({}, observed)])
    changed = {SNAPSHOTS.name, *fresh, *histories}
    changed |= {name for name in holding if max(holding[name]) not in after[name]}  # what was newest is gone
    views = views_to_replace(there, changed, observed) if not widened else {*there}
    _lock(
        session,
        [quoted(wanted.views, name) for name in views if name in there],
        _tables_to_lock(session, wanted, holding),
        contended,
    )
    if widened:  # a view depends on the types of its columns
        drop_views(session, wanted.views, there)
        there, views = {}, views_to_replace({}, changed, observed)
    for statements in histories.values():
        session.run(*statements)
    create_views(session, wanted.views, _view_sources(session, wanted, holding, after), there, views, observed)
    replaced = sorted({names[wanted.snapshot] for names in holding.values() if wanted.snapshot in names})
    if replaced:
        session.run(f"DROP TABLE {', '.join(quoted(schemas.main, name) for name in replaced)}")
    _drop_gone(session, wanted, holding)
    session.run(*_renames(schemas, holding, after, set(fresh), wanted.snapshot))
    session.run(f"DROP TABLE IF EXISTS {quoted(schemas.main, SNAPSHOTS.name)}", _move(schemas, SNAPSHOTS.name))
    if wanted.granted:
        session.run(*_grants(session, wanted, after))


def _tables_to_lock(session: Session, wanted: Swap, holding: LoadedTables) -> list[str]:
    """The tables that the tenant's readers lock: histories, newest tables, and tables to be dropped."""
    dropped = wanted.gone | {wanted.snapshot}
    names = [
        name
        for table, snapshots in holding.items()
        for name in (
            history_name(table),
            *(at for snapshot, at in snapshots.items() if at == table or snapshot in dropped),
        )
    ]
    there = columns_of(session, wanted.schemas.main, [*names, SNAPSHOTS.name])
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


def _history_statements(
    session: Session, schemas: TenantSchemas, fresh: Sequence[Table]
) -> tuple[dict[str, list[str]], bool]:
    """Returns history → the statements that create it, or that add and widen its columns; and whether any is widened."""
    names = [history_name(table.name) for table in fresh]
    there = columns_of(session, schemas.main, names)
    made: dict[str, list[str]] = {}
    widened = False
    for table, name in zip(fresh, names, strict=True):
        if name not in there:
            made[name] = list(create_history(schemas.main, table))
            continue
        relation = quoted(schemas.main, name)
        lacking = [column for column in table.columns if column.name not in there[name]]
        wider = widened_columns(table, there[name])
        statements = [f"ALTER TABLE {relation} ADD COLUMN {quoted(one.name)} {sql_type(one)}" for one in lacking]
        statements += [*comments_of(relation, lacking), *(widen(relation, column) for column in wider)]
        widened = widened or bool(wider)
        if statements:
            made[name] = statements
    return made, widened


def _tables_afterwards(holding: LoadedTables, wanted: Swap, fresh: dict[str, Table]) -> LoadedTables:
    """The tables after the swap: table → snapshot → name; the newest has the table's own name."""
    after: LoadedTables = {}
    for name in {**holding, **fresh}:
        snapshots = set(holding.get(name, {})) - wanted.gone - {wanted.snapshot}
        if name in fresh:
            snapshots.add(wanted.snapshot)
        newest = max(snapshots, default="")
        after[name] = {
            snapshot: name if snapshot == newest else partition_name(name, snapshot) for snapshot in sorted(snapshots)
        }
    return after


def _view_sources(
    session: Session, wanted: Swap, holding: LoadedTables, after: LoadedTables
) -> dict[str, list[Source]]:
    """The sources of each view. Call it before the renames: this tenant's tables have their old names."""
    schemas = wanted.schemas
    now: dict[str, list[tuple[str, str]]] = {}
    for name, snapshots in after.items():
        now.setdefault(history_name(name), []).append((schemas.main, history_name(name)))
        if snapshots:
            newest = max(snapshots)
            fresh = newest == wanted.snapshot
            now.setdefault(name, []).append((schemas.loading, name) if fresh else (schemas.main, holding[name][newest]))
    now[SNAPSHOTS.name] = [(schemas.loading, SNAPSHOTS.name)]
    for other in tenants_in_database(session):
        if other.main != schemas.main:
            for name in (*TABLES, *map(history_name, TABLES), SNAPSHOTS.name):
                now.setdefault(name, []).append((other.main, name))
    found: dict[str, dict[str, dict[str, str]]] = {}
    for schema in {schema for ones in now.values() for schema, _ in ones}:
        found[schema] = columns_of(
            session, schema, {name for ones in now.values() for at, name in ones if at == schema}
        )
    return {
        view: [
            Source(schema, name, found[schema][name])
            for schema, name in sorted(ones, key=lambda one: one[0].removesuffix("_loading"))
            if name in found[schema]
        ]
        for view, ones in now.items()
    }


def _renames(
    schemas: TenantSchemas, holding: LoadedTables, after: LoadedTables, fresh: set[str], snapshot: str
) -> Iterator[str]:
    """The renames: first away from the tables' own names, then to them."""
    moves = [
        (holding[table][one], name)
        for table, snapshots in after.items()
        for one, name in snapshots.items()
        if not (table in fresh and one == snapshot) and holding[table][one] != name
    ]
    for before, name in sorted(moves, key=lambda move: move[1] in after):
        yield f"ALTER TABLE {quoted(schemas.main, before)} RENAME TO {quoted(name)}"
    for table in sorted(fresh):
        name = after[table][snapshot]
        if name != table:
            yield f"ALTER TABLE {quoted(schemas.loading, table)} RENAME TO {quoted(name)}"
        yield _move(schemas, name)
        relation = quoted(schemas.main, name)
        yield f"ALTER TABLE {relation} RESET (autovacuum_enabled)"
        yield f"ALTER TABLE {quoted(schemas.main, history_name(table))} ATTACH PARTITION {relation} FOR VALUES IN ({literal(snapshot)})"


def _move(schemas: TenantSchemas, name: str) -> str:
    return f"ALTER TABLE {quoted(schemas.loading, name)} SET SCHEMA {quoted(schemas.main)}"


def _drop_gone(session: Session, wanted: Swap, holding: LoadedTables) -> None:
    """Drop the snapshots that the data folder lacks. If another view depends on one, it stays as history, with a note."""
    schema = wanted.schemas.main
    for snapshot in sorted(wanted.gone):
        now = {
            partition_name(table, snapshot): names[snapshot] for table, names in holding.items() if snapshot in names
        }
        for name, current in now.items():
            if name != current:  # it was the newest: if it stays, its name must be free
                session.run(f"ALTER TABLE {quoted(schema, current)} RENAME TO {quoted(name)}")
        try:
            with session.transaction():
                session.run(f"DROP TABLE {', '.join(quoted(schema, name) for name in sorted(now))}")
        except psycopg.errors.DependentObjectsStillExist:
            wanted.notes.append(
                f"The tables of snapshot {snapshot}, which the data folder has no more, stay: other views depend on them. Views over "
                f"{wanted.views} would follow the newest tables instead."
            )


def _grants(session: Session, wanted: Swap, after: LoadedTables) -> Iterator[str]:
    schemas = wanted.schemas
    there = set(columns_of(session, schemas.main, [history_name(name) for name in after]))
    yield from grants_on_schemas([schemas.main], wanted.views)
    yield from grants_on_table(schemas.main, SNAPSHOTS.name, SNAPSHOTS)
    for name, snapshots in after.items():
        if (table := TABLES.get(name)) is None:
            continue
        if history_name(name) in there:
            yield from grants_on_table(schemas.main, history_name(name), table)
        if wanted.snapshot in snapshots:
            yield from grants_on_table(schemas.main, snapshots[wanted.snapshot], table)
