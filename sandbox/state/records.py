"""The simple resources: one table each, a column for each field, ids from the tenant's sequence.

A resource is a ``Table`` of ``TABLES``; the rest is the same for all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox.state.database import Database
from sandbox.state.drafts import MissingReference
from sandbox.state.tenants import next_ids

_LARGEST_ID = 2**63 - 1
EXTRA = "extra"

Row = dict[str, Any]
Merge = Callable[[sqlite3.Connection, int, int, int], None]


class DuplicateValue(ValueError):  # noqa: N818  # the name says what is wrong
    """Another record has this value, which has to be unique."""


@dataclass(frozen=True, slots=True)
class Table:
    """``json``: columns with JSON. ``references``: columns with ids of another table.

    ``merge`` moves what depends on one record (the first number) to another (the second), before the first is deleted. Every table
    also has the column ``extra``: an object with the values of fields that only other shapes have (``sandbox/shapes``).
    """

    name: str
    columns: tuple[str, ...]
    json: frozenset[str] = frozenset()
    references: Mapping[str, str] = field(default_factory=dict)
    merge: Merge | None = None

    @property
    def stored(self) -> tuple[str, ...]:
        """Every column beside the id."""
        return (*self.columns, EXTRA)


def _merge_locations(connection: sqlite3.Connection, tenant: int, number: int, into: int) -> None:
    connection.execute(
        "UPDATE hard_copies SET location_id = ? WHERE tenant = ? AND location_id = ?", (into, tenant, number)
    )


def _merge_authorities(connection: sqlite3.Connection, tenant: int, number: int, into: int) -> None:
    """Makes the name and variants of the merged authority variants of the other, which then is that of the same authors."""
    rows = dict(
        connection.execute(
            "SELECT id, json_array(name, json(variants)) FROM authorities WHERE tenant = ? AND id IN (?, ?)",
            (tenant, number, into),
        ).fetchall()
    )
    (name, variants), (target_name, target_variants) = json.loads(rows[number]), json.loads(rows[into])
    merged = [each for each in dict.fromkeys([*target_variants, name, *variants]) if each != target_name]
    connection.execute(
        "UPDATE authorities SET variants = ?, of_author = of_author OR (SELECT of_author FROM authorities WHERE tenant = ? AND id = ?) "
        "WHERE tenant = ? AND id = ?",
        (_encoded(merged), tenant, number, tenant, into),
    )


USERS = Table("users", ("email", "name", "roles", "avatar"), json=frozenset({"roles", "avatar"}))
LOCATIONS = Table("locations", ("name", "note"), merge=_merge_locations)
HARD_COPIES = Table(
    "hard_copies",
    ("publication_id", "location_id", "barcode", "call_number", "status", "acquired_on", "note"),
    references={"publication_id": "publications", "location_id": "locations"},
)
AUTHORITIES = Table("authorities", ("name", "kind", "variants"), json=frozenset({"variants"}), merge=_merge_authorities)
COLLECTIONS = Table(
    "collections",
    ("name", "description", "publication_ids"),
    json=frozenset({"publication_ids"}),
    references={"publication_ids": "publications"},
)
TASKS = Table(
    "tasks",
    ("title", "description", "publication_id", "assignee_id", "due_on", "completed_at"),
    references={"publication_id": "publications", "assignee_id": "users"},
)
TABLES = (USERS, LOCATIONS, HARD_COPIES, AUTHORITIES, COLLECTIONS, TASKS)


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some of the matching records, and the number of all."""

    total: int
    rows: list[Row]


