"""How a payload of version 3 changes a draft: a field of the payload replaces the stored one, a list as a whole.

Files are the exception: they are added, and other endpoints remove them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sandbox.both_versions.publication_changes import DraftChange, author, common_changes, file_entries, new_assets
from sandbox.endpoints import Call
from sandbox.state.drafts import Draft, Identifier


def draft_change(call: Call) -> DraftChange:
    """Returns the change of a payload. It stores the files at once, because that needs a transaction of its own."""
    payload = call.payload
    sent = file_entries(call)
    changes = common_changes(call) | {"new_assets": new_assets(sent, call)}
    if "authors" in payload:
        changes["authors"] = tuple(author(each) for each in payload["authors"])
    if "identifiers" in payload:
        changes["identifiers"] = tuple(Identifier(each["type"], each["value"]) for each in payload["identifiers"])
    if "categories" in payload:
        changes["categories"] = tuple(category(each) for each in payload["categories"])

    def change(before: Draft) -> Draft:
        return replace(before, **changes, extra={**(before.extra or {}), **payload.get("extra", {})})

    return change


def category(entry: Mapping[str, Any]) -> int | str:
    """Returns the id or name of a category: ``{id}`` associates, ``{name}`` finds or creates; the id takes precedence."""
    number: int | None = entry.get("id")
    return str(entry["name"]) if number is None else number
