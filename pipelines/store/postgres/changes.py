"""Writes the rows of a snapshot into a library's tables, which then have every loaded snapshot.

A snapshot is copied beside the tables and compared with them on the server. A row stays as it is from snapshot to snapshot, whatever its
record's checksum is (a service may sign the addresses of files anew for each response); only rows that differ are written. Readers wait for
none of this: a transaction goes on to see what it began with (I5).

A snapshot that is older than the newest one loaded changes only since when rows are there, and until when. Rows whose key is empty or not
unique in their snapshot cannot be compared: they are in the table of the past, and are stored again with each snapshot that has them.
"""
# ruff: noqa: S608  names are quoted, and values are literals

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import psycopg

from pipelines.humanize import counted
from pipelines.records.tables.description import Table
from pipelines.store.parquet import literal, quoted
from pipelines.store.postgres.definitions import column_list, past_name, rows_name
from pipelines.store.postgres.loaded import snapshots_of
from pipelines.store.postgres.server import Session


@dataclass(frozen=True)
class CopiedTable:
    """The rows of one snapshot's table, copied into the schema `loading`, and the library's tables in `main` that take them."""

    main: str
    loading: str
    table: Table
    """With the observed columns of this snapshot."""
    kept: tuple[str, ...]
    """The columns of the library's tables, without `snapshot` and `until`."""
    described: frozenset[str]
    """Those that have the same type in both; the others are `jsonb` where they are kept."""

    @property
    def rows(self) -> str:
        """The rows of the newest snapshot."""
        return quoted(self.main, rows_name(self.table.name))

    @property
    def past(self) -> str:
        """The rows that have ended, and those without a key of their own."""
        return quoted(self.main, past_name(self.table.name))

    @property
    def copied(self) -> str:
        """The copied rows, each with a key of its own."""
        return quoted(self.loading, self.table.name)

    def beside(self, name: str) -> str:
        """Another table of this copy."""
        return quoted(self.loading, f"{self.table.name}_{name}")

    @property
    def keyless(self) -> str:
        """The copied rows whose key is empty or not unique."""
        return self.beside("keyless")

    @property
    def columns(self) -> str:
        """The kept columns."""
        return column_list(self.kept)

    @cached_property
    def values(self) -> Mapping[str, str]:
        """Kept column → the expression of its value in a copied row `e`."""
        copied_columns = {column.name for column in self.table.columns}
        return {
            name: "NULL"
            if name not in copied_columns
            else f"e.{quoted(name)}"
            if name in self.described
            else f"to_jsonb(e.{quoted(name)})"
            for name in self.kept
        }

    @property
    def selected(self) -> str:
        """The values of a copied row `e`."""
        return ", ".join(self.values.values())

    def is_same_key(self, row: str, other: str) -> str:
        """Whether two rows have the same key."""
        return " AND ".join(f"{row}.{quoted(name)} = {other}.{quoted(name)}" for name in self.table.key)

    @property
    def differs(self) -> str:
        """Whether a kept row `r` has other values than a copied row `e`, checksums apart."""
        sums = {column.name for column in self.table.columns if column.made_from == "sha256"}
        compared = [name for name in self.kept if name not in sums]
        return f"({column_list(compared, 'r')}) IS DISTINCT FROM ({', '.join(self.values[name] for name in compared)})"


def separate_keyless(session: Session, copy: CopiedTable) -> str:
    """Give the copied rows their key; those that it does not tell apart go into a table of their own. Returns a sentence about them."""
    keys = column_list(copy.table.key)
    session.run(f"CREATE UNLOGGED TABLE {copy.keyless} (LIKE {copy.copied})")
    add_key = f"ALTER TABLE {copy.copied} ADD PRIMARY KEY ({keys})"
    try:
        session.run(add_key)
    except (psycopg.errors.UniqueViolation, psycopg.errors.NotNullViolation):
        empty = " OR ".join(f"e.{quoted(name)} IS NULL" for name in copy.table.key)
        repeated = f"SELECT {keys} FROM {copy.copied} GROUP BY {keys} HAVING count(*) > 1"
        session.run(
            f"WITH taken AS (DELETE FROM {copy.copied} AS e WHERE {empty} OR ({column_list(copy.table.key, 'e')}) IN ({repeated}) "
            f"RETURNING *) INSERT INTO {copy.keyless} SELECT * FROM taken",
            add_key,
        )
    session.run(f"ANALYZE {copy.copied}")
    count = session.value(f"SELECT count(*) FROM {copy.keyless}")
    if not count:
        return ""
    rows = counted(count, "row")
    return f"{copy.table.name}: {rows} without primary key, because ({', '.join(copy.table.key)}) is empty or not unique there."


