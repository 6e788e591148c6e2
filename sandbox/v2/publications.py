"""Publications of version 2: flat identifiers, and payloads whose lists are added to those of a record.

An entry marked ``_destroy`` is removed: an author by name (and type, if given), a category by id or name, an asset by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sandbox.both_versions.files import attached_file
from sandbox.both_versions.publications import (
    SEARCHABLE_IDENTIFIERS,
    Publications,
    author,
    common_changes,
    file_entries,
    publication_record,
)
from sandbox.endpoints import Call, Schema
from sandbox.errors import record_not_found
from sandbox.state.records import Document

FLAT_IDENTIFIERS = SEARCHABLE_IDENTIFIERS
_ASSET_TEXTS = ("name", "content_type")
_MARKER = "_destroy"
DESTROY_MARKER: Mapping[str, Schema] = {
    _MARKER: {"type": "boolean", "description": "Remove the entry instead of adding it"}
}
"""The property of an entry, for the schema of a payload."""

Entry = Mapping[str, Any]


class _Publications(Publications):
    def record(self, document: Document, call: Call) -> Document:
        """Returns the record. A flat field has the first identifier of its type.

        Contributor and organization are there if there are any: the real records of a v2 library have neither.
        """
        flat: dict[str, str | None] = dict.fromkeys(FLAT_IDENTIFIERS)
        for identifier in reversed(document["identifiers"]):
            if identifier["type"] in flat:
                flat[identifier["type"]] = identifier["value"]
        references = {name: document[name] for name in ("contributor", "organization") if document[name] is not None}
        return publication_record(document, call, {**flat, "import_state": document["import_state"]}, references)

    def edited(self, call: Call) -> Callable[[Document], Document]:
        """Returns how a payload changes a document."""
        payload, sent, changes = call.payload, file_entries(call), common_changes(call)
        added = [attached_file(entry, call) for entry in sent if "id" not in entry]

        def change(before: Document) -> Document:
            return {
                **before,
                **changes,
                "identifiers": list(_identifiers(before["identifiers"], payload)),
                "authors": _merged_authors(before["authors"], payload.get("authors", ())),
                "categories": _merged_categories(before["categories"], payload.get("categories", ())),
                "assets": [*_changed_assets(before["assets"], [entry for entry in sent if "id" in entry]), *added],
            }

        return change


# Assumption: the only deprecated field that version 2 announces; flat identifiers are announced as parameters
PUBLICATIONS = _Publications(
    key="publications",
    name="Publication",
    noun="publication",
    path="/publications",
    actions=("list", "get", "create", "change", "delete"),
    docs={
        "list": "Every filter has to match. Ordered by id.",
        "create": "404 for an unknown contributor or uploaded file; an unknown category or organization is left out.",
        "change": "Adds entries of authors, categories and assets, and removes those with `_destroy`. The rest is as in a create.",
        "delete": "Its assets are deleted, too.",
    },
    deprecated=("import_state",),
)


def _identifiers(before: Sequence[Document], payload: Entry) -> Iterator[Document]:
    """Yields the identifiers: a flat field replaces the first one of its type; null or "" removes all of the type."""
    remaining = {name: payload[name] for name in FLAT_IDENTIFIERS if name in payload}
    cleared = {name for name, value in remaining.items() if not value}
    for identifier in before:
        kind = identifier["type"]
        if kind not in cleared:
            yield {"type": kind, "value": remaining.pop(kind, identifier["value"])}
    yield from ({"type": name, "value": value} for name, value in remaining.items() if value)


def _merged_authors(before: Sequence[Document], entries: Iterable[Entry]) -> list[Document]:
    """Adds authors at the end, unless they are there already, or removes them."""
    authors = list(before)
    for entry in entries:
        if entry.get(_MARKER):
            authors = [known for known in authors if known != {"type": known["type"], **_kept(entry, "name", "type")}]
        elif author(entry) not in authors:
            authors.append(author(entry))
    return authors


def _merged_categories(before: Sequence[Document], entries: Iterable[Entry]) -> list[Document]:
    """Adds categories at the end, or removes them."""
    categories = list(before)
    for entry in entries:
        key = "id" if "id" in entry else "name"
        if entry.get(_MARKER):
            categories = [category for category in categories if category.get(key) != entry[key]]
        else:
            categories.append(_kept(entry, "id", "name"))
    return categories


def _changed_assets(before: Sequence[Document], entries: Iterable[Entry]) -> list[Document]:
    """Changes the texts of attached files, or removes them; the id of none is 404."""
    assets = {asset["id"]: asset for asset in before}
    for entry in entries:
        if entry["id"] not in assets:
            raise record_not_found()
        assets[entry["id"]] = {**assets[entry["id"]], **_kept(entry, *_ASSET_TEXTS)}
        if entry.get(_MARKER):
            del assets[entry["id"]]
    return list(assets.values())


def _kept(entry: Entry, *names: str) -> Document:
    return {name: entry[name] for name in names if name in entry}
