"""Publications in responses of version 3; ``schemas.py`` describes the fields."""

from __future__ import annotations

from typing import Any

from sandbox.both_versions.rendering import asset_record, cover_record, extra_fields, reference_record
from sandbox.endpoints import Call
from sandbox.state.publications import Publication


def publication_record(stored: Publication, call: Call) -> dict[str, Any]:
    """Returns the record, with every identifier in its original order."""
    record: dict[str, Any] = {
        "id": stored.id,
        "title": stored.title,
        "publishable_type": stored.publishable_type,
        "published_on": stored.published_on,
        "abstract": stored.abstract,
        "authors": [{"name": author.name, "type": author.type} for author in stored.authors],
        "identifiers": [{"type": each.type, "value": each.value} for each in stored.identifiers],
        "categories": [{"id": category.id, "name": category.name} for category in stored.categories],
        "contributor": reference_record(stored.contributor),
        "organization": reference_record(stored.organization),
        "cover": stored.cover and cover_record(stored.cover, call),
        "assets": [asset_record(asset, call) for asset in stored.assets],
    }
    if call.settings.variations.extra_fields:
        record |= extra_fields(stored)
    if call.extra is not None:
        record["extra"] = stored.extra
    return record