def find_newest_changes(session: Session, copy: CopiedTable) -> None:
    """Find the rows that differ from those of the newest snapshot: their keys, and which side lacks them."""
    keys = ", ".join(f"coalesce(r.{name}, e.{name}) AS {name}" for name in map(quoted, copy.table.key))
    first = quoted(copy.table.key[0])
    session.run(
        f"CREATE UNLOGGED TABLE {copy.beside('changes')} AS SELECT {keys}, r.{first} IS NULL AS new, e.{first} IS NULL AS gone "
        f"FROM {copy.rows} AS r FULL JOIN {copy.copied} AS e ON {copy.is_same_key('r', 'e')} "
        f"WHERE r.{first} IS NULL OR e.{first} IS NULL OR {copy.differs}",
        f"ANALYZE {copy.beside('changes')}",
    )


def write_newest(session: Session, copy: CopiedTable, snapshot: str) -> int:
    """Write the rows of a snapshot that is the newest one of its table. Returns how many were written or removed.

    Rows are updated, not replaced, so that what refers to them in tables of somebody else stays valid.
    """
    name, changes = literal(snapshot), copy.beside("changes")
    own, same_row = column_list(copy.kept, "r"), copy.is_same_key("r", "c")
    assigned = ", ".join(f"{quoted(column)} = {value}" for column, value in copy.values.items())
    session.run(
        f"INSERT INTO {copy.past} ({copy.columns}, snapshot, until) SELECT {own}, r.snapshot, {name} "
        f"FROM {copy.rows} AS r JOIN {changes} AS c ON {same_row} WHERE r.snapshot < {name}",
        f"DELETE FROM {copy.past} WHERE until IS NULL AND snapshot = {name}",
        f"UPDATE {copy.past} SET until = {name} WHERE until IS NULL",
    )
    changed = f"{copy.copied} AS e JOIN {changes} AS c ON {copy.is_same_key('c', 'e')}"
    values = f"({copy.columns}, snapshot) SELECT {copy.selected}, {name} FROM"
    statements = (
        f"DELETE FROM {copy.rows} AS r USING {changes} AS c WHERE c.gone AND {same_row}",
        f"UPDATE {copy.rows} AS r SET {assigned}, snapshot = {name} FROM {changed} WHERE NOT c.new AND {same_row}",
        f"INSERT INTO {copy.rows} {values} {changed} WHERE c.new",
        f"INSERT INTO {copy.past} {values} {copy.keyless} AS e",
    )
    return sum(session.count(statement) for statement in statements)


def find_older_rows(session: Session, copy: CopiedTable, snapshot: str, later: str) -> None:
    """Find for each copied row the equal kept one that this snapshot has, or else `later` has, which is the next one loaded."""
    key, at, next_one = column_list(copy.table.key, "e"), literal(snapshot), literal(later)
    kept = (
        (copy.rows, "true", ""),
        (
            copy.past,
            "false",
            f" AND (r.until IS NULL OR r.until > CASE WHEN r.snapshot <= {at} THEN {at} ELSE {next_one} END)",
        ),
    )
    candidates = " UNION ALL ".join(
        f"SELECT {key}, {is_newest} AS is_newest, r.ctid AS place, r.snapshot > {at} AS is_later FROM {relation} AS r "
        f"JOIN {copy.copied} AS e ON {copy.is_same_key('r', 'e')} WHERE NOT ({copy.differs}) AND r.snapshot <= {next_one}{condition}"
        for relation, is_newest, condition in kept
    )
    keys = column_list(copy.table.key)
    session.run(
        f"CREATE UNLOGGED TABLE {copy.beside('equal')} AS SELECT DISTINCT ON ({keys}) * FROM ({candidates}) AS candidates "
        f"ORDER BY {keys}, is_later, is_newest DESC",
        f"ANALYZE {copy.beside('equal')}",
    )


