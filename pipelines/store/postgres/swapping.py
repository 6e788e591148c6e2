"""The exchange of a tenant's tables for fresh ones, and of the views over them: one transaction, short locks, all or nothing (I5).

The newest tables are themselves the newest partitions of their histories, so that nothing is copied: the ones before are renamed, the
fresh ones take their names and are attached. Whoever reads keeps what they began with; the exchange waits for them, briefly and again and
again, so that readers hardly wait for it, and no deadlock ever ends one of them.
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
from pipelines.store.postgres.postgres_errors import KEPT
from pipelines.store.postgres.readers import in_the_way
from pipelines.store.postgres.schemas import Held, Place, columns_of, held, tenants_here
from pipelines.store.postgres.server import Session
from pipelines.store.postgres.views import Source, show, to_replace, wanted_views

VIEWS_LOCK = 0x626F6F6B76696577
"""Number of the advisory lock that one exchange at a time holds: the views are of all tenants."""

MOST_PATIENCE = 0.4
"""Seconds in which all locks must be had: readers queue behind whoever waits for one."""

PAUSES = (0.1, 0.2, 0.4, 0.8)
"""Seconds between two tries, the last one for all that follow; up to twice as long, so that two loads do not keep step."""


@dataclass
class Exchange:
    """What is to change of one tenant. `fresh`: tables of `snapshot` that wait in the schema to load into; `gone`: snapshots to drop."""

    place: Place
    views: str
    snapshot: str
    fresh: Sequence[Table]
    gone: frozenset[str]
    granted: bool
    notes: list[str] = field(default_factory=list)


def exchange(session: Session, wanted: Exchange, seconds: float) -> None:
    """Make it so. After so many seconds of readers who hold locks it is a `TemporaryError` that names them."""
    patience, hot = _patience(session), list[str]()
    until, pauses = time.monotonic() + seconds, iter(PAUSES)
    while True:
        try:
            with session.transaction():
                _exchange(session, wanted, patience, hot)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected):
            if time.monotonic() >= until:
                who = "; ".join(in_the_way(session, (wanted.place.schema, wanted.views))) or "it has just ended"
                raise TemporaryError(
                    f"The new tables are loaded, but were not shown: for {seconds:g} seconds some transaction held locks on the old ones "
                    f"({who}). {KEPT}. When it has ended, run `bookferry stage`; `wait_seconds` in [postgres] of bookferry.toml says how "
                    "long to wait."
                ) from None
            time.sleep(next(pauses, PAUSES[-1]) * random.uniform(1, 2))  # noqa: S311  no secret
        else:
            return


def _patience(session: Session) -> float:
    """Seconds; well below the server's, after which it looks for a deadlock and would end whoever waits."""
    milliseconds: int = session.value("SELECT setting::integer FROM pg_settings WHERE name = 'deadlock_timeout'")
    return max(0.01, min(MOST_PATIENCE, milliseconds / 1000 * 0.4))


def _exchange(session: Session, wanted: Exchange, patience: float, hot: list[str]) -> None:
    place, fresh = wanted.place, {table.name: table for table in wanted.fresh}
    session.run(
        f"SET LOCAL lock_timeout = {round(patience * 1000)}",
        f"SET LOCAL statement_timeout = {round(patience * 1000)}",
        f"SELECT pg_advisory_xact_lock({VIEWS_LOCK})",
    )
    holding = held(session, place.schema)
    after = _after(holding, wanted, fresh)
    histories = _histories(session, place, wanted.fresh)
    there = columns_of(session, wanted.views, [view.table.name for view in wanted_views({})])
    changed = {SNAPSHOTS.name, *fresh, *histories}
    changed |= {name for name in holding if max(holding[name]) not in after[name]}  # what was newest is gone
    views = to_replace(there, changed)
    _lock(
        session, [quoted(wanted.views, name) for name in views if name in there], _tables(session, wanted, holding), hot
    )
    for statements in histories.values():
        session.run(*statements)
    show(session, wanted.views, _sources(session, wanted, holding, after), there, views)
    replaced = sorted({names[wanted.snapshot] for names in holding.values() if wanted.snapshot in names})
    if replaced:
        session.run(f"DROP TABLE {', '.join(quoted(place.schema, name) for name in replaced)}")
    _drop_gone(session, wanted, holding)
    session.run(*_renames(place, holding, after, set(fresh), wanted.snapshot))
    session.run(f"DROP TABLE IF EXISTS {quoted(place.schema, SNAPSHOTS.name)}", _move(place, SNAPSHOTS.name))
    if wanted.granted:
        session.run(*_grants(session, wanted, after))


def _tables(session: Session, wanted: Exchange, holding: Held) -> list[str]:
    """What the tenant's readers lock: histories, the newest tables, and what will be dropped."""
    dropped = wanted.gone | {wanted.snapshot}
    names = [
        name
        for table, snapshots in holding.items()
        for name in (history_name(table), *(at for one, at in snapshots.items() if at == table or one in dropped))
    ]
    there = columns_of(session, wanted.place.schema, [*names, SNAPSHOTS.name])
    return [quoted(wanted.place.schema, name) for name in there]


