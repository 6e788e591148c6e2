"""Keys and indexes of tables that are filled. A key that the data breaks is left out and told: the load goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg

from pipelines.records.tables.description import Table
from pipelines.store.parquet import quoted
from pipelines.store.postgres.definitions import (
    comments,
    fitting,
    listed,
    partition_name,
    snapshot_columns,
    staged_columns,
)
from pipelines.store.postgres.server import Session


class Keyed(NamedTuple):
    """A table with what its rows allow: whether that is its primary key, and a sentence for each thing that could not be made."""

    table: Table
    primary: bool
    left_out: list[str]


class ForeignKey(NamedTuple):
    """A foreign key that is there for rows to come; whether those that are there keep it is not known yet."""

    relation: str
    name: str
    otherwise: str
    """What to say where they do not."""


def add_own_keys(session: Session, schema: str, table: Table, tenant: str, snapshot: str) -> Keyed:
    """Whose and when, filled columns, primary key, indexes, comments, statistics."""
    unfilled = list(_filled(session, schema, table, list(snapshot_columns(tenant, snapshot))))
    broken = _primary_key(session, schema, table, snapshot)
    left_out = [*broken, *unfilled, *_indexes(session, schema, table, snapshot)]
    session.run(*comments("TABLE", schema, table.name, table.comment, staged_columns(table)))
    session.run(f"ANALYZE {quoted(schema, table.name)}")
    return Keyed(table, not broken, left_out)


def add_foreign_keys(session: Session, schema: str, tables: Sequence[Keyed]) -> tuple[list[ForeignKey], list[str]]:
    """From each table to those that were loaded with it, without a look at the rows; what could not be made, a sentence each.

    Made that way they can be looked at side by side: to make one with a look locks the table that it refers to.
    """
    keyed, loaded = {one.table.name for one in tables if one.primary}, {one.table.name for one in tables}
    made, left_out = list[ForeignKey](), list[str]()
    for one in tables:
        for key in _foreign_keys(session, schema, one.table, keyed, loaded):
            if isinstance(key, str):
                left_out.append(key)
            else:
                made.append(key)
    return made, left_out


def validate(session: Session, key: ForeignKey) -> Iterator[str]:
    """Look whether the rows keep a foreign key; if not it goes, and that is told."""
    try:
        session.run(f"ALTER TABLE {key.relation} VALIDATE CONSTRAINT {key.name}")
    except psycopg.errors.ForeignKeyViolation:
        session.run(f"ALTER TABLE {key.relation} DROP CONSTRAINT {key.name}")
        yield key.otherwise


def _name(table: Table, snapshot: str, end: str) -> str:
    """Of a key or an index: no other snapshot of the table has it, since they end up in one schema."""
    return quoted(fitting(f"{partition_name(table.name, snapshot)}_{end}"))


def _primary_key(session: Session, schema: str, table: Table, snapshot: str) -> list[str]:
    name, columns = _name(table, snapshot, "pkey"), listed(table.key)
    relation = quoted(schema, table.name)
    try:
        session.run(f"ALTER TABLE {relation} ADD CONSTRAINT {name} PRIMARY KEY ({columns})")
    except (psycopg.errors.UniqueViolation, psycopg.errors.NotNullViolation) as error:
        why = "is empty in some rows" if isinstance(error, psycopg.errors.NotNullViolation) else "is not unique"
        session.run(f"CREATE INDEX {_name(table, snapshot, 'key')} ON {relation} ({columns})")
        return [f"{table.name}: no primary key, because ({', '.join(table.key)}) {why}."]
    return []


def _filled(session: Session, schema: str, table: Table, beside: list[str]) -> Iterator[str]:
    """Columns that every row must fill, with other changes `beside`: Postgres reads the rows once for all of them."""
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


def _indexes(session: Session, schema: str, table: Table, snapshot: str) -> Iterator[str]:
    """For what people search by, and for what refers to other tables, unless the primary key begins with it."""
    referring = [(one.name,) for one in table.columns if one.references]
    for columns in dict.fromkeys([*table.indexes, *referring]):
        if columns == table.key[: len(columns)]:
            continue
        name = _name(table, snapshot, "_".join(columns))
        try:
            session.run(f"CREATE INDEX {name} ON {quoted(schema, table.name)} ({listed(columns)})")
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
        relation, name = quoted(schema, table.name), quoted(fitting(f"{table.name}_{column.name}_fkey"))
        session.run(
            f"ALTER TABLE {relation} ADD CONSTRAINT {name} FOREIGN KEY ({quoted(column.name)}) "
            f"REFERENCES {quoted(schema, parent)} ({quoted(target)}) NOT VALID"
        )
        yield ForeignKey(relation, name, f"{begin} some rows name one that is not there.")
