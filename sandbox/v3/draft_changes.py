"""How a payload of version 3 changes a publication: a field of the payload replaces the stored one, a list as a whole.

Files are the exception: they are added, and other endpoints remove them.
"""

from __future__ import annotations

from sandbox.both_versions.publication_changes import DraftChange, author, common_changes, file_entries, new_assets
from sandbox.endpoints import Call
from sandbox.state.records import Document


def draft_change(call: Call) -> DraftChange:
    """Returns the change of a payload. It stores the files at once, because that needs a transaction of its own."""
    payload = call.payload
    assets = new_assets(file_entries(call), call)
    changes = common_changes(call)
    if "identifiers" in payload:
        changes["identifiers"] = [{"type": each["type"], "value": each["value"]} for each in payload["identifiers"]]
    if "categories" in payload:
        changes["categories"] = payload["categories"]
    if "authors" in payload:
        changes["authors"] = [author(each) for each in payload["authors"]]

    def change(before: Document) -> Document:
        extra = {**(before["extra"] or {}), **payload.get("extra", {})}
        return {**before, **changes, "assets": [*before["assets"], *assets], "extra": extra}

    return change