def _lock(session: Session, views: Sequence[str], tables: Sequence[str], hot: list[str]) -> None:
    """All locks in one statement that the server ends when it takes too long, so that readers wait for no more than a moment.

    Views come before tables, as in a query. What could not be had in time comes first in the next try: whoever keeps us from it begins
    there, and then waits for it without holding what we need. An owner who stays the owner is the way to lock a view and nothing below.
    """
    statements = [f"ALTER VIEW {name} OWNER TO CURRENT_USER" for name in views]
    statements += [f"LOCK TABLE ONLY {name} IN ACCESS EXCLUSIVE MODE" for name in tables]
    statements.sort(key=lambda one: hot.index(one) if one in hot else len(hot))
    try:
        if statements:
            session.run(f"DO {literal('BEGIN ' + '; '.join(statements) + '; END')}")
    except psycopg.Error as error:
        context = error.diag.context or ""
        failed = next((one for one in statements if f'"{one}"' in context), None)
        if failed is not None:
            hot[:] = [failed, *(one for one in hot if one != failed)]
        raise
    session.run("SET LOCAL statement_timeout = 0")


def _histories(session: Session, place: Place, fresh: Sequence[Table]) -> dict[str, list[str]]:
    """History → what makes it, or what gives it the columns that an older one lacks; only those where something is to be done."""
    names = [history_name(table.name) for table in fresh]
    there = columns_of(session, place.schema, names)
    made: dict[str, list[str]] = {}
    for table, name in zip(fresh, names, strict=True):
        if name not in there:
            made[name] = list(create_history(place.schema, table))
            continue
        lacking = [column for column in table.columns if column.name not in there[name]]
        if lacking:
            relation = quoted(place.schema, name)
            made[name] = [f"ALTER TABLE {relation} ADD COLUMN {quoted(one.name)} {sql_type(one)}" for one in lacking]
    return made


def _after(holding: Held, wanted: Exchange, fresh: dict[str, Table]) -> Held:
    """What the schema will hold: table → snapshot → name, the newest of each under the table's own name."""
    after: Held = {}
    for name in {**holding, **fresh}:
        snapshots = set(holding.get(name, {})) - wanted.gone - {wanted.snapshot}
        if name in fresh:
            snapshots.add(wanted.snapshot)
        newest = max(snapshots, default="")
        after[name] = {one: name if one == newest else partition_name(name, one) for one in sorted(snapshots)}
    return after


def _sources(session: Session, wanted: Exchange, holding: Held, after: Held) -> dict[str, list[Source]]:
    """What each view will show. It is made before the tables are renamed, so that this tenant's are named as they are now."""
    place = wanted.place
    now: dict[str, list[tuple[str, str]]] = {}
    for name, snapshots in after.items():
        now.setdefault(history_name(name), []).append((place.schema, history_name(name)))
        if snapshots:
            newest = max(snapshots)
            fresh = newest == wanted.snapshot
            now.setdefault(name, []).append((place.loading, name) if fresh else (place.schema, holding[name][newest]))
    now[SNAPSHOTS.name] = [(place.loading, SNAPSHOTS.name)]
    for other in tenants_here(session):
        if other.schema != place.schema:
            for name in (*TABLES, *map(history_name, TABLES), SNAPSHOTS.name):
                now.setdefault(name, []).append((other.schema, name))
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


def _renames(place: Place, holding: Held, after: Held, fresh: set[str], snapshot: str) -> Iterator[str]:
    """First away from the tables' own names, then to them."""
    moves = [
        (holding[table][one], name)
        for table, snapshots in after.items()
        for one, name in snapshots.items()
        if not (table in fresh and one == snapshot) and holding[table][one] != name
    ]
    for before, name in sorted(moves, key=lambda move: move[1] in after):
        yield f"ALTER TABLE {quoted(place.schema, before)} RENAME TO {quoted(name)}"
    for table in sorted(fresh):
        name = after[table][snapshot]
        if name != table:
            yield f"ALTER TABLE {quoted(place.loading, table)} RENAME TO {quoted(name)}"
        yield _move(place, name)
        relation = quoted(place.schema, name)
        yield f"ALTER TABLE {relation} RESET (autovacuum_enabled)"
        yield f"ALTER TABLE {quoted(place.schema, history_name(table))} ATTACH PARTITION {relation} FOR VALUES IN ({literal(snapshot)})"


def _move(place: Place, name: str) -> str:
    return f"ALTER TABLE {quoted(place.loading, name)} SET SCHEMA {quoted(place.schema)}"


def _drop_gone(session: Session, wanted: Exchange, holding: Held) -> None:
    """Snapshots that the data folder has no more. Where somebody's view hangs on one it stays, as history, and is told."""
    schema = wanted.place.schema
    for snapshot in sorted(wanted.gone):
        now = {
            partition_name(table, snapshot): names[snapshot] for table, names in holding.items() if snapshot in names
        }
        for name, current in now.items():
            if name != current:  # it was the newest; should it stay, another one needs its name
                session.run(f"ALTER TABLE {quoted(schema, current)} RENAME TO {quoted(name)}")
        try:
            with session.transaction():
                session.run(f"DROP TABLE {', '.join(quoted(schema, name) for name in sorted(now))}")
        except psycopg.errors.DependentObjectsStillExist:
            wanted.notes.append(
                f"The tables of snapshot {snapshot}, which the data folder has no more, stay: views of somebody hang on them. Views over "
                f"{wanted.views} would follow the newest tables instead."
            )


def _grants(session: Session, wanted: Exchange, after: Held) -> Iterator[str]:
    place = wanted.place
    there = set(columns_of(session, place.schema, [history_name(name) for name in after]))
    yield from grants_on_schemas([place.schema], wanted.views)
    yield from grants_on_table(place.schema, SNAPSHOTS.name, SNAPSHOTS)
    for name, snapshots in after.items():
        if (table := TABLES.get(name)) is None:
            continue
        if history_name(name) in there:
            yield from grants_on_table(place.schema, history_name(name), table)
        if wanted.snapshot in snapshots:
            yield from grants_on_table(place.schema, snapshots[wanted.snapshot], table)
