"""How a payload of version 3 becomes a draft: a field that is given replaces what was there, a list as a whole.

Only files are different: those that are sent along are added, and removed through endpoints of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sandbox.both_versions.publication_changes import DraftChange, author, common_changes, file_entries, new_assets
from sandbox.endpoints import Call
from sandbox.state.drafts import Draft, Identifier


def draft_change(call: Call) -> DraftChange:
    """What the payload makes of a draft. Files are looked up now: it takes a transaction of its own."""
    payload = call.payload
    sent = file_entries(call)
    changes = common_changes(call) | {"new_assets": new_assets(sent, call)}
    if "authors" in payload:
        changes["authors"] = tuple(author(each) for each in payload["authors"])
    if "identifiers" in payload:
        changes["identifiers"] = tuple(Identifier(each["type"], each["value"]) for each in payload["identifiers"])
    if "categories" in payload:
        changes["categories"] = tuple(category(each) for each in payload["categories"])

    def fill(before: Draft) -> Draft:
        return replace(before, **changes)

    return fill


def category(entry: Mapping[str, Any]) -> int | str:
    """``{id}`` associates, ``{name}`` finds or creates; of an entry with both the id counts."""
    number: int | None = entry.get("id")
    return str(entry["name"]) if number is None else number
