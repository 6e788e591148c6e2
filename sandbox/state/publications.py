"""Publications: a document each, as other records, with an index for searches.

The state has categories, contributor and organization of a publication by id, and each asset as a record of its own. A document
that is read has the names beside the ids, and its assets.
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
    has_record,
    referring_records,
    remove_record,
    store_record,
    texts_by_id,
)
from sandbox.state.search import Criteria, fold, where

_NAMED = {"contributor": "users", "organization": "organizations"}


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
            categories = _Categories(connection, self._tenant, skip_missing=skip_missing)
            store_record(connection, self._tenant, self._resource, categories.stored(changed))
            _index(connection, self._tenant, [(number, changed)], categories)
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
        """Adds the names of what publications refer to, and their assets."""
        tenant = self._tenant
        assets: dict[int, list[Document]] = defaultdict(list)
        for asset in referring_records(
            connection, tenant, "assets", "publication_id", [each["id"] for each in documents]
        ):
            assets[asset["publication_id"]].append(asset)
        categories = texts_by_id(
            connection, tenant, "categories", {number for each in documents for number in each["categories"]}
        )
        names = {
            field: texts_by_id(connection, tenant, resource, {each[field] for each in documents})
            for field, resource in _NAMED.items()
        }
        return [
            {
                **each,
                "categories": [{"id": number, "name": categories[number]} for number in each["categories"]],
                **{
                    field: each[field] and {"id": each[field], "name": texts[each[field]]}
                    for field, texts in names.items()
                },
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
    categories = _Categories(connection, tenant, skip_missing=skip_missing)
    ids = add_records(connection, tenant, "publications", [categories.stored(document) for document in new])
    _index(connection, tenant, list(zip(ids, new, strict=True)), categories)
    return ids


class _Categories:
    """Finds and creates the categories of publications that are written."""

    def __init__(self, connection: sqlite3.Connection, tenant: int, *, skip_missing: bool) -> None:
        self._connection = connection
        self._tenant = tenant
        self._skip_missing = skip_missing
        self._names = texts_by_id(connection, tenant, "categories")
        self._ids = {name: number for number, name in self._names.items()}

    def stored(self, document: Document) -> Document:
        """Returns the document as it is stored, or raises 404."""
        referred = {
            field: self._referred(field, resource, document[field] and document[field]["id"])
            for field, resource in _NAMED.items()
        }
        stored = {**document, **referred, "categories": self.numbers(document)}
        del stored["assets"]
        return stored

    def numbers(self, document: Document) -> list[int]:
        """Returns the ids of its categories, each once."""
        numbers = (self._number(category) for category in document["categories"])
        return list(dict.fromkeys(number for number in numbers if number is not None))

    def names(self, document: Document) -> list[str]:
        """Returns the names of its categories."""
        return [self._names[number] for number in self.numbers(document)]

    def _number(self, category: Document) -> int | None:
        number: int | None = category.get("id")
        if number is None and category["name"] not in self._ids:
            (number,) = add_records(self._connection, self._tenant, "categories", [{"name": category["name"]}])
            self._ids[category["name"]], self._names[number] = number, category["name"]
        elif number is None:
            number = self._ids[category["name"]]
        if number in self._names:
            return number
        if self._skip_missing:
            return None
        raise record_not_found()

    def _referred(self, field: str, resource: str, number: int | None) -> int | None:
        if number is None or has_record(self._connection, self._tenant, resource, number):
            return number
        if self._skip_missing and field == "organization":
            return None
        raise record_not_found()


def _index(
    connection: sqlite3.Connection, tenant: int, numbered: Sequence[tuple[int, Document]], categories: _Categories
) -> None:
    """Makes publications, given with their ids, findable."""
    key = "(SELECT key FROM records WHERE tenant = ? AND resource = 'publications' AND id = ?)"
    places = [(tenant, number) for number, _ in numbered]
    connection.executemany(f"DELETE FROM terms WHERE publication = {key}", places)
    connection.executemany(f"DELETE FROM words WHERE rowid = {key}", places)
    named = [
        (place, document, categories.names(document)) for place, (_, document) in zip(places, numbered, strict=True)
    ]
    connection.executemany(
        f"INSERT INTO terms (publication, kind, folded) VALUES ({key}, ?, ?)",
        ((*place, kind, fold(text)) for place, document, names in named for kind, text in _terms(document, names)),
    )
    connection.executemany(
        f"INSERT INTO words (rowid, title, authors, abstract, identifiers, categories) VALUES ({key}, ?, ?, ?, ?, ?)",
        ((*place, *_words(document, names)) for place, document, names in named),
    )


def _terms(document: Document, categories: Iterable[str]) -> Iterable[tuple[str, str]]:
    yield from ((each["type"], each["value"]) for each in document["identifiers"])
    yield from (("category", name) for name in categories)


def _words(document: Document, categories: Iterable[str]) -> tuple[str, ...]:
    return (
        document["title"] or "",
        " ".join(each["name"] for each in document["authors"]),
        document["abstract"] or "",
        " ".join(each["value"] for each in document["identifiers"]),
        " ".join(categories),
    )
