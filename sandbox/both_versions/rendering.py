"""Parts of a record that look alike in both versions: files, covers and assets."""

from __future__ import annotations

from typing import Any

from sandbox.endpoints import Call
from sandbox.state.blobs import StoredFile
from sandbox.state.records import Document

_STORED = "store"

Record = dict[str, Any]


def publication_record(stored: Document, call: Call, identifiers: Record, references: Record) -> Record:
    """Returns the record of a publication; the versions differ in its identifiers and references."""
    record: Record = {
        **{name: stored[name] for name in ("id", "title", "publishable_type", "published_on", "abstract", "authors")},
        **identifiers,
        "categories": stored["categories"],
        **references,
        "cover": stored["cover"] and cover_record(stored["cover"], call),
        "assets": [asset_record(asset, call) for asset in stored["assets"]],
    }
    return record | (extra_fields(stored["id"]) if call.settings.variations.extra_fields else {})


def cover_record(file: StoredFile, call: Call) -> Record:
    """Returns a cover; like an asset, it has its address only for callers who may read assets."""
    return {**file_record(file), **({"url": _url(file, call)} if _may_read(call) else {})}


def asset_record(asset: Document, call: Call) -> Record:
    """Returns an asset; it has its three addresses only for callers who may read assets."""
    return {
        **{name: asset[name] for name in ("id", "publication_id", "name", "content_type")},
        "file": file_record(asset["file"]),
        **(_urls(asset["file"], call) if _may_read(call) else {}),
    }


def file_record(file: StoredFile) -> Record:
    """Returns a stored file."""
    metadata = {name: file[name] for name in ("size", "filename", "mime_type")}
    return {"id": file["id"], "storage": _STORED, "metadata": metadata}


def extra_fields(number: int) -> Record:
    """Returns fields that docs/service.md does not know, as a service may have them, for the publication with this id."""
    return {
        "pmcid": f"PMC{number}",
        "language": "en" if number % 2 else None,
        "links": [{"rel": "self", "position": number}],
        "review": {"state": "open", "notes": []},
    }


def _may_read(call: Call) -> bool:
    return call.signed_in.may("assets:read")


def _urls(file: StoredFile, call: Call) -> dict[str, str]:
    """Returns the three addresses: every file is its own thumbnail and preview."""
    return dict.fromkeys(("url", "thumb_url", "preview_url"), _url(file, call))


def _url(file: StoredFile, call: Call) -> str:
    return call.tenant.storage.url(call.base_url, file["id"])
