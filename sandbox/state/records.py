"""Users, locations, hard copies, authorities, collections and tasks: a document each, in one table, with ids from the tenant's sequences.

A document has every field of its resource. It may also have values that no API shows, such as ``password`` of a user, and ``extra``: an
object with the values of fields that only other shapes have (``sandbox/shapes``).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.state.database import Database
from sandbox.state.drafts import MissingReference
from sandbox.state.tenants import next_ids

_LARGEST_ID = 2**63 - 1
EXTRA = "extra"

Document = dict[str, Any]

REFERENCES: Mapping[str, Mapping[str, str]] = {
    "users": {},
    "locations": {},
    "hard_copies": {"publication_id": "publications", "location_id": "locations"},
    "authorities": {},
    "collections": {"publication_ids": "publications"},
    "tasks": {"publication_id": "publications", "assignee_id": "users"},
}
"""Resource → its fields with ids of another resource."""


class DuplicateValue(ValueError):  # noqa: N818  # the name says what is wrong
    """Another record has this value, which has to be unique."""


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """Some of the matching records, and the number of all."""

    total: int
    documents: list[Document]


class Records:
    """The records of one resource of a tenant. A document that is read has its ``id``, too."""

    def __init__(self, database: Database, tenant: int, resource: str) -> None:
        self._database = database
        self._tenant = tenant
        self._resource = resource

    def page(self, filters: Mapping[str, str], *, limit: int, offset: int, descending: bool) -> DocumentPage:
        """Returns records whose fields have these values, without case; for a list, one of its values."""
        has_value = "EXISTS (SELECT 1 FROM json_each(document, ?) WHERE CAST(value AS TEXT) = ? COLLATE NOCASE)"
        condition = " AND ".join(["tenant = ? AND resource = ?", *[has_value] * len(filters)])
        values = [self._tenant, self._resource]
        for name, value in filters.items():
            values += [f"$.{name}", value]
        order = f"ORDER BY id {'DESC' if descending else 'ASC'} LIMIT ? OFFSET ?"
        with self._database.read() as connection:
            (total,) = connection.execute(f"SELECT count(*) FROM records WHERE {condition}", values).fetchone()
            rows = connection.execute(
                f"SELECT id, document FROM records WHERE {condition} {order}", [*values, limit, offset]
            ).fetchall()
        return DocumentPage(total, [_document(row) for row in rows])

    def get(self, number: int) -> Document | None:
        """Returns the record with this id."""
        with self._database.read() as connection:
            return self._load(connection, number)

    def create(self, document: Document) -> Document:
        """Creates a record. Raises ``MissingReference`` or ``DuplicateValue``."""
        with self._database.write() as connection:
            self._check(connection, document)
            try:
                (number,) = add_records(connection, self._tenant, self._resource, [document])
            except sqlite3.IntegrityError as error:
                raise DuplicateValue(str(error)) from None
            return {"id": number, **document}

    def change(self, number: int, values: Document) -> Document | None:
        """Changes fields of a record; returns None if there is none. Raises ``MissingReference`` or ``DuplicateValue``.

        Values of ``extra`` that are not among the new ones stay.
        """
        with self._database.write() as connection:
            stored = self._load(connection, number)
            if stored is None:
                return None
            self._check(connection, values)
            if EXTRA in values:
                values = {**values, EXTRA: {**stored.get(EXTRA, {}), **values[EXTRA]}}
            try:
                self._store(connection, {**stored, **values})
            except sqlite3.IntegrityError as error:
                raise DuplicateValue(str(error)) from None
            return {**stored, **values}

    def remove(self, number: int) -> bool:
        """Deletes the record with this id; returns whether there was one."""
        with self._database.write() as connection:
            return self._remove(connection, number)

    def merge(self, number: int, into: int) -> Document | None:
        """Merges a record into another and returns that; None if one is missing. A merge into itself changes nothing.

        The hard copies of a location move to the other one. The names of an authority become variants of the other one, which then
        is that of the same authors.
        """
        with self._database.write() as connection:
            merged, target = self._load(connection, number), self._load(connection, into)
            if merged is None or target is None or number == into:
                return target if merged else None
            if self._resource == "locations":
                connection.execute(
                    "UPDATE records SET document = json_set(document, '$.location_id', ?) "
                    "WHERE tenant = ? AND resource = 'hard_copies' AND json_extract(document, '$.location_id') = ?",
                    (into, self._tenant, number),
                )
            else:
                names = dict.fromkeys([*target["variants"], merged["name"], *merged["variants"]])
                target["variants"] = [name for name in names if name != target["name"]]
                target["of_author"] = target.get("of_author") or merged.get("of_author")
                self._store(connection, target)
            self._remove(connection, number)
            return target

    def names(self, numbers: Iterable[int]) -> dict[int, str]:
        """Returns the ``name`` of records by id."""
        sql = (
            "SELECT id, json_extract(document, '$.name') FROM records "
            "WHERE tenant = ? AND resource = ? AND id IN (SELECT value FROM json_each(?))"
        )
        with self._database.read() as connection:
            return dict(connection.execute(sql, (self._tenant, self._resource, json.dumps(list(numbers)))).fetchall())

    def _load(self, connection: sqlite3.Connection, number: int) -> Document | None:
        row = connection.execute(
            "SELECT id, document FROM records WHERE tenant = ? AND resource = ? AND id = ?",
            (self._tenant, self._resource, min(number, _LARGEST_ID)),
        ).fetchone()
        return _document(row) if row else None

    def _store(self, connection: sqlite3.Connection, document: Document) -> None:
        connection.execute(
            "UPDATE records SET document = ? WHERE tenant = ? AND resource = ? AND id = ?",
            (_encoded(document), self._tenant, self._resource, document["id"]),
        )

    def _check(self, connection: sqlite3.Connection, values: Document) -> None:
        """Raises ``MissingReference`` for an unknown id."""
        for name, resource in REFERENCES[self._resource].items():
            referenced = values.get(name)
            for number in referenced if isinstance(referenced, list) else [referenced]:
                if number is not None and not _exists(connection, self._tenant, resource, number):
                    raise MissingReference(f"{name} {number}")

    def _remove(self, connection: sqlite3.Connection, number: int) -> bool:
        cursor = connection.execute(
            "DELETE FROM records WHERE tenant = ? AND resource = ? AND id = ?",
            (self._tenant, self._resource, min(number, _LARGEST_ID)),
        )
        return cursor.rowcount > 0


def add_records(connection: sqlite3.Connection, tenant: int, resource: str, documents: Sequence[Document]) -> range:
    """Stores records under the next ids, without checks; returns the ids."""
    ids = next_ids(connection, tenant, resource, len(documents))
    connection.executemany(
        "INSERT INTO records (tenant, resource, id, document) VALUES (?, ?, ?, ?)",
        ((tenant, resource, number, _encoded(document)) for number, document in zip(ids, documents, strict=True)),
    )
    return ids


def _document(row: tuple[int, str]) -> Document:
    return {"id": row[0], **json.loads(row[1])}


def _encoded(document: Document) -> str:
    return json.dumps({name: value for name, value in document.items() if name != "id"}, ensure_ascii=False)


def _exists(connection: sqlite3.Connection, tenant: int, resource: str, number: int) -> bool:
    table: str = "publications WHERE"
    values: list[object] = [tenant, min(number, _LARGEST_ID)]
    if resource != "publications":
        table, values = "records WHERE resource = ? AND", [resource, *values]
    return connection.execute(f"SELECT 1 FROM {table} tenant = ? AND id = ?", values).fetchone() is not None
