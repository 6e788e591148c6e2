"""The primary key and the indexes of filled tables. An index that the rows do not allow is left out and reported; the load goes on.

None of the statements keeps readers waiting but the one that drops an index, which needs the table for a moment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import psycopg

from pipelines.records.tables.description import Table
from pipelines.store.parquet import quoted
from pipelines.store.postgres.definitions import column_list, fitting_name, rows_name
from pipelines.store.postgres.server import Session


@dataclass(frozen=True)
class Keyed:
    """The table of a library's newest rows with the key and the indexes of a description."""

    schema: str
    table: Table

    @property
    def name(self) -> str:
        """Its name."""
        return rows_name(self.table.name)

    @property
    def primary_key(self) -> str:
        """The name of its primary key."""
        return self._part("pkey")

    @property
    def indexes(self) -> dict[str, tuple[str, ...]]:
        """Name → columns of the indexes on searched and referring columns, unless the primary key begins with them."""
        referring = ((column.name,) for column in self.table.columns if column.references)
        columns = dict.fromkeys([*self.table.indexes, *referring])
        return {self._part("_".join(names)): names for names in columns if names != self.table.key[: len(names)]}

    def _part(self, end: str) -> str:
        return fitting_name(f"{self.name}_{end}")


def index_names(session: Session, schema: str) -> dict[str, set[str]]:
    """Table → the names of its indexes, that of its primary key among them."""
    rows = session.rows(
        """SELECT tablename::text, array_remove(array_agg(indexname::text), NULL)
           FROM pg_tables LEFT JOIN pg_indexes USING (schemaname, tablename) WHERE schemaname = %s GROUP BY tablename""",
        schema,
    )
    return {table: {*names} for table, names in rows}


def add_keys(session: Session, keyed: Keyed, present: Collection[str]) -> list[str]:
    """Add the primary key and the indexes that are not `present`. Returns a sentence for each index that the rows do not allow.

    The table has a key without empty or repeated values.
    """
    relation = quoted(keyed.schema, keyed.name)
    lacking = {name: columns for name, columns in keyed.indexes.items() if name not in present}
    left_out = list[str]()
    if keyed.primary_key not in present:
        name = quoted(keyed.primary_key)
        session.run(
            f"CREATE UNIQUE INDEX {name} ON {relation} ({column_list(keyed.table.key)})",
            f"ALTER TABLE {relation} ADD CONSTRAINT {name} PRIMARY KEY USING INDEX {name}",
        )
    for name, columns in lacking.items():
        try:
            session.run(f"CREATE INDEX {quoted(name)} ON {relation} ({column_list(columns)})")
        except psycopg.errors.ProgramLimitExceeded:
            left_out.append(
                f"{keyed.table.name}: no index on ({', '.join(columns)}), because some values are too long for one."
            )
    if lacking or keyed.primary_key not in present:
        session.run(f"ANALYZE {relation}")
    return left_out


def dropping(keyed: Keyed, error: psycopg.errors.ProgramLimitExceeded) -> str | None:
    """The statement that drops the index for which a value is too long; None if that is none of this table."""
    name = error.diag.constraint_name or ""
    return f"DROP INDEX {quoted(keyed.schema, name)}" if name in keyed.indexes else None
