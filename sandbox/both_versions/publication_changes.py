"""What both versions do alike where a payload changes the draft of a publication."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandbox.endpoints import Call
from sandbox.state.blobs import StoredFile
from sandbox.state.drafts import Author, Draft, NewAsset

_TEXTS = ("title", "publishable_type", "published_on", "abstract")
_REFERENCES = ("contributor", "organization")
_FILES = ("assets", "assets_attributes")

DraftChange = Callable[[Draft], Draft]


def common_changes(call: Call) -> dict[str, Any]:
    """Returns the changes that both versions write alike: texts, references and cover, if they are in the payload."""
    payload = call.payload
    changes: dict[str, Any] = {name: payload[name] for name in _TEXTS if name in payload}
    for name in _REFERENCES:
        if name in payload:
            changes[name] = payload[name] and payload[name]["id"]
    if "cover" in payload:
        changes["cover"] = payload["cover"] and _stored_file(payload["cover"], call)
    return changes


def file_entries(call: Call) -> list[Mapping[str, Any]]:
    """Returns the entries of ``assets`` and ``assets_attributes``; any entry needs ``assets:write``, too."""
    sent = [each for name in _FILES for each in call.payload.get(name, ())]
    if sent:
        call.signed_in.require("assets:write")
    return sent


def new_assets(sent: Iterable[Mapping[str, Any]], call: Call) -> tuple[NewAsset, ...]:
    """Returns the files to attach; name and type default to those of the file."""
    assets = []
    for each in sent:
        file = _stored_file(each["file"], call)
        name, content_type = each.get("name"), each.get("content_type")
        keeps = name == "" and call.settings.variations.empty_names == "kept"
        assets.append(NewAsset(name if keeps else name or file.filename, content_type or file.mime_type, file))
    return tuple(assets)


def author(entry: Mapping[str, Any]) -> Author:
    """Returns an author; the default type is person."""
    return Author(entry["name"], entry.get("type", "person"))


def _stored_file(upload: Mapping[str, Any], call: Call) -> StoredFile:
    """Returns the file of ``{id, storage: cache, metadata}``, or raises the storage not-found error."""
    empty_names = call.settings.variations.empty_names
    return call.tenant.storage.promote(upload["id"], upload.get("metadata"), empty_names=empty_names)
