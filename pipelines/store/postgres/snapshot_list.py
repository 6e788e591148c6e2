"""The table `snapshots` of a library: the complete snapshots that are loaded, with their loaded resources, and the partial ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pipelines.records.tables.registry import STAGED
from pipelines.store.catalogue import SNAPSHOTS, row_of
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.definitions import column_list, comments, fitting_name, sql_type
from pipelines.store.postgres.schemas import TenantSchemas, columns_of
from pipelines.store.postgres.server import Session
from pipelines.store.postgres.whole_loads import Loads
from pipelines.store.snapshots.snapshots import Snapshot


def create_snapshots(session: Session, schema: str, known: Sequence[Snapshot], loads: Loads) -> None:
    """Create and fill the table. `known`: the snapshots of the data folder; `loads`: those of the database."""
    columns = SNAPSHOTS.columns
    described = ", ".join(f"{quoted(column.name)} {sql_type(column)}" for column in columns)
    key = quoted(fitting_name(f"{SNAPSHOTS.name}_pkey"))
    session.run(
        f"CREATE TABLE {quoted(schema, SNAPSHOTS.name)} ({described}, CONSTRAINT {key} PRIMARY KEY ({column_list(SNAPSHOTS.key)}))",
        *comments(
            "TABLE",
            schema,
            SNAPSHOTS.name,
            f"{SNAPSHOTS.comment} Complete ones are listed where they are loaded.",
            columns,
        ),
        *_rows(schema, known, loads),
    )


def replace_snapshots(
    session: Session, schema: str, known: Sequence[Snapshot], loads: Loads, unreadable: Collection[str]
) -> None:
    """Write the rows anew, in the caller's transaction. Those of `unreadable` snapshots stay as they are."""
    others = f"snapshot <> ALL (ARRAY[{', '.join(map(literal, unreadable))}]::text[])"
    session.run(f"DELETE FROM {quoted(schema, SNAPSHOTS.name)} WHERE {others}", *_rows(schema, known, loads))  # noqa: S608  quoted


def keep_snapshots(session: Session, schemas: TenantSchemas, unreadable: Collection[str]) -> None:
    """Copy the rows of `unreadable` snapshots from the table that is there into the new one."""
    there = columns_of(session, schemas.main, [SNAPSHOTS.name]).get(SNAPSHOTS.name, {})
    if unreadable and there:
        columns = column_list(tuple(column.name for column in SNAPSHOTS.columns if column.name in there))
        session.run(
            f"INSERT INTO {quoted(schemas.loading, SNAPSHOTS.name)} ({columns}) SELECT {columns} "  # noqa: S608  quoted
            f"FROM {quoted(schemas.main, SNAPSHOTS.name)} WHERE snapshot IN ({', '.join(map(literal, unreadable))})"
        )


def _rows(schema: str, known: Sequence[Snapshot], loads: Loads) -> Iterator[str]:
    there = {table: {name for load in ones for name in load.snapshots} for table, ones in loads.items()}
    for snapshot in known:
        manifest = snapshot.manifest
        loaded = [
            resource for resource in manifest.resources if manifest.snapshot in there.get(STAGED[resource][0].name, ())
        ]
        if manifest.complete and not loaded:
            continue
        row = {**row_of(snapshot), **({"resources": ",".join(loaded)} if manifest.complete else {})}
        values = ", ".join(f"{literal(str(row[column.name]))}::{sql_type(column)}" for column in SNAPSHOTS.columns)
        yield f"INSERT INTO {quoted(schema, SNAPSHOTS.name)} VALUES ({values})"  # noqa: S608  quoted
