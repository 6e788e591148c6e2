"""Drafts: the values of a publication before it is written, and the statements that write it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sandbox.state.blobs import StoredFile, file_key
from sandbox.state.search import fold
from sandbox.state.tenants import next_ids

_LARGEST_ID = 2**63 - 1


class MissingReference(LookupError):  # noqa: N818  # the name says what is wrong
    """A draft has the id of a category, contributor, organization or asset that the tenant does not have."""


@dataclass(frozen=True, slots=True)
class Author:
    """``type`` is ``person`` or ``corporate``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Identifier:
    """``type`` is for example ``doi``; ``value`` is verbatim."""

    type: str
    value: str


@dataclass(frozen=True, slots=True)
class NewAsset:
    """A stored file to attach."""

    name: str | None
    content_type: str | None
    file: StoredFile


@dataclass(frozen=True, slots=True)
class AssetChange:
    """New texts of an attached file, by column, or its removal."""

    id: int
    texts: dict[str, str | None] = field(default_factory=dict)
    remove: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """The values of a publication.

    ``categories``: an id associates a category, a name finds or creates one. ``skip_missing_references``: an unknown category or
    organization is left out; otherwise it is a ``MissingReference``, as an unknown contributor always is. A ``cover`` of None
    removes the cover. ``extra``: values of fields that only other shapes have.
    """

    title: str | None
    publishable_type: str | None = None
    published_on: str | None = None
    abstract: str | None = None
    authors: tuple[Author, ...] = ()
    identifiers: tuple[Identifier, ...] = ()
    categories: tuple[int | str, ...] = ()
    contributor: int | None = None
    organization: int | None = None
    import_state: str | None = None
    cover: StoredFile | Literal["unchanged"] | None = "unchanged"
    new_assets: tuple[NewAsset, ...] = ()
    asset_changes: tuple[AssetChange, ...] = ()
    skip_missing_references: bool = False
    extra: dict[str, Any] | None = None


def add_publications(connection: sqlite3.Connection, tenant: int, new: Sequence[Draft]) -> list[int]:
    """Stores publications under the next ids; returns their keys in the same order. It is fast for many at once."""
    ids = next_ids(connection, tenant, "publications", len(new))
    (last,) = connection.execute("SELECT coalesce(max(key), 0) FROM publications").fetchone()
    keys = list(range(last + 1, last + 1 + len(new)))
    connection.executemany(
        "INSERT INTO publications (key, tenant, id, authors) VALUES (?, ?, ?, '[]')",
        ((key, tenant, number) for key, number in zip(keys, ids, strict=True)),
    )
    _write(connection, tenant, list(zip(keys, new, strict=True)))
    return keys


def rewrite_publication(connection: sqlite3.Connection, tenant: int, key: int, draft: Draft) -> None:
    """Replaces the values of a stored publication (by key)."""
    connection.execute("DELETE FROM identifiers WHERE publication = ?", (key,))
    connection.execute("DELETE FROM publication_categories WHERE publication = ?", (key,))
    connection.execute("DELETE FROM words WHERE rowid = ?", (key,))
    _write(connection, tenant, [(key, draft)])


Drafts = Sequence[tuple[int, Draft]]


def _write(connection: sqlite3.Connection, tenant: int, drafts: Drafts) -> None:
    """Fills rows that exist and have no dependent rows but assets."""
    connection.executemany(
        "UPDATE publications SET title = ?, publishable_type = ?, published_on = ?, abstract = ?, authors = ?, "
        "import_state = ?, contributor = ?, organization = ?, extra = ? WHERE key = ?",
        ((*_columns(connection, tenant, draft), key) for key, draft in drafts),
    )
    connection.executemany(
        "INSERT INTO identifiers (publication, position, type, value, folded) VALUES (?, ?, ?, ?, ?)",
        (
            (key, position, each.type, each.value, fold(each.value))
            for key, draft in drafts
            for position, each in enumerate(draft.identifiers)
        ),
    )
    names = _write_categories(connection, tenant, drafts)
    connection.executemany(
        "INSERT INTO words (rowid, title, authors, abstract, identifiers, categories) VALUES (?, ?, ?, ?, ?, ?)",
        ((key, *_search_texts(draft, categories)) for (key, draft), categories in zip(drafts, names, strict=True)),
    )
    for key, draft in drafts:
        _write_files(connection, tenant, key, draft)


