"""Files in both versions: uploads in payloads, and files, covers and assets in responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.endpoints import Call
from sandbox.state.blobs import StoredFile
from sandbox.state.records import Document


def stored_file(upload: Mapping[str, Any], call: Call) -> StoredFile:
    """Returns the file of ``{id, storage: cache, metadata}``, or raises the storage not-found error."""
    return call.tenant.storage.promote(upload["id"], dict(upload.get("metadata") or {}))


def attached_file(entry: Mapping[str, Any], call: Call) -> Document:
    """Returns a new asset; name and type default to those of its file."""
    file = stored_file(entry["file"], call)
    return {
        "name": entry.get("name", file["filename"]),
        "content_type": entry.get("content_type", file["mime_type"]),
        "file": file,
    }


def cover_record(file: StoredFile, call: Call) -> Document:
    """Returns a cover; like an asset, it has its address only for callers who may read assets."""
    return {**_file_record(file), **_urls(file, call, "url")}


def asset_record(asset: Document, call: Call) -> Document:
    """Returns an asset; every file is its own thumbnail and preview."""
    return {
        **{name: asset[name] for name in ("id", "publication_id", "name", "content_type")},
        "file": _file_record(asset["file"]),
        **_urls(asset["file"], call, "url", "thumb_url", "preview_url"),
    }


def _file_record(file: StoredFile) -> Document:
    metadata = {name: file[name] for name in ("size", "filename", "mime_type")}
    return {"id": file["id"], "storage": "store", "metadata": metadata}


def _urls(file: StoredFile, call: Call, *names: str) -> dict[str, str]:
    may_read = call.signed_in.may("assets:read")
    return dict.fromkeys(names, call.tenant.storage.url(call.base_url, file["id"])) if may_read else {}
