"""Keys and indexes of filled tables. A key that the data violates is left out and reported; the load goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg

from pipelines.records.tables.description import Table
from pipelines.store.parquet import quoted
from pipelines.store.postgres.definitions import (
    column_list,
    comments,
    fitting_name,
    load_name,
    snapshot_columns,
    staged_columns,
)
from pipelines.store.postgres.server import Session


class KeyedTable(NamedTuple):
    """A filled table: whether it has its primary key, and a sentence for each key or index that was left out."""

    table: Table
    primary: bool
    left_out: list[str]


class ForeignKey(NamedTuple):
    """A foreign key that is not validated yet."""

    relation: str
    name: str
    otherwise: str
    """The sentence for the case that rows violate it."""


def add_own_keys(  # noqa: PLR0917  a table and its names
    session: Session, schema: str, table: Table, tenant: str, snapshot: str, load: str = ""
) -> KeyedTable:
    """Add the columns tenant and snapshot, NOT NULL, the primary key, indexes, comments and statistics.

    `load`: the name of the load, which is in the names of its keys; by default that of the snapshot.
    """
    load = load or snapshot
    unfilled = list(_not_null_columns(session, schema, table, list(snapshot_columns(tenant, snapshot))))
    broken = _primary_key(session, schema, table, load)
    left_out = [*broken, *unfilled, *_indexes(session, schema, table, load)]
    session.run(*comments("TABLE", schema, table.name, table.comment, staged_columns(table)))
    session.run(f"ANALYZE {quoted(schema, table.name)}")
    return KeyedTable(table, not broken, left_out)


def add_foreign_keys(session: Session, schema: str, tables: Sequence[KeyedTable]) -> tuple[list[ForeignKey], list[str]]:
    """Add foreign keys between the loaded tables without validation. Returns them, and a sentence for each that was left out.

    They are validated later, in parallel: adding a validated key would lock the table that it refers to.
    """
    keyed, loaded = {filled.table.name for filled in tables if filled.primary}, {filled.table.name for filled in tables}
    made, left_out = list[ForeignKey](), list[str]()
    for filled in tables:
        for key in _foreign_keys(session, schema, filled.table, keyed, loaded):
            if isinstance(key, str):
                left_out.append(key)
            else:
                made.append(key)
    return made, left_out


def validate(session: Session, key: ForeignKey) -> Iterator[str]:
    """Validate a foreign key. If rows violate it, drop it and yield its sentence."""
    try:
        session.run(f"ALTER TABLE {key.relation} VALIDATE CONSTRAINT {key.name}")
    except psycopg.errors.ForeignKeyViolation:
        session.run(f"ALTER TABLE {key.relation} DROP CONSTRAINT {key.name}")
        yield key.otherwise


def _constraint_name(table: Table, load: str, end: str) -> str:
    """The name of a key or index. It has the load in it, because the tables of all loads share a schema."""
    return quoted(fitting_name(f"{load_name(table.name, load)}_{end}"))


def _primary_key(session: Session, schema: str, table: Table, load: str) -> list[str]:
    name, columns = _constraint_name(table, load, "pkey"), column_list(table.key)
    relation = quoted(schema, table.name)
    try:
        session.run(f"ALTER TABLE {relation} ADD CONSTRAINT {name} PRIMARY KEY ({columns})")
    except (psycopg.errors.UniqueViolation, psycopg.errors.NotNullViolation) as error:
        why = "is empty in some rows" if isinstance(error, psycopg.errors.NotNullViolation) else "is not unique"
        session.run(f"CREATE INDEX {_constraint_name(table, load, 'key')} ON {relation} ({columns})")
        return [f"{table.name}: no primary key, because ({', '.join(table.key)}) {why}."]
    return []


def _not_null_columns(session: Session, schema: str, table: Table, beside: list[str]) -> Iterator[str]:
    """Set columns NOT NULL, together with the clauses `beside`, so that Postgres scans the rows once."""
    relation = quoted(schema, table.name)
    wanted = {name: f"ALTER COLUMN {quoted(name)} SET NOT NULL" for name in (*table.key, *table.required)}
    try:
        session.run(f"ALTER TABLE {relation} {', '.join([*beside, *wanted.values()])}")
    except psycopg.errors.NotNullViolation:
        session.run(f"ALTER TABLE {relation} {', '.join(beside)}")
        for name in table.required:
            try:
                session.run(f"ALTER TABLE {relation} {wanted[name]}")
            except psycopg.errors.NotNullViolation:
                yield f"{table.name}: {name} may be empty, because it is in some rows."


def _indexes(session: Session, schema: str, table: Table, load: str) -> Iterator[str]:
    """Create indexes on searched and referring columns, unless the primary key begins with them."""
    referring = [(column.name,) for column in table.columns if column.references]
    for columns in dict.fromkeys([*table.indexes, *referring]):
        if columns == table.key[: len(columns)]:
            continue
        name = _constraint_name(table, load, "_".join(columns))
        try:
            session.run(f"CREATE INDEX {name} ON {quoted(schema, table.name)} ({column_list(columns)})")
        except psycopg.errors.ProgramLimitExceeded:
            yield f"{table.name}: no index on ({', '.join(columns)}), because some values are too long for one."


def _foreign_keys(
    session: Session, schema: str, table: Table, keyed: set[str], loaded: set[str]
) -> Iterator[ForeignKey | str]:
    for column in table.columns:
        if not column.references:
            continue
        parent, _, target = column.references.partition(".")
        begin = f"{table.name}: no foreign key from {column.name} to {column.references}, because"
        if parent not in loaded:
            yield f"{begin} {parent} was not loaded with it."
            continue
        if parent not in keyed:
            yield f"{begin} that has no primary key."
            continue
        relation, name = quoted(schema, table.name), quoted(fitting_name(f"{table.name}_{column.name}_fkey"))
        session.run(
            f"ALTER TABLE {relation} ADD CONSTRAINT {name} FOREIGN KEY ({quoted(column.name)}) "
            f"REFERENCES {quoted(schema, parent)} ({quoted(target)}) NOT VALID"
        )
        yield ForeignKey(relation, name, f"{begin} some rows name one that is not there.")
