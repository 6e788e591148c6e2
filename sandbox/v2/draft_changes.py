"""How a payload of version 2 changes a draft: flat identifiers, and lists whose entries are added.

An entry marked ``_destroy`` is removed: an author by name (and type, if given), a category by id or name, an asset by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sandbox.both_versions.publication_changes import DraftChange, author, common_changes, file_entries, new_assets
from sandbox.endpoints import Call
from sandbox.state.drafts import AssetChange, Author, Draft, Identifier
from sandbox.v2.destroy_markers import is_destroyed
from sandbox.v2.render import FLAT_IDENTIFIERS

_ASSET_TEXTS = ("name", "content_type")

Entry = Mapping[str, Any]


def draft_change(call: Call) -> DraftChange:
    """Returns the change of a payload. It stores the files at once, because that needs a transaction of its own."""
    payload = call.payload
    sent = file_entries(call)
    changes = common_changes(call) | {
        "new_assets": new_assets((each for each in sent if "id" not in each), call),
        "asset_changes": tuple(_asset_change(each) for each in sent if "id" in each),
        "skip_missing_references": True,
    }
    category_ids = call.tenant.publications.category_ids()

    def change(before: Draft) -> Draft:
        return replace(
            before,
            **changes,
            identifiers=tuple(_identifiers(before.identifiers, payload)),
            authors=_merged_authors(before.authors, payload.get("authors", ())),
            categories=_merged_categories(before.categories, payload.get("categories", ()), category_ids),
        )

    return change


def _identifiers(before: Sequence[Identifier], payload: Entry) -> Iterator[Identifier]:
    """Yields the identifiers: a flat field replaces the first one of its type; null or "" removes all of the type."""
    remaining = {name: payload[name] for name in FLAT_IDENTIFIERS if name in payload}
    cleared = {name for name, value in remaining.items() if not value}
    for identifier in before:
        if identifier.type in cleared:
            continue
        yield Identifier(identifier.type, remaining.pop(identifier.type, identifier.value))
    yield from (Identifier(name, value) for name, value in remaining.items() if value)


def _merged_authors(before: Sequence[Author], entries: Iterable[Entry]) -> tuple[Author, ...]:
    """Adds authors at the end, unless they are there already, or removes them."""
    authors = list(before)
    for entry in entries:
        if is_destroyed(entry):
            authors = [each for each in authors if not _matches(each, entry)]
        elif author(entry) not in authors:
            authors.append(author(entry))
    return tuple(authors)


def _matches(candidate: Author, entry: Entry) -> bool:
    return (candidate.name, candidate.type) == (entry["name"], entry.get("type", candidate.type))


def _merged_categories(
    before: Sequence[int | str], entries: Iterable[Entry], ids: Mapping[str, int]
) -> tuple[int | str, ...]:
    """Adds categories at the end, or removes them."""
    categories = list(before)
    for entry in entries:
        number = entry["id"] if "id" in entry else ids.get(entry["name"], entry["name"])
        if is_destroyed(entry):
            categories = [each for each in categories if each != number]
        elif number not in categories:
            categories.append(number)
    return tuple(categories)


def _asset_change(entry: Entry) -> AssetChange:
    words = {name: entry[name] for name in _ASSET_TEXTS if name in entry}
    return AssetChange(entry["id"], words, remove=is_destroyed(entry))
