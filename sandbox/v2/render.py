"""Publications in responses of version 2; ``schemas.py`` describes the fields."""

from __future__ import annotations

from typing import Any

from sandbox.both_versions import rendering
from sandbox.both_versions.listing import SEARCHABLE_IDENTIFIERS
from sandbox.endpoints import Call
from sandbox.state.records import Document

FLAT_IDENTIFIERS = SEARCHABLE_IDENTIFIERS


def publication_record(stored: Document, call: Call) -> dict[str, Any]:
    """Returns the record. A flat field has the first identifier of its type.

    Contributor and organization are there if there are any: the real records of a v2 library have neither.
    """
    flat: dict[str, str | None] = dict.fromkeys(FLAT_IDENTIFIERS)
    for identifier in reversed(stored["identifiers"]):
        if identifier["type"] in flat:
            flat[identifier["type"]] = identifier["value"]
    references = {name: stored[name] for name in ("contributor", "organization") if stored[name] is not None}
    return rendering.publication_record(stored, call, {**flat, "import_state": stored["import_state"]}, references)
