"""Publications in a form that is independent of API versions."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandbox.state.author_authorities import make_authorities
from sandbox.state.blobs import StoredFile
from sandbox.state.database import Database
from sandbox.state.drafts import Author, Draft, Identifier, add_publications, rewrite_publication
from sandbox.state.search import Criteria, where

# The largest integer of SQLite, so no record has a larger id
_LARGEST_ID = 2**63 - 1

_FILE = "files.id, files.filename, files.mime_type, files.size"


@dataclass(frozen=True, slots=True)
class NamedReference:
    """A category, contributor or organization of a publication."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Asset:
    """A file attached to a publication."""

    id: int
    publication_id: int
    name: str | None
    content_type: str | None
    file: StoredFile


@dataclass(frozen=True, slots=True)
class Publication:
    """A stored publication with its dependent records."""

    id: int
    title: str | None
    publishable_type: str | None
    published_on: str | None
    abstract: str | None
    authors: tuple[Author, ...]
    identifiers: tuple[Identifier, ...]
    categories: tuple[NamedReference, ...]
    contributor: NamedReference | None
    organization: NamedReference | None
    import_state: str | None
    cover: StoredFile | None
    assets: tuple[Asset, ...]
    extra: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class PublicationPage:
    """Some of the matching publications, and the number of all."""

    total: int
    publications: list[Publication]


