"""Parts of a record that look alike in both versions: files, covers and assets."""

from __future__ import annotations

from typing import Any

from sandbox.endpoints import Call
from sandbox.state.blobs import StoredFile
from sandbox.state.publications import Asset, Publication

_STORED = "store"

Record = dict[str, Any]


def publication_record(stored: Publication, call: Call, identifiers: Record, references: Record) -> Record:
    """Returns the record of a publication; the versions differ in its identifiers and references."""
    record: Record = {
        "id": stored.id,
        "title": stored.title,
        "publishable_type": stored.publishable_type,
        "published_on": stored.published_on,
        "abstract": stored.abstract,
        "authors": [{"name": author.name, "type": author.type} for author in stored.authors],
        **identifiers,
        "categories": [{"id": category.id, "name": category.name} for category in stored.categories],
        **references,
        "cover": stored.cover and cover_record(stored.cover, call),
        "assets": [asset_record(asset, call) for asset in stored.assets],
    }
    return record | (extra_fields(stored) if call.settings.variations.extra_fields else {})


def reference_records(stored: Publication) -> dict[str, Record | None]:
    """Returns contributor and organization."""
    referred = {"contributor": stored.contributor, "organization": stored.organization}
    return {name: None if each is None else {"id": each.id, "name": each.name} for name, each in referred.items()}


def cover_record(file: StoredFile, call: Call) -> Record:
    """Returns a cover; like an asset, it has its address only for callers who may read assets."""
    return {**file_record(file), **({"url": _url(file, call)} if _may_read(call) else {})}


def asset_record(asset: Asset, call: Call) -> Record:
    """Returns an asset; it has its three addresses only for callers who may read assets."""
    return {
        "id": asset.id,
        "publication_id": asset.publication_id,
        "name": asset.name,
        "content_type": asset.content_type,
        "file": file_record(asset.file),
        **(_urls(asset.file, call) if _may_read(call) else {}),
    }


def file_record(file: StoredFile) -> Record:
    """Returns a stored file."""
    metadata = {"size": file.size, "filename": file.filename, "mime_type": file.mime_type}
    return {"id": file.id, "storage": _STORED, "metadata": metadata}


def extra_fields(stored: Publication) -> Record:
    """Returns fields that docs/service.md does not know, as a service may have them."""
    return {
        "pmcid": f"PMC{stored.id}",
        "language": "en" if stored.id % 2 else None,
        "links": [{"rel": "self", "position": stored.id}],
        "review": {"state": "open", "notes": []},
    }


def _may_read(call: Call) -> bool:
    return call.signed_in.may("assets:read")


def _urls(file: StoredFile, call: Call) -> dict[str, str]:
    """Returns the three addresses: every file is its own thumbnail and preview."""
    return dict.fromkeys(("url", "thumb_url", "preview_url"), _url(file, call))


def _url(file: StoredFile, call: Call) -> str:
    return call.tenant.storage.url(call.base_url, file.id)
