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

FURTHER = ("files", "clients", "grants", "tokens")
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
        self._where = f"WHERE tenant = {tenant} AND resource = '{resource}'"

    def of(self, resource: str) -> Records:
        """Returns the records of another resource of the tenant."""
        return Records(self._database, self._tenant, resource)

    def page(self, filters: Mapping[str, str], *, limit: int, offset: int, descending: bool) -> DocumentPage:
        """Returns records whose fields have these values, without case; for a list, one of its values."""
        has_value = "EXISTS (SELECT 1 FROM json_each(document, ?) WHERE CAST(value AS TEXT) = ? COLLATE NOCASE)"
        values = [parameter for name, value in filters.items() for parameter in (f"$.{name}", value)]
        return self._select([has_value] * len(filters), values, limit=limit, offset=offset, descending=descending)

    def get(self, number: int) -> Document:
        """Returns the record with this id; here and below, 404 if there is none."""
        documents = self._read("AND id = ?", min(number, _LARGEST_ID))
        if not documents:
            raise record_not_found()
        return documents[0]

    def find(self, name: str, value: str) -> Document | None:
        """Returns the record whose field has this value, without case."""
        return next(iter(self._read(f"AND json_extract(document, '$.{name}') = ? COLLATE NOCASE", value)), None)

    def referring(self, name: str, numbers: Sequence[int]) -> list[Document]:
        """Returns the records whose field has one of these ids, by their own id."""
        condition = f"AND json_extract(document, '$.{name}') IN (SELECT value FROM json_each(?)) ORDER BY id"
        return self._read(condition, json.dumps(numbers))

    def all(self) -> list[Document]:
        """Returns every record, by id."""
        return self._read("ORDER BY id")

    def texts(self, numbers: Iterable[int | None] | None = None, *, field: str = "name") -> dict[int, str]:
        """Returns one text of records by id: of these, or of all."""
        sql = f"SELECT id, json_extract(document, '$.{field}') FROM records {self._where}"
        values = []
        if numbers is not None:
            sql += " AND id IN (SELECT value FROM json_each(?))"
            values.append(json.dumps([min(number, _LARGEST_ID) for number in numbers if number is not None]))
        with self._database.transaction() as connection:
            return dict(connection.execute(sql, values).fetchall())

    def add(self, documents: Sequence[Document]) -> range:
        """Stores records under the next ids, without checks; returns the ids."""
        with self._database.transaction() as connection:
            ids = next_ids(connection, self._tenant, self._resource, len(documents))
            connection.executemany(
                f"INSERT INTO records (tenant, resource, id, document) VALUES ({self._tenant}, '{self._resource}', ?, ?)",
                zip(ids, map(_encoded, documents), strict=True),
            )
            return ids

    def create(self, document: Document) -> Document:
        """Creates a record. 404 for an unknown id, 422 for the address of another user."""
        with self._database.transaction(), _unique():
            self._check(document)
            (number,) = self.add([document])
            return {"id": number, **document}

    def change(self, number: int, values: Document) -> Document:
        """Changes fields of a record, as in a create. Values of ``extra`` that are not among the new ones stay."""
        with self._database.transaction(), _unique():
            stored = self.get(number)
            self._check(values)
            if EXTRA in values:
                values = {**values, EXTRA: {**(stored.get(EXTRA) or {}), **values[EXTRA]}}
            self.store({**stored, **values})
            return {**stored, **values}

    def store(self, document: Document) -> None:
        """Replaces the record with the id of the document."""
        with self._database.transaction() as connection:
            sql = f"UPDATE records SET document = ? {self._where} AND id = ?"
            connection.execute(sql, (_encoded(document), document["id"]))

    def remove(self, number: int) -> None:
        """Deletes the record with this id."""
        with self._database.transaction() as connection:
            cursor = connection.execute(f"DELETE FROM records {self._where} AND id = ?", (min(number, _LARGEST_ID),))
            if not cursor.rowcount:
                raise record_not_found()

    def merge(self, number: int, into: int) -> Document:
        """Merges a record into another and returns that. A merge into itself changes nothing.

        The hard copies of a location move to the other one. The names of an authority become variants of the other one, which then
        is that of the same authors.
        """
        with self._database.transaction():
            merged, target = self.get(number), self.get(into)
            if number == into:
                return target
            if self._resource == "locations":
                copies = self.of("hard_copies")
                for copy in copies.referring("location_id", [number]):
                    copies.store({**copy, "location_id": into})
            else:
                names = dict.fromkeys([*target["variants"], merged["name"], *merged["variants"]])
                target["variants"] = [name for name in names if name != target["name"]]
                target["of_author"] = target.get("of_author") or merged.get("of_author")
                self.store(target)
            self.remove(number)
            return target

    def _select(
        self, conditions: Sequence[str], values: Sequence[object], *, limit: int, offset: int, descending: bool
    ) -> DocumentPage:
        selected = "".join(f" AND {condition}" for condition in conditions)
        order = f" ORDER BY id {'DESC' if descending else 'ASC'} LIMIT ? OFFSET ?"
        with self._database.transaction() as connection:
            sql = f"SELECT count(*) FROM records {self._where}{selected}"
            (total,) = connection.execute(sql, values).fetchone()
            return DocumentPage(total, self._read(selected + order, *values, limit, offset))

    def _read(self, condition: str, *values: object) -> list[Document]:
        with self._database.transaction() as connection:
            rows = connection.execute(f"SELECT id, document FROM records {self._where} {condition}", values)
            return self._complete([{"id": number, **json.loads(text)} for number, text in rows])

    def _complete(self, documents: list[Document]) -> list[Document]:
        """Returns documents as they are read."""
        return documents

    def _check(self, values: Document) -> None:
        for name, resource in REFERENCES.get(self._resource, {}).items():
            referenced = values.get(name) or []
            numbers = set(referenced if isinstance(referenced, list) else [referenced])
            if len(self.of(resource).texts(numbers)) < len(numbers):
                raise record_not_found()


@contextmanager
def _unique() -> Iterator[None]:
    """Only the addresses of users have to be unique."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise unprocessable("email: another user has this address") from None


def _encoded(document: Document) -> str:
    """The assets of a publication are records of their own."""
    kept = {name: value for name, value in document.items() if name not in {"id", "assets"}}
    return json.dumps(kept, ensure_ascii=False)
