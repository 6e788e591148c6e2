"""Publications in responses of version 2; ``schemas.py`` describes the fields."""

from __future__ import annotations

from typing import Any

from sandbox.both_versions.listing import SEARCHABLE_IDENTIFIERS
from sandbox.both_versions.rendering import asset_record, cover_record, extra_fields, reference_record
from sandbox.endpoints import Call
from sandbox.state.publications import Publication

FLAT_IDENTIFIERS = SEARCHABLE_IDENTIFIERS


def publication_record(stored: Publication, call: Call) -> dict[str, Any]:
    """Returns the record. A flat field has the first identifier of its type."""
    flat: dict[str, str | None] = dict.fromkeys(FLAT_IDENTIFIERS)
    for identifier in reversed(stored.identifiers):
        if identifier.type in flat:
            flat[identifier.type] = identifier.value
    record: dict[str, Any] = {
        "id": stored.id,
        "title": stored.title,
        "publishable_type": stored.publishable_type,
        "published_on": stored.published_on,
        "abstract": stored.abstract,
        "authors": [{"name": author.name, "type": author.type} for author in stored.authors],
        **flat,
        "import_state": stored.import_state,
        "categories": [{"id": category.id, "name": category.name} for category in stored.categories],
        **_references(stored),
        "cover": stored.cover and cover_record(stored.cover, call),
        "assets": [asset_record(asset, call) for asset in stored.assets],
    }
    if call.settings.variations.extra_fields:
        record |= extra_fields(stored)
    return record


def _references(stored: Publication) -> dict[str, Any]:
    """Returns contributor and organization, if there are any: the real records of a v2 library have neither."""
    references = {
        "contributor": reference_record(stored.contributor),
        "organization": reference_record(stored.organization),
    }
    return {name: value for name, value in references.items() if value is not None}
