"""Publications: a document each, as other records, with an index for searches.

The state has the contributor of a publication by id, and each asset as a record of its own. A document that is read has the
contributor's name, and the assets.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sandbox.errors import record_not_found
from sandbox.state.author_authorities import make_authorities
from sandbox.state.database import Database
from sandbox.state.records import Document, DocumentPage, Records
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
        with self._database.transaction():
            before = new_publication() if number is None else self.get(number)
            changed = change(before)
            written = self._write(before, changed, skip_missing=skip_missing)
            make_authorities(self.of("authorities"), changed["authors"], authorities)
            return self.get(written)

    def titles(self, numbers: Iterable[int]) -> dict[int, str]:
        """Returns titles by id."""
        return self.texts(numbers, field="title")

    def count(self) -> int:
        """Returns the number of publications."""
        return self.search(Criteria(), limit=0, offset=0).total

    def add_publications(self, new: Sequence[Document], *, skip_missing: bool = False) -> range:
        """Stores publications without their assets under the next ids; returns the ids. It is fast for many at once."""
        with self._database.transaction() as connection:
            references = _References(self, skip_missing=skip_missing)
            stored = [references.resolved(document) for document in new]
            ids = self.add(stored)
            _index(connection, self._tenant, list(zip(ids, stored, strict=True)))
            return ids

    def _write(self, before: Document, changed: Document, *, skip_missing: bool = False) -> int:
        """Stores a document that was read and changed, or a new one; returns its id."""
        if "id" not in before:
            (number,) = self.add_publications([changed], skip_missing=skip_missing)
        else:
            number = before["id"]
            stored = _References(self, skip_missing=skip_missing).resolved(changed)
            self.store(stored)
            with self._database.transaction() as connection:
                _index(connection, self._tenant, [(number, stored)])
        assets, kept = self.of("assets"), {asset["id"]: asset for asset in changed["assets"] if "id" in asset}
        for asset in before["assets"]:
            if asset["id"] not in kept:
                assets.remove(asset["id"])
            else:
                assets.store(kept[asset["id"]])
        assets.add([{**asset, "publication_id": number} for asset in changed["assets"] if "id" not in asset])
        return number

    def _complete(self, documents: list[Document]) -> list[Document]:
        """Adds the names of contributors, and the assets."""
        assets: dict[int, list[Document]] = defaultdict(list)
        for asset in self.of("assets").referring("publication_id", [document["id"] for document in documents]):
            assets[asset["publication_id"]].append(asset)
        names = self.of("users").texts({document["contributor"] for document in documents})
        return [
            {
                **document,
                "contributor": document["contributor"]
                and {"id": document["contributor"], "name": names[document["contributor"]]},
                "assets": assets[document["id"]],
            }
            for document in documents
        ]


def new_publication(**values: Any) -> Document:
    """Returns the document of a new publication."""
    empty = ("title", "publishable_type", "published_on", "abstract", "contributor", "organization")
    lists: Document = {name: [] for name in ("authors", "identifiers", "categories", "assets")}
    return {**dict.fromkeys((*empty, "import_state", "cover", "extra")), **lists, **values}


class _References:
    """Finds what publications that are written refer to, by id; a category that is given by name is found or created."""

    def __init__(self, records: Records, *, skip_missing: bool) -> None:
        self._records = records
        self._skip_missing = skip_missing
        self._names = {resource: records.of(resource).texts() for resource in ("categories", "organizations", "users")}
        self._categories = {name: number for number, name in self._names["categories"].items()}

    def resolved(self, document: Document) -> Document:
        """Returns the document as it is stored, with each category once, or raises 404."""
        numbers = dict.fromkeys(entry.get("id") or self._category(entry["name"]) for entry in document["categories"])
        categories = [self._named("categories", number) for number in numbers]
        contributor, organization = (
            document[field] and self._named(resource, document[field]["id"])
            for field, resource in (("contributor", "users"), ("organization", "organizations"))
        )
        return {
            **document,
            "categories": [category for category in categories if category is not None],
            "contributor": contributor and contributor["id"],
            "organization": organization,
        }

    def _category(self, name: str) -> int:
        if name not in self._categories:
            (number,) = self._records.of("categories").add([{"name": name}])
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
    yield from ((identifier["type"], identifier["value"]) for identifier in document["identifiers"])
    yield from (("category", category["name"]) for category in document["categories"])


def _words(document: Document) -> tuple[str, ...]:
    return (
        document["title"] or "",
        " ".join(author["name"] for author in document["authors"]),
        document["abstract"] or "",
        " ".join(identifier["value"] for identifier in document["identifiers"]),
        " ".join(category["name"] for category in document["categories"]),
    )
