"""How a payload of version 2 changes a draft: flat identifiers, and lists whose entries are added.

An entry marked ``_destroy`` is removed: an author by name (and type, if given), a category by id or name, an asset by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sandbox.both_versions.publication_changes import DraftChange, author, common_changes, file_entries, new_assets
from sandbox.endpoints import Call
from sandbox.state.records import Document, MissingReference
from sandbox.v2.destroy_markers import is_destroyed
from sandbox.v2.render import FLAT_IDENTIFIERS

_ASSET_TEXTS = ("name", "content_type")

Entry = Mapping[str, Any]


def draft_change(call: Call) -> DraftChange:
    """Returns the change of a payload. It stores the files at once, because that needs a transaction of its own."""
    payload = call.payload
    sent = file_entries(call)
    changes = common_changes(call)
    added = new_assets((each for each in sent if "id" not in each), call)

    def change(before: Document) -> Document:
        return {
            **before,
            **changes,
            "identifiers": list(_identifiers(before["identifiers"], payload)),
            "authors": _merged_authors(before["authors"], payload.get("authors", ())),
            "categories": _merged_categories(before["categories"], payload.get("categories", ())),
            "assets": [*_changed_assets(before["assets"], [each for each in sent if "id" in each]), *added],
        }

    return change


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
        if is_destroyed(entry):
            authors = [each for each in authors if each != {"type": each["type"], **_kept(entry, "name", "type")}]
        elif author(entry) not in authors:
            authors.append(author(entry))
    return authors


def _merged_categories(before: Sequence[Document], entries: Iterable[Entry]) -> list[Document]:
    """Adds categories at the end, or removes them."""
    categories = list(before)
    for entry in entries:
        key = "id" if "id" in entry else "name"
        if is_destroyed(entry):
            categories = [each for each in categories if each.get(key) != entry[key]]
        else:
            categories.append(_kept(entry, "id", "name"))
    return categories


def _changed_assets(before: Sequence[Document], entries: Iterable[Entry]) -> list[Document]:
    """Changes the texts of attached files, or removes them; raises ``MissingReference`` for the id of none."""
    assets = {each["id"]: each for each in before}
    for entry in entries:
        if entry["id"] not in assets:
            raise MissingReference(f"assets {entry['id']}")
        assets[entry["id"]] = {**assets[entry["id"]], **_kept(entry, *_ASSET_TEXTS)}
        if is_destroyed(entry):
            del assets[entry["id"]]
    return list(assets.values())


def _kept(entry: Entry, *names: str) -> Document:
    return {name: entry[name] for name in names if name in entry}