class Publications:
    """The publications of a tenant."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant

    def search(self, criteria: Criteria, *, limit: int, offset: int, descending: bool = False) -> PublicationPage:
        """Returns the publications that meet the criteria, by id, from ``offset`` on."""
        condition, values = where(self._tenant, criteria)
        order = "DESC" if descending else "ASC"
        with self._database.read() as connection:
            (total,) = connection.execute(f"SELECT count(*) FROM publications WHERE {condition}", values).fetchone()
            if offset >= total:
                return PublicationPage(total, [])
            rows = connection.execute(
                f"SELECT key FROM publications WHERE {condition} ORDER BY id {order} LIMIT ? OFFSET ?",
                [*values, limit, offset],
            )
            return PublicationPage(total, _load(connection, [key for (key,) in rows]))

    def get(self, number: int) -> Publication | None:
        """Returns the publication with this id."""
        with self._database.read() as connection:
            key = _key(connection, self._tenant, number)
            return None if key is None else _load(connection, [key])[0]

    def create(self, draft: Draft, *, authorities: str = "none") -> Publication:
        """Creates a publication; raises ``MissingReference``. ``authorities``: how authorities are made of its authors."""
        with self._database.write() as connection:
            (key,) = add_publications(connection, self._tenant, [draft])
            make_authorities(connection, self._tenant, draft.authors, authorities)
            return _load(connection, [key])[0]

    def change(
        self, number: int, draft: Callable[[Publication], Draft], *, authorities: str = "none"
    ) -> Publication | None:
        """Applies a change to the publication with this id; returns None if there is none. The rest is as in a create."""
        with self._database.write() as connection:
            key = _key(connection, self._tenant, number)
            if key is None:
                return None
            changed = draft(_load(connection, [key])[0])
            rewrite_publication(connection, self._tenant, key, changed)
            make_authorities(connection, self._tenant, changed.authors, authorities)
            return _load(connection, [key])[0]

    def remove(self, number: int) -> bool:
        """Deletes the publication with this id; returns whether there was one."""
        with self._database.write() as connection:
            return remove_publication(connection, self._tenant, number)

    def edit(self, *, remove: Sequence[int], add: int, change: Sequence[int]) -> None:
        """Removes and retitles publications by id and adds some with a title only, like another person at work."""
        with self._database.write() as connection:
            for number in remove:
                remove_publication(connection, self._tenant, number)
            add_publications(connection, self._tenant, [Draft(f"Added {each}") for each in range(1, add + 1)])
            for number in change:
                if key := _key(connection, self._tenant, number):
                    stored = _load(connection, [key])[0]
                    rewrite_publication(
                        connection, self._tenant, key, replace(unchanged_draft(stored), title=f"Changed {number}")
                    )

    def titles(self, numbers: Iterable[int]) -> dict[int, str]:
        """Returns titles by id."""
        with self._database.read() as connection:
            sql = "SELECT id, title FROM publications WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))"
            return dict(connection.execute(sql, (self._tenant, json.dumps(list(numbers)))).fetchall())

    def category_ids(self) -> dict[str, int]:
        """Returns the id of each category by its name."""
        with self._database.read() as connection:
            return dict(connection.execute("SELECT name, id FROM categories WHERE tenant = ?", (self._tenant,)))

    def count(self) -> int:
        """Returns the number of publications."""
        with self._database.read() as connection:
            counted = connection.execute("SELECT count(*) FROM publications WHERE tenant = ?", (self._tenant,))
            return int(counted.fetchone()[0])


def remove_publication(connection: sqlite3.Connection, tenant: int, number: int) -> bool:
    """Deletes a publication with its dependent records; returns whether there was one."""
    key = _key(connection, tenant, number)
    if key is not None:
        connection.execute("DELETE FROM words WHERE rowid = ?", (key,))
        connection.execute("DELETE FROM publications WHERE key = ?", (key,))
    return key is not None


def unchanged_draft(stored: Publication) -> Draft:
    """Returns the draft that changes nothing."""
    return Draft(
        title=stored.title,
        publishable_type=stored.publishable_type,
        published_on=stored.published_on,
        abstract=stored.abstract,
        authors=stored.authors,
        identifiers=stored.identifiers,
        categories=tuple(each.id for each in stored.categories),
        contributor=stored.contributor.id if stored.contributor else None,
        organization=stored.organization.id if stored.organization else None,
        import_state=stored.import_state,
        extra=stored.extra,
    )


def _key(connection: sqlite3.Connection, tenant: int, number: int) -> int | None:
    if not 0 < number <= _LARGEST_ID:
        return None
    row = connection.execute("SELECT key FROM publications WHERE tenant = ? AND id = ?", (tenant, number)).fetchone()
    return int(row[0]) if row else None


def _load(connection: sqlite3.Connection, keys: Sequence[int]) -> list[Publication]:
    """Returns publications in the order of ``keys``, with one query for each table."""
    among = f"({', '.join('?' * len(keys))})"
    rows = connection.execute(
        "SELECT publications.key, publications.id, title, publishable_type, published_on, abstract, authors, import_state, "
        "publications.extra, "
        f"users.id, users.name, organizations.id, organizations.name, {_FILE} FROM publications "
        "LEFT JOIN users ON users.key = contributor LEFT JOIN organizations ON organizations.key = organization "
        f"LEFT JOIN files ON files.key = cover WHERE publications.key IN {among}",
        keys,
    ).fetchall()
    identifiers = _grouped(
        connection,
        f"SELECT publication, type, value FROM identifiers WHERE publication IN {among} ORDER BY publication, position",
        keys,
    )
    categories = _grouped(
        connection,
        "SELECT publication, id, name FROM publication_categories JOIN categories ON categories.key = category "
        f"WHERE publication IN {among} ORDER BY publication, position",
        keys,
    )
    assets = _grouped(
        connection,
        f"SELECT publication, assets.id, name, content_type, {_FILE} FROM assets JOIN files ON files.key = file "
        f"WHERE publication IN {among} ORDER BY assets.id",
        keys,
    )
    loaded = {row[0]: _publication(row, identifiers[row[0]], categories[row[0]], assets[row[0]]) for row in rows}
    return [loaded[key] for key in keys]


Rows = list[tuple[Any, ...]]


def _grouped(connection: sqlite3.Connection, sql: str, keys: Sequence[int]) -> defaultdict[int, Rows]:
    groups: defaultdict[int, Rows] = defaultdict(list)
    for publication, *rest in connection.execute(sql, keys):
        groups[publication].append(tuple(rest))
    return groups


def _publication(row: tuple[Any, ...], identifiers: Rows, categories: Rows, assets: Rows) -> Publication:
    _, number, title, publishable_type, published_on, abstract, authors, import_state, extra, *referred = row
    contributor, organization, cover = referred[:2], referred[2:4], referred[4:]
    return Publication(
        id=number,
        title=title,
        publishable_type=publishable_type,
        published_on=published_on,
        abstract=abstract,
        authors=tuple(Author(**each) for each in json.loads(authors)),
        identifiers=tuple(Identifier(*each) for each in identifiers),
        categories=tuple(NamedReference(*each) for each in categories),
        contributor=NamedReference(*contributor) if contributor[0] is not None else None,
        organization=NamedReference(*organization) if organization[0] is not None else None,
        import_state=import_state,
        cover=StoredFile(*cover) if cover[0] is not None else None,
        assets=tuple(Asset(each[0], number, each[1], each[2], StoredFile(*each[3:])) for each in assets),
        extra=json.loads(extra) if extra else None,
    )
