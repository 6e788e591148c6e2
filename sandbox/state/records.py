"""Records of every resource: a document each, in one table, with ids from the tenant's sequences.

A document has every field of its resource. It may also have values that no API shows, such as ``password`` of a user, and ``extra``: an
object with the values of fields that only other shapes have (``sandbox/shapes``).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sandbox.errors import record_not_found, unprocessable
from sandbox.state.database import Database
from sandbox.state.tenants import next_ids

# The largest integer of SQLite, so no record has a larger id
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
    "assets": {"publication_id": "publications"},
}
"""Resource → its fields with ids of another resource."""

FURTHER = ("files", "sessions", "clients", "grants", "tokens")
"""What the storage service and the sign-in store."""


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
        values = [each for name, value in filters.items() for each in (f"$.{name}", value)]
        return self._select([has_value] * len(filters), values, limit=limit, offset=offset, descending=descending)

    def get(self, number: int) -> Document:
        """Returns the record with this id; here and below, 404 if there is none."""
        with self._database.read() as connection:
            return self._load(connection, number)

    def find(self, name: str, value: str) -> Document | None:
        """Returns the record whose field has this value, without case."""
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT id, document FROM records WHERE tenant = ? AND resource = '{self._resource}' "
                f"AND json_extract(document, '$.{name}') = ? COLLATE NOCASE",
                (self._tenant, value),
            ).fetchone()
        return _document(row) if row else None

    def all(self) -> list[Document]:
        """Returns every record, by id."""
        return self.page({}, limit=-1, offset=0, descending=False).documents

    def create(self, document: Document) -> Document:
        """Creates a record. 404 for an unknown id, 422 for the address of another user."""
        with self._database.write() as connection, _unique():
            self._check(connection, document)
            (number,) = add_records(connection, self._tenant, self._resource, [document])
            return {"id": number, **document}

    def change(self, number: int, values: Document) -> Document:
        """Changes fields of a record, as in a create. Values of ``extra`` that are not among the new ones stay."""
        with self._database.write() as connection, _unique():
            stored = self._load(connection, number)
            self._check(connection, values)
            if EXTRA in values:
                values = {**values, EXTRA: {**stored.get(EXTRA, {}), **values[EXTRA]}}
            store_record(connection, self._tenant, self._resource, {**stored, **values})
            return {**stored, **values}

    def remove(self, number: int) -> None:
        """Deletes the record with this id."""
        with self._database.write() as connection:
            if not remove_record(connection, self._tenant, self._resource, number):
                raise record_not_found()

    def merge(self, number: int, into: int) -> Document:
        """Merges a record into another and returns that. A merge into itself changes nothing.

        The hard copies of a location move to the other one. The names of an authority become variants of the other one, which then
        is that of the same authors.
        """
        with self._database.write() as connection:
            merged, target = self._load(connection, number), self._load(connection, into)
            if number == into:
                return target
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
                store_record(connection, self._tenant, self._resource, target)
            remove_record(connection, self._tenant, self._resource, number)
            return target

    def names(self, numbers: Iterable[int]) -> dict[int, str]:
        """Returns the ``name`` of records by id."""
        with self._database.read() as connection:
            return texts_by_id(connection, self._tenant, self._resource, numbers)

    def _select(
        self, conditions: Sequence[str], values: Sequence[object], *, limit: int, offset: int, descending: bool
    ) -> DocumentPage:
        selected = " AND ".join(["FROM records WHERE tenant = ?", f"resource = '{self._resource}'", *conditions])
        order = f"ORDER BY id {'DESC' if descending else 'ASC'} LIMIT ? OFFSET ?"
        with self._database.read() as connection:
            (total,) = connection.execute(f"SELECT count(*) {selected}", (self._tenant, *values)).fetchone()
            rows = connection.execute(f"SELECT id, document {selected} {order}", (self._tenant, *values, limit, offset))
            return DocumentPage(total, self._complete(connection, [_document(row) for row in rows]))

    def _complete(self, _connection: sqlite3.Connection, documents: list[Document]) -> list[Document]:
        """Returns documents as they are read."""
        return documents

    def _load(self, connection: sqlite3.Connection, number: int) -> Document:
        row = connection.execute(
            "SELECT id, document FROM records WHERE tenant = ? AND resource = ? AND id = ?",
            (self._tenant, self._resource, min(number, _LARGEST_ID)),
        ).fetchone()
        if row is None:
            raise record_not_found()
        return self._complete(connection, [_document(row)])[0]

    def _check(self, connection: sqlite3.Connection, values: Document) -> None:
        for name, resource in REFERENCES.get(self._resource, {}).items():
            referenced = values.get(name)
            for number in referenced if isinstance(referenced, list) else [referenced]:
                if number is not None and not has_record(connection, self._tenant, resource, number):
                    raise record_not_found()


@contextmanager
def _unique() -> Iterator[None]:
    """Only the addresses of users have to be unique."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise unprocessable("email: another user has this address") from None


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
    """The assets of a publication are records of their own."""
    kept = {name: value for name, value in document.items() if name not in {"id", "assets"}}
    return json.dumps(kept, ensure_ascii=False)


def store_record(connection: sqlite3.Connection, tenant: int, resource: str, document: Document) -> None:
    """Replaces the record with the id of the document."""
    connection.execute(
        "UPDATE records SET document = ? WHERE tenant = ? AND resource = ? AND id = ?",
        (_encoded(document), tenant, resource, document["id"]),
    )


def remove_record(connection: sqlite3.Connection, tenant: int, resource: str, number: int) -> bool:
    """Deletes the record with this id; returns whether there was one."""
    cursor = connection.execute(
        "DELETE FROM records WHERE tenant = ? AND resource = ? AND id = ?",
        (tenant, resource, min(number, _LARGEST_ID)),
    )
    return cursor.rowcount > 0


def has_record(connection: sqlite3.Connection, tenant: int, resource: str, number: int) -> bool:
    """Returns whether there is a record with this id."""
    return bool(texts_by_id(connection, tenant, resource, [number]))


def texts_by_id(
    connection: sqlite3.Connection,
    tenant: int,
    resource: str,
    numbers: Iterable[int | None] | None = None,
    *,
    field: str = "name",
) -> dict[int, str]:
    """Returns one text of records by id: of these, or of all."""
    sql = "SELECT id, json_extract(document, ?) FROM records WHERE tenant = ? AND resource = ?"
    values: list[object] = [f"$.{field}", tenant, resource]
    if numbers is not None:
        sql += " AND id IN (SELECT value FROM json_each(?))"
        values.append(json.dumps([min(number, _LARGEST_ID) for number in numbers if number is not None]))
    return dict(connection.execute(sql, values).fetchall())


def referring_records(
    connection: sqlite3.Connection, tenant: int, resource: str, field: str, numbers: Iterable[int]
) -> list[Document]:
    """Returns the records of a resource whose field has one of these ids, by their own id."""
    rows = connection.execute(
        f"SELECT id, document FROM records WHERE tenant = ? AND resource = '{resource}' "
        f"AND json_extract(document, '$.{field}') IN (SELECT value FROM json_each(?)) ORDER BY id",
        (tenant, json.dumps(list(numbers))),
    )
    return [_document(row) for row in rows]
