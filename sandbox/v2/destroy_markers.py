"""The marker ``_destroy`` of version 2: an entry of a list in a payload that has it is removed instead of added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.endpoints import Schema

_MARKER = "_destroy"

DESTROY_MARKER: Mapping[str, Schema] = {
    _MARKER: {"type": "boolean", "description": "Remove the entry instead of adding it"}
}
"""The property of an entry, for the schema of a payload."""


def is_destroyed(entry: Mapping[str, Any]) -> bool:
    """Returns whether the entry is to be removed."""
    return bool(entry.get(_MARKER))
