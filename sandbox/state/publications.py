"""Publications: a document each, as other records, with an index for searches.

The state has the contributor of a publication by id, and each asset as a record of its own. A document that is read has the
contributor's name, and the assets.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from sandbox.errors import ApiError, record_not_found
from sandbox.state.author_authorities import make_authorities
from sandbox.state.database import Database
from sandbox.state.records import (
    Document,
    DocumentPage,
    Records,
    add_records,
    referring_records,
    remove_record,
    store_record,
    texts_by_id,
)
from sandbox.state.search import Criteria, fold, where


class Publications(Records):
    """The publications of a tenant."""

    def __init__(self, database: Database, tenant: int) -> None:
        super().__init__(database, tenant, "publications")

    def search(self, criteria: Criteria, *, limit: int, offset: int, descending: bool = False) -> DocumentPage:
        """Returns the publications that meet the criteria, by id, from ``offset`` on."""
        return self._select(*where(criteria), limit=limit, offset=offset, descending=descending)

    def write(
        self,
        number: int | None,
        change: Callable[[Document], Document],
        *,
        authorities: str,
        skip_missing: bool,
    ) -> Document:
        """Creates a publication, or changes the one with this id.

        ``change`` gets the document, of a new one with empty fields, and returns it as it shall be. There a category has an id or a name,
        which is found or created; an asset without an id is new, and one that is left out is deleted. ``skip_missing``: an unknown
        category or organization is left out; otherwise it is 404, as an unknown contributor always is.
        ``authorities``: how authorities are made of its authors.
        """
        with self._database.write() as connection:
            before = new_publication() if number is None else self._load(connection, number)
            changed = change(before)
            written = self._write(connection, before, changed, skip_missing=skip_missing)
            make_authorities(connection, self._tenant, changed["authors"], authorities)
            return self._load(connection, written)

    def edit(self, *, remove: Sequence[int], add: int, change: Sequence[int]) -> None:
        """Removes and retitles publications by id and adds some with a title only, like another person at work."""
        with self._database.write() as connection:
            for number in remove:
                remove_record(connection, self._tenant, self._resource, number)
            new = [new_publication(title=f"Added {each}") for each in range(1, add + 1)]
            add_publications(connection, self._tenant, new)
            for number in change:
                with suppress(ApiError):
                    stored = self._load(connection, number)
                    self._write(connection, stored, {**stored, "title": f"Changed {number}"})

    def titles(self, numbers: Iterable[int]) -> dict[int, str]:
        """Returns titles by id."""
        with self._database.read() as connection:
            return texts_by_id(connection, self._tenant, self._resource, numbers, field="title")

    def count(self) -> int:
        """Returns the number of publications."""
        return self.search(Criteria(), limit=0, offset=0).total

    def _write(
        self, connection: sqlite3.Connection, before: Document, changed: Document, *, skip_missing: bool = False
    ) -> int:
        """Stores a document that was read and changed, or a new one; returns its id."""
        if "id" not in before:
            (number,) = add_publications(connection, self._tenant, [changed], skip_missing=skip_missing)
        else:
            number = before["id"]
            stored = _References(connection, self._tenant, skip_missing=skip_missing).resolved(changed)
            store_record(connection, self._tenant, self._resource, stored)
            _index(connection, self._tenant, [(number, stored)])
        kept = {asset["id"]: asset for asset in changed["assets"] if "id" in asset}
        for asset in before["assets"]:
            if asset["id"] not in kept:
                remove_record(connection, self._tenant, "assets", asset["id"])
            else:
                store_record(connection, self._tenant, "assets", kept[asset["id"]])
        new = [{**asset, "publication_id": number} for asset in changed["assets"] if "id" not in asset]
        add_records(connection, self._tenant, "assets", new)
        return number

    def _complete(self, connection: sqlite3.Connection, documents: list[Document]) -> list[Document]:
        """Adds the names of contributors, and the assets."""
        tenant, numbers = self._tenant, [each["id"] for each in documents]
        assets: dict[int, list[Document]] = defaultdict(list)
        for asset in referring_records(connection, tenant, "assets", "publication_id", numbers):
            assets[asset["publication_id"]].append(asset)
        names = texts_by_id(connection, tenant, "users", {each["contributor"] for each in documents})
        return [
            {
                **each,
                "contributor": each["contributor"] and {"id": each["contributor"], "name": names[each["contributor"]]},
                "assets": assets[each["id"]],
            }
            for each in documents
        ]


def new_publication(**values: Any) -> Document:
    """Returns the document of a new publication."""
    empty = ("title", "publishable_type", "published_on", "abstract", "contributor", "organization")
    lists: Document = {name: [] for name in ("authors", "identifiers", "categories", "assets")}
    return {**dict.fromkeys((*empty, "import_state", "cover", "extra")), **lists, **values}


def add_publications(
    connection: sqlite3.Connection, tenant: int, new: Sequence[Document], *, skip_missing: bool = False
) -> range:
    """Stores publications without their assets under the next ids; returns the ids. It is fast for many at once."""
    references = _References(connection, tenant, skip_missing=skip_missing)
    stored = [references.resolved(document) for document in new]
    ids = add_records(connection, tenant, "publications", stored)
    _index(connection, tenant, list(zip(ids, stored, strict=True)))
    return ids


class _References:
    """Finds what publications that are written refer to, by id; a category that is given by name is found or created."""

    def __init__(self, connection: sqlite3.Connection, tenant: int, *, skip_missing: bool) -> None:
        self._connection = connection
        self._tenant = tenant
        self._skip_missing = skip_missing
        resources = ("categories", "organizations", "users")
        self._names = {resource: texts_by_id(connection, tenant, resource) for resource in resources}
        self._categories = {name: number for number, name in self._names["categories"].items()}

    def resolved(self, document: Document) -> Document:
        """Returns the document as it is stored, with each category once, or raises 404."""
        numbers = dict.fromkeys(each.get("id") or self._category(each["name"]) for each in document["categories"])
        categories = [self._named("categories", number) for number in numbers]
        contributor, organization = (
            document[field] and self._named(resource, document[field]["id"])
            for field, resource in (("contributor", "users"), ("organization", "organizations"))
        )
        return {
            **document,
            "categories": [each for each in categories if each is not None],
            "contributor": contributor and contributor["id"],
            "organization": organization,
        }

    def _category(self, name: str) -> int:
        if name not in self._categories:
            (number,) = add_records(self._connection, self._tenant, "categories", [{"name": name}])
            self._categories[name], self._names["categories"][number] = number, name
        return self._categories[name]

    def _named(self, resource: str, number: int) -> Document | None:
        if number in self._names[resource]:
            return {"id": number, "name": self._names[resource][number]}
        if self._skip_missing and resource != "users":
            return None
        raise record_not_found()


def _index(connection: sqlite3.Connection, tenant: int, stored: Sequence[tuple[int, Document]]) -> None:
    """Makes publications, given with their ids, findable."""
    key = "(SELECT key FROM records WHERE tenant = ? AND resource = 'publications' AND id = ?)"
    for table, column in (("terms", "publication"), ("words", "rowid")):
        connection.executemany(
            f"DELETE FROM {table} WHERE {column} = {key}", [(tenant, number) for number, _ in stored]
        )
    connection.executemany(
        f"INSERT INTO terms (publication, kind, folded) VALUES ({key}, ?, ?)",
        [(tenant, number, kind, fold(text)) for number, document in stored for kind, text in _terms(document)],
    )
    connection.executemany(
        f"INSERT INTO words (rowid, title, authors, abstract, identifiers, categories) VALUES ({key}, ?, ?, ?, ?, ?)",
        [(tenant, number, *_words(document)) for number, document in stored],
    )


def _terms(document: Document) -> Iterable[tuple[str, str]]:
    yield from ((each["type"], each["value"]) for each in document["identifiers"])
    yield from (("category", each["name"]) for each in document["categories"])


def _words(document: Document) -> tuple[str, ...]:
    return (
        document["title"] or "",
        " ".join(each["name"] for each in document["authors"]),
        document["abstract"] or "",
        " ".join(each["value"] for each in document["identifiers"]),
        " ".join(each["name"] for each in document["categories"]),
    )
