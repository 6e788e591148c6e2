"""Observed columns (tables/observed_columns.py) in the database. A library's schema lists those of all snapshots that were ever loaded.

The tables of a library keep their values as `jsonb`, whatever their type is. The views of the library have the widest type that any of its
snapshots had, and those over all libraries the widest of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from pipelines.records.shapes.observation import ObservedColumn
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.observed_columns import OBSERVED, united, with_columns
from pipelines.records.tables.registry import STAGED
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.server import Session
from pipelines.store.snapshots.snapshots import Snapshot

OBSERVED_COLUMNS = "observed_columns"

RESOURCE_OF = {tables[0].name: resource for resource, tables in STAGED.items()}
"""Table with a row for each record → its resource; only these have observed columns."""

ObservedOf = Mapping[str, Sequence[ObservedColumn]]
"""Resource → the observed columns of its records."""

_DECODER = msgspec.json.Decoder(dict[str, list[ObservedColumn]])


def loaded_table(table: Table, snapshot: Snapshot) -> Table:
    """A table with the observed columns of a snapshot."""
    return with_observed(table, snapshot.manifest.observed)


def observed_of(table: Table) -> list[Column]:
    """The observed columns of such a table."""
    return [column for column in table.columns if column.comment.startswith(OBSERVED)]


def with_observed(table: Table, observed: ObservedOf, shown: Collection[str] = ()) -> Table:
    """The table with its observed columns. Those that its view has already (`shown`) come first: a view gets new ones at its end only."""
    places = {name: place for place, name in enumerate(shown)}
    columns = observed.get(RESOURCE_OF.get(table.name, ""), ())
    return with_columns(table, sorted(columns, key=lambda column: places.get(column.name, len(places))))


def read_observed(session: Session, schemas: Iterable[str]) -> ObservedOf:
    """The observed columns of the libraries in these schemas, which have the list."""
    columns: dict[str, list[ObservedColumn]] = {}
    for schema in schemas:
        for (listed,) in session.rows(f"SELECT columns FROM {quoted(schema, OBSERVED_COLUMNS)}"):  # noqa: S608  quoted
            for resource, more in _DECODER.decode(listed).items():
                columns[resource] = united([*columns.get(resource, ()), *more])
    return columns


def note_observed(session: Session, schema: str, snapshot: Snapshot) -> None:
    """Add the observed columns of a snapshot to the list of its library."""
    listed = read_observed(session, [schema])
    columns = {
        resource: united([*listed.get(resource, ()), *snapshot.manifest.observed.get(resource, ())])
        for resource in STAGED
    }
    name = quoted(schema, OBSERVED_COLUMNS)
    session.run(f"DELETE FROM {name}", f"INSERT INTO {name} VALUES ({literal(msgspec.json.encode(columns).decode())})")  # noqa: S608  quoted
