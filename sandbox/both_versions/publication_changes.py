"""What both versions do alike where a payload changes the draft of a publication."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandbox.endpoints import Call
from sandbox.state.blobs import StoredFile
from sandbox.state.records import Document

_TEXTS = ("title", "publishable_type", "published_on", "abstract")
_REFERENCES = ("contributor", "organization")
_FILES = ("assets", "assets_attributes")

DraftChange = Callable[[Document], Document]


def common_changes(call: Call) -> Document:
    """Returns the changes that both versions write alike: texts, references and cover, if they are in the payload."""
    changes = {name: call.payload[name] for name in (*_TEXTS, *_REFERENCES) if name in call.payload}
    if "cover" in call.payload:
        changes["cover"] = call.payload["cover"] and _stored_file(call.payload["cover"], call)
    return changes


def file_entries(call: Call) -> list[Mapping[str, Any]]:
    """Returns the entries of ``assets`` and ``assets_attributes``; any entry needs ``assets:write``, too."""
    sent = [each for name in _FILES for each in call.payload.get(name, ())]
    if sent:
        call.signed_in.require("assets:write")
    return sent


def new_assets(sent: Iterable[Mapping[str, Any]], call: Call) -> list[Document]:
    """Returns the files to attach; name and type default to those of the file."""
    assets = []
    for each in sent:
        file = _stored_file(each["file"], call)
        keeps = each.get("name") == "" and call.settings.variations.empty_names == "kept"
        name = "" if keeps else each.get("name") or file["filename"]
        assets.append({"name": name, "content_type": each.get("content_type") or file["mime_type"], "file": file})
    return assets


def author(entry: Mapping[str, Any]) -> Document:
    """Returns an author; the default type is person."""
    return {"name": entry["name"], "type": entry.get("type", "person")}


def _stored_file(upload: Mapping[str, Any], call: Call) -> StoredFile:
    """Returns the file of ``{id, storage: cache, metadata}``, or raises the storage not-found error."""
    empty_names = call.settings.variations.empty_names
    return call.tenant.storage.promote(upload["id"], upload.get("metadata"), empty_names=empty_names)
