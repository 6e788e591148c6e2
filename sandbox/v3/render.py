"""Publications in responses of version 3; ``schemas.py`` describes the fields."""

from __future__ import annotations

from typing import Any

from sandbox.both_versions import rendering
from sandbox.endpoints import Call
from sandbox.state.records import Document


def publication_record(stored: Document, call: Call) -> dict[str, Any]:
    """Returns the record, with every identifier in its original order."""
    references = {name: stored[name] for name in ("contributor", "organization")}
    record = rendering.publication_record(stored, call, {"identifiers": stored["identifiers"]}, references)
    return {**record, "extra": stored["extra"]}
