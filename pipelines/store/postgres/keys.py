"""Keys and indexes of filled tables. One that the rows do not allow is left out and reported; the load goes on.

None of the statements keeps readers waiting but those that drop a key or make a column NOT NULL, which need the table for a moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import psycopg

from pipelines.records.tables.description import Column, Table
from pipelines.store.parquet import quoted
from pipelines.store.postgres.definitions import column_list, fitting_name
from pipelines.store.postgres.server import Session


@dataclass(frozen=True)
class Keyed:
    """A table of the database with the keys of a description. `suffix`: what follows the described names, of its parents, too."""

    schema: str
    table: Table
    suffix: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return f"{self.table.name}{self.suffix}"

    @property
    def relation(self) -> str:
        """Its quoted name."""
        return quoted(self.schema, self.name)

    def part(self, end: str) -> str:
        """The name of a key or index."""
        return fitting_name(f"{self.name}_{end}")

    @property
    def references(self) -> list[Column]:
        """The columns with rows of other tables."""
        return [column for column in self.table.columns if column.references]

    def lacks_any(self, part_names: Collection[str]) -> bool:
        """Whether its primary key, an index or NOT NULL is not among `part_names`."""
        return not {self.part("pkey"), *self.indexes, *self.table.required}.issubset(part_names)

    def foreign_key(self, column: Column) -> str:
        """The name of a foreign key."""
        return self.part(f"{column.name}_fkey")

    @property
    def indexes(self) -> dict[str, tuple[str, ...]]:
        """Name → columns of the indexes on searched and referring columns, unless the primary key begins with them."""
        columns = dict.fromkeys([*self.table.indexes, *((column.name,) for column in self.references)])
        return {self.part("_".join(names)): names for names in columns if names != self.table.key[: len(names)]}


def parts(session: Session, schema: str) -> dict[str, set[str]]:
    """Table → the names of its keys and indexes, and of its columns that are NOT NULL."""
    rows = session.rows(
        """SELECT relname,
                  ARRAY(SELECT conname::text FROM pg_constraint WHERE conrelid = kept.oid)
                  || ARRAY(SELECT own.relname::text FROM pg_index JOIN pg_class AS own ON own.oid = indexrelid WHERE indrelid = kept.oid)
                  || ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = kept.oid AND attnotnull AND attnum > 0)
           FROM pg_class AS kept WHERE relkind = 'r' AND relnamespace = to_regnamespace(%s)""",
        quoted(schema),
    )
    return {relation: {*names} for relation, names in rows}


def add_keys(session: Session, keyed: Keyed, part_names: Collection[str]) -> list[str]:
    """Add the primary key, indexes, NOT NULL and statistics that `part_names` lacks. Returns a sentence for each that rows do not allow.

    The table has a key without empty or repeated values.
    """
    relation, left_out, added = keyed.relation, [*_not_null(session, keyed, part_names)], False
    if keyed.part("pkey") not in part_names:
        name, added = quoted(keyed.part("pkey")), True
        session.run(
            f"CREATE UNIQUE INDEX {name} ON {relation} ({column_list(keyed.table.key)})",
            f"ALTER TABLE {relation} ADD CONSTRAINT {name} PRIMARY KEY USING INDEX {name}",
        )
    for name, columns in keyed.indexes.items():
        if name not in part_names:
            added = True
            try:
                session.run(f"CREATE INDEX {quoted(name)} ON {relation} ({column_list(columns)})")
            except psycopg.errors.ProgramLimitExceeded:
                left_out.append(
                    f"{keyed.table.name}: no index on ({', '.join(columns)}), because some values are too long for one."
                )
    if added:
        session.run(f"ANALYZE {relation}")
    return left_out


def add_foreign_keys(session: Session, keyed: Keyed, part_names: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Add the foreign keys that `part_names`, by table, lacks. Yields a sentence for each that cannot be added."""
    for column in keyed.references:
        parent, _, target = column.references.partition(".")
        begin = f"{keyed.table.name}: no foreign key from {column.name} to {column.references}, because"
        name, referred = quoted(keyed.foreign_key(column)), f"{parent}{keyed.suffix}"
        if keyed.foreign_key(column) in part_names.get(keyed.name, ()):
            continue
        if referred not in part_names:
            yield f"{begin} {parent} was not loaded with it."
            continue
        session.run(
            f"ALTER TABLE {keyed.relation} ADD CONSTRAINT {name} FOREIGN KEY ({quoted(column.name)}) "
            f"REFERENCES {quoted(keyed.schema, referred)} ({quoted(target)}) DEFERRABLE INITIALLY DEFERRED NOT VALID"
        )
        try:
            session.run(f"ALTER TABLE {keyed.relation} VALIDATE CONSTRAINT {name}")
        except psycopg.errors.ForeignKeyViolation:
            session.run(f"ALTER TABLE {keyed.relation} DROP CONSTRAINT {name}")
            yield f"{begin} some rows name one that is not there."


def dropping(keyed: Keyed, error: psycopg.Error) -> str | None:
    """The statement that drops what this error is about; None if that is no key of ours."""
    diagnosis = error.diag
    if diagnosis.table_name is not None and diagnosis.table_name != keyed.name:
        return None
    if isinstance(error, psycopg.errors.NotNullViolation) and diagnosis.column_name in keyed.table.required:
        return f"ALTER TABLE {keyed.relation} ALTER COLUMN {quoted(diagnosis.column_name)} DROP NOT NULL"
    name = diagnosis.constraint_name or ""
    if name in map(keyed.foreign_key, keyed.references):
        return f"ALTER TABLE {keyed.relation} DROP CONSTRAINT {quoted(name)}"
    if isinstance(error, psycopg.errors.ProgramLimitExceeded) and name in keyed.indexes:
        return f"DROP INDEX {quoted(keyed.schema, name)}"
    return None


def _not_null(session: Session, keyed: Keyed, part_names: Collection[str]) -> Iterator[str]:
    """Set columns NOT NULL; all in one pass over the rows, if they allow it."""
    lacking = {
        name: f"ALTER COLUMN {quoted(name)} SET NOT NULL" for name in keyed.table.required if name not in part_names
    }
    try:
        if lacking:
            session.run(f"ALTER TABLE {keyed.relation} {', '.join(lacking.values())}")
    except psycopg.errors.NotNullViolation:
        for name, clause in lacking.items():
            try:
                session.run(f"ALTER TABLE {keyed.relation} {clause}")
            except psycopg.errors.NotNullViolation:
                yield f"{keyed.table.name}: {name} may be empty, because it is in some rows."
