"""What a library's schema has: `loaded_tables`, its snapshots by table; `snapshots`, what is known of each; and `observed_columns`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from pipelines.errors import StorageError
from pipelines.records.tables.registry import table_of
from pipelines.store.catalogue import SNAPSHOTS, row_of, snapshot_values
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.definitions import column_list, comments, fitting_name, sql_type
from pipelines.store.postgres.observed import OBSERVED_COLUMNS
from pipelines.store.postgres.schemas import columns_of
from pipelines.store.postgres.server import Session
from pipelines.store.snapshots.snapshots import Snapshot

LOADED_TABLES = "loaded_tables"

Loaded = Mapping[str, list[str]]
"""Table → the snapshots that are loaded, oldest first."""


def create_lists(session: Session, schema: str) -> None:
    """Create the three tables, if they are not there. Raises `StorageError` for those of another format."""
    lists = columns_of(session, schema, [*_COLUMNS])
    if lists and {name: [*columns] for name, columns in lists.items()} != _COLUMNS:
        raise StorageError(
            f"The tables in the schema {schema} have the format of an earlier Bookferry. Drop it (DROP SCHEMA {quoted(schema)} CASCADE) "
            "and run `bookferry stage --history`, which loads every snapshot again."
        )
    if lists:
        return
    loaded, observed = quoted(schema, LOADED_TABLES), quoted(schema, OBSERVED_COLUMNS)
    described = ", ".join(f"{quoted(column.name)} {sql_type(column)}" for column in SNAPSHOTS.columns)
    key = quoted(fitting_name(f"{SNAPSHOTS.name}_pkey"))
    session.run(
        f"CREATE TABLE {loaded} (table_name text NOT NULL, snapshot text NOT NULL, PRIMARY KEY (table_name, snapshot))",
        f"COMMENT ON TABLE {loaded} IS 'Which snapshots the tables have.'",
        f"CREATE TABLE {observed} (columns text NOT NULL)",
        f"COMMENT ON TABLE {observed} IS 'The columns of the service''s own fields in all snapshots that were ever loaded.'",
        f"CREATE TABLE {quoted(schema, SNAPSHOTS.name)} ({described}, CONSTRAINT {key} PRIMARY KEY ({column_list(SNAPSHOTS.key)}))",
        *comments(
            "TABLE",
            schema,
            SNAPSHOTS.name,
            f"{SNAPSHOTS.comment} Complete ones are listed where they are loaded.",
            SNAPSHOTS.columns,
        ),
    )


_COLUMNS = {
    LOADED_TABLES: ["table_name", "snapshot"],
    SNAPSHOTS.name: [column.name for column in SNAPSHOTS.columns],
    OBSERVED_COLUMNS: ["columns"],
}
"""Table → its columns."""


def read_loaded(session: Session, schema: str) -> dict[str, list[str]]:
    """The snapshots in a library's schema, which has the list."""
    loaded: dict[str, list[str]] = {}
    for table, snapshot in session.rows(f"SELECT table_name, snapshot FROM {quoted(schema, LOADED_TABLES)} ORDER BY 2"):  # noqa: S608  quoted
        loaded.setdefault(table, []).append(snapshot)
    return loaded


def snapshots_of(schema: str, table: str) -> str:
    """A SELECT of the loaded snapshots of a table."""
    return f"SELECT snapshot FROM {quoted(schema, LOADED_TABLES)} WHERE table_name = {literal(table)}"  # noqa: S608  quoted


def note_loaded(session: Session, schema: str, tables: Collection[str], snapshot: str) -> None:
    """Note a snapshot of these tables."""
    rows = ", ".join(f"({literal(table)}, {literal(snapshot)})" for table in tables)
    session.run(f"INSERT INTO {quoted(schema, LOADED_TABLES)} VALUES {rows} ON CONFLICT DO NOTHING")  # noqa: S608  quoted


def forget_snapshots(session: Session, schema: str, gone: Collection[str]) -> None:
    """Remove snapshots from the list."""
    names = ", ".join(map(literal, gone))
    session.run(f"DELETE FROM {quoted(schema, LOADED_TABLES)} WHERE snapshot IN ({names})")  # noqa: S608  quoted


def write_snapshots(session: Session, schema: str, snapshots: Sequence[Snapshot], unreadable: Collection[str]) -> None:
    """Write the table of snapshots anew. `snapshots`: those of the data folder; what is there of `unreadable` ones stays as it is."""
    condition = f"snapshot <> ALL (ARRAY[{', '.join(map(literal, unreadable))}]::text[])"
    name, values = (
        quoted(schema, SNAPSHOTS.name),
        snapshot_values(_rows(snapshots, read_loaded(session, schema)), sql_type),
    )
    session.run(f"DELETE FROM {name} WHERE {condition}", *([f"INSERT INTO {name} VALUES {values}"] if values else []))  # noqa: S608  quoted


def _rows(snapshots: Sequence[Snapshot], loaded: Loaded) -> Iterator[dict[str, str | int | bool]]:
    """The rows of `snapshots`; of complete ones, those that are loaded, with the loaded resources."""
    for snapshot in snapshots:
        manifest, row = snapshot.manifest, row_of(snapshot)
        if manifest.complete:
            row["resources"] = ",".join(
                resource for resource in manifest.resources if manifest.snapshot in loaded.get(table_of(resource), ())
            )
        if row["resources"] or not manifest.complete:
            yield row