def _columns(connection: sqlite3.Connection, tenant: int, draft: Draft) -> tuple[object, ...]:
    authors = json.dumps([{"name": each.name, "type": each.type} for each in draft.authors], ensure_ascii=False)
    contributor = _referenced_key(connection, tenant, "users", draft.contributor, skip_missing=False)
    organization = _referenced_key(
        connection, tenant, "organizations", draft.organization, skip_missing=draft.skip_missing_references
    )
    return (
        draft.title,
        draft.publishable_type,
        draft.published_on,
        draft.abstract,
        authors,
        draft.import_state,
        contributor,
        organization,
        None if draft.extra is None else json.dumps(draft.extra, ensure_ascii=False),
    )


def _referenced_key(
    connection: sqlite3.Connection, tenant: int, table: str, number: int | None, *, skip_missing: bool
) -> int | None:
    """Returns the key of an id of this tenant."""
    if number is None:
        return None
    row = (
        number <= _LARGEST_ID
        and connection.execute(f"SELECT key FROM {table} WHERE tenant = ? AND id = ?", (tenant, number)).fetchone()
    )
    if row:
        return int(row[0])
    if skip_missing:
        return None
    raise MissingReference(f"{table} {number}")


def _write_categories(connection: sqlite3.Connection, tenant: int, drafts: Drafts) -> list[list[str]]:
    """Associates publications with categories and creates new ones by name; returns the names for each publication."""
    rows = connection.execute("SELECT key, id, name FROM categories WHERE tenant = ?", (tenant,)).fetchall()
    by_name = {name: key for key, _, name in rows}
    by_id = {number: (key, name) for key, number, name in rows}
    links: list[tuple[int, int, int]] = []
    names: list[list[str]] = []
    for publication, draft in drafts:
        categories: dict[int, str] = {}
        for category in draft.categories:
            if isinstance(category, str):
                if category not in by_name:
                    by_name[category] = add_category(connection, tenant, category)
                categories[by_name[category]] = category
            elif category in by_id:
                categories[by_id[category][0]] = by_id[category][1]
            elif not draft.skip_missing_references:
                raise MissingReference(f"categories {category}")
        links += ((publication, position, key) for position, key in enumerate(categories))
        names.append(list(categories.values()))
    connection.executemany(
        "INSERT INTO publication_categories (publication, position, category) VALUES (?, ?, ?)", links
    )
    return names


def add_category(connection: sqlite3.Connection, tenant: int, name: str) -> int:
    """Creates a category; returns its key."""
    (number,) = next_ids(connection, tenant, "categories")
    cursor = connection.execute(
        "INSERT INTO categories (tenant, id, name, folded) VALUES (?, ?, ?, ?)", (tenant, number, name, fold(name))
    )
    return int(cursor.lastrowid or 0)


def _search_texts(draft: Draft, categories: Iterable[str]) -> tuple[str, ...]:
    return (
        draft.title or "",
        " ".join(each.name for each in draft.authors),
        draft.abstract or "",
        " ".join(each.value for each in draft.identifiers),
        " ".join(categories),
    )


def _write_files(connection: sqlite3.Connection, tenant: int, publication: int, draft: Draft) -> None:
    if draft.cover != "unchanged":
        set_cover(connection, publication, None if draft.cover is None else file_key(connection, tenant, draft.cover))
    for change in draft.asset_changes:
        _change_asset(connection, publication, change)
    for new in draft.new_assets:
        file = file_key(connection, tenant, new.file)
        add_asset(connection, tenant, publication, name=new.name, content_type=new.content_type, file=file)


def _change_asset(connection: sqlite3.Connection, publication: int, change: AssetChange) -> None:
    """Changes or removes an asset of the publication."""
    asset: tuple[Any, ...] = (publication, min(change.id, _LARGEST_ID))
    if connection.execute("SELECT 1 FROM assets WHERE publication = ? AND id = ?", asset).fetchone() is None:
        raise MissingReference(f"assets {change.id}")
    for column in ("name", "content_type"):
        if column in change.texts:
            connection.execute(
                f"UPDATE assets SET {column} = ? WHERE publication = ? AND id = ?", (change.texts[column], *asset)
            )
    if change.remove:
        connection.execute("DELETE FROM assets WHERE publication = ? AND id = ?", asset)


def add_asset(
    connection: sqlite3.Connection,
    tenant: int,
    publication: int,
    *,
    name: str | None,
    content_type: str | None,
    file: int,
) -> int:
    """Attaches a stored file to a publication (both by key); returns the asset's id."""
    (number,) = next_ids(connection, tenant, "assets")
    connection.execute(
        "INSERT INTO assets (tenant, id, publication, name, content_type, file) VALUES (?, ?, ?, ?, ?, ?)",
        (tenant, number, publication, name, content_type, file),
    )
    return number


def set_cover(connection: sqlite3.Connection, publication: int, file: int | None) -> None:
    """Sets the cover of a publication (both by key); None removes it."""
    connection.execute("UPDATE publications SET cover = ? WHERE key = ?", (file, publication))