def write_older(session: Session, copy: CopiedTable, snapshot: str, later: str) -> int:
    """Write the rows of a snapshot before `later`, which is loaded. Returns how many were written."""
    at, next_one = literal(snapshot), literal(later)
    equal = f"SELECT FROM {copy.beside('equal')} AS s WHERE s.place = r.ctid AND"
    in_newest, in_past = f"EXISTS ({equal} s.is_newest)", f"EXISTS ({equal} NOT s.is_newest)"
    begins_here = f"EXISTS ({equal} s.is_later AND"
    own = column_list(copy.kept, "r")
    into_past = f"INSERT INTO {copy.past} ({copy.columns}, snapshot, until)"
    other_past = f"r.snapshot <= {at} AND (r.until IS NULL OR r.until > {at}) AND NOT {in_past}"
    session.run(
        # Rows that this snapshot does not have end before it, and begin again after it.
        f"{into_past} SELECT {own}, {next_one}, r.until FROM {copy.past} AS r "
        f"WHERE {other_past} AND (r.until IS NULL OR r.until > {next_one})",
        f"{into_past} SELECT {own}, r.snapshot, {at} FROM {copy.rows} AS r WHERE r.snapshot < {at} AND NOT {in_newest}",
        f"DELETE FROM {copy.past} AS r WHERE {other_past} AND r.snapshot = {at}",
        f"UPDATE {copy.past} AS r SET until = {at} WHERE {other_past}",
        f"UPDATE {copy.rows} AS r SET snapshot = {next_one} WHERE r.snapshot <= {at} AND NOT {in_newest}",
        # Rows that the next snapshot has, too, begin with this one.
        f"UPDATE {copy.rows} AS r SET snapshot = {at} WHERE {begins_here} s.is_newest)",
        f"UPDATE {copy.past} AS r SET snapshot = {at} WHERE {begins_here} NOT s.is_newest)",
    )
    is_equal = f"EXISTS (SELECT FROM {copy.beside('equal')} AS s WHERE {copy.is_same_key('s', 'e')})"
    differing = f"SELECT {copy.selected}, {at}, {next_one} FROM {copy.copied} AS e WHERE NOT {is_equal}"
    keyless = f"SELECT {copy.selected}, {at}, {next_one} FROM {copy.keyless} AS e"
    return sum(session.count(f"{into_past} {rows}") for rows in (differing, keyless))


def step_back(session: Session, main: str, table: Table, kept: tuple[str, ...], snapshot: str) -> None:
    """Give the newest rows back to an earlier snapshot, because later ones are no longer there; an empty one means none."""
    rows, past, name = quoted(main, rows_name(table.name)), quoted(main, past_name(table.name)), literal(snapshot)
    keys, columns = column_list(table.key), column_list((*kept, "snapshot"))
    filled = " AND ".join(f"{quoted(key)} IS NOT NULL" for key in table.key)
    session.run(
        f"DELETE FROM {rows} WHERE snapshot > {name}",
        f"DELETE FROM {past} WHERE until IS NULL AND snapshot > {name}",
        f"UPDATE {past} SET until = NULL WHERE snapshot <= {name} AND until > {name}",
        f"WITH back AS (DELETE FROM {past} WHERE until IS NULL AND {filled} AND ({keys}) IN "
        f"(SELECT {keys} FROM {past} WHERE until IS NULL GROUP BY {keys} HAVING count(*) = 1) RETURNING *) "
        f"INSERT INTO {rows} ({columns}) SELECT {columns} FROM back",
    )


def remove_unseen_rows(session: Session, main: str, table: Table) -> None:
    """Remove the rows that no loaded snapshot has any more."""
    past = quoted(main, past_name(table.name))
    loaded = snapshots_of(main, table.name)
    seen = f"SELECT FROM ({loaded}) AS n WHERE r.snapshot <= n.snapshot AND (r.until IS NULL OR n.snapshot < r.until)"
    session.run(f"DELETE FROM {past} AS r WHERE NOT EXISTS ({seen})")


def own_rows(main: str, table: str) -> Iterator[tuple[str, str]]:
    """The relations with the rows of the newest snapshot and what follows each in FROM, with the snapshot `n`."""
    newest = f" CROSS JOIN (SELECT max(snapshot) AS snapshot FROM ({snapshots_of(main, table)}) AS loaded) AS n"
    yield rows_name(table), newest
    yield past_name(table), f"{newest} WHERE r.until IS NULL"


def history_rows(main: str, table: str) -> Iterator[tuple[str, str]]:
    """The same for the rows of every snapshot."""
    every = f" JOIN ({snapshots_of(main, table)}) AS n ON r.snapshot <= n.snapshot"
    yield rows_name(table), every
    yield past_name(table), f"{every} AND (r.until IS NULL OR n.snapshot < r.until)"