class Records:
    """The records of one table of a tenant."""

    def __init__(self, database: Database, tenant: int, table: Table) -> None:
        self._database = database
        self._tenant = tenant
        self._table = table
        self._json = {*table.json, EXTRA}
        self._select = f"SELECT id, {', '.join(table.stored)} FROM {table.name} WHERE tenant = ?"

    def page(self, filters: Mapping[str, str], *, limit: int, offset: int, descending: bool) -> RowPage:
        """Returns records whose columns have these values, without case; for a list, one of its values."""
        conditions = "".join(f" AND {self._condition(column)}" for column in filters)
        values = (self._tenant, *filters.values())
        order = f"ORDER BY id {'DESC' if descending else 'ASC'} LIMIT ? OFFSET ?"
        with self._database.read() as connection:
            (total,) = connection.execute(
                f"SELECT count(*) FROM {self._table.name} WHERE tenant = ?{conditions}", values
            ).fetchone()
            rows = connection.execute(f"{self._select}{conditions} {order}", (*values, limit, offset)).fetchall()
        return RowPage(total, [self._row(row) for row in rows])

    def get(self, number: int) -> Row | None:
        """Returns the record with this id."""
        with self._database.read() as connection:
            return self._load(connection, number)

    def create(self, values: Row) -> Row:
        """Creates a record; columns without a value are null. Raises ``MissingReference`` or ``DuplicateValue``."""
        with self._database.write() as connection:
            self._check(connection, values)
            try:
                (number,) = add_rows(connection, self._tenant, self._table, [values])
            except sqlite3.IntegrityError as error:
                raise DuplicateValue(str(error)) from None
            return self._load(connection, number) or {}

    def change(self, number: int, values: Row) -> Row | None:
        """Changes columns of a record; returns None if there is none. Raises ``MissingReference`` or ``DuplicateValue``.

        Values of ``extra`` that are not among the new ones stay.
        """
        with self._database.write() as connection:
            stored = self._load(connection, number)
            if stored is None:
                return None
            self._check(connection, values)
            if EXTRA in values:
                values = {**values, EXTRA: {**(stored[EXTRA] or {}), **values[EXTRA]}}
            for column, value in values.items():
                self._set(connection, number, column, value)
            return self._load(connection, number)

    def remove(self, number: int) -> bool:
        """Deletes the record with this id; returns whether there was one."""
        with self._database.write() as connection:
            return self._remove(connection, number)

    def merge(self, number: int, into: int) -> Row | None:
        """Merges a record into another and returns that; None if one is missing. A merge into itself changes nothing."""
        with self._database.write() as connection:
            if number == into:
                return self._load(connection, number)
            if self._load(connection, number) is None or self._load(connection, into) is None:
                return None
            if self._table.merge:
                self._table.merge(connection, self._tenant, number, into)
            self._remove(connection, number)
            return self._load(connection, into)

    def names(self, numbers: Iterable[int], column: str) -> dict[int, str]:
        """Returns the value of a column by id."""
        with self._database.read() as connection:
            return names(connection, self._tenant, self._table.name, numbers, column)

    def _condition(self, column: str) -> str:
        if column in self._table.json:
            return f"EXISTS (SELECT 1 FROM json_each({column}) WHERE CAST(value AS TEXT) = ? COLLATE NOCASE)"
        return f"CAST({column} AS TEXT) = ? COLLATE NOCASE"

    def _load(self, connection: sqlite3.Connection, number: int) -> Row | None:
        row = connection.execute(f"{self._select} AND id = ?", (self._tenant, min(number, _LARGEST_ID))).fetchone()
        return self._row(row) if row else None

    def _row(self, row: Sequence[Any]) -> Row:
        named = zip(("id", *self._table.stored), row, strict=True)
        return {name: json.loads(value) if value and name in self._json else value for name, value in named}

    def _check(self, connection: sqlite3.Connection, values: Row) -> None:
        """Raises ``MissingReference`` for an unknown id."""
        for column, table in self._table.references.items():
            referenced = values.get(column)
            for number in referenced if isinstance(referenced, list) else [referenced]:
                if number is not None and not _exists(connection, self._tenant, table, number):
                    raise MissingReference(f"{column} {number}")

    def _set(self, connection: sqlite3.Connection, number: int, column: str, value: object) -> None:
        try:
            connection.execute(
                f"UPDATE {self._table.name} SET {column} = ? WHERE tenant = ? AND id = ?",
                (_column(self._table, column, value), self._tenant, number),
            )
        except sqlite3.IntegrityError as error:
            raise DuplicateValue(str(error)) from None

    def _remove(self, connection: sqlite3.Connection, number: int) -> bool:
        cursor = connection.execute(
            f"DELETE FROM {self._table.name} WHERE tenant = ? AND id = ?", (self._tenant, min(number, _LARGEST_ID))
        )
        return cursor.rowcount > 0


def add_rows(connection: sqlite3.Connection, tenant: int, table: Table, rows: Sequence[Row]) -> range:
    """Stores records under the next ids, without checks; returns the ids."""
    ids = next_ids(connection, tenant, table.name, len(rows))
    names = ("tenant", "id", *table.stored)
    connection.executemany(
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        ((tenant, number, *_columns(table, row)) for number, row in zip(ids, rows, strict=True)),
    )
    return ids


def _columns(table: Table, row: Row) -> Iterable[object]:
    return (_column(table, column, row.get(column)) for column in table.stored)


def _column(table: Table, column: str, value: object) -> object:
    return _encoded(value) if (column in table.json or column == EXTRA) and value is not None else value


def _encoded(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def names(
    connection: sqlite3.Connection, tenant: int, table: str, numbers: Iterable[int], column: str
) -> dict[int, str]:
    """Returns the value of a column of a table by id."""
    sql = f"SELECT id, {column} FROM {table} WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(sql, (tenant, json.dumps(list(numbers)))).fetchall())


def _exists(connection: sqlite3.Connection, tenant: int, table: str, number: int) -> bool:
    found = connection.execute(f"SELECT 1 FROM {table} WHERE tenant = ? AND id = ?", (tenant, min(number, _LARGEST_ID)))
    return found.fetchone() is not None
