"""Publications in responses of version 3; ``schemas.py`` describes the fields."""

from __future__ import annotations

from typing import Any

from sandbox.both_versions import rendering
from sandbox.both_versions.rendering import reference_records
from sandbox.endpoints import Call
from sandbox.state.publications import Publication


def publication_record(stored: Publication, call: Call) -> dict[str, Any]:
    """Returns the record, with every identifier in its original order."""
    identifiers = [{"type": each.type, "value": each.value} for each in stored.identifiers]
    record = rendering.publication_record(stored, call, {"identifiers": identifiers}, reference_records(stored))
    return {**record, "extra": stored.extra}
