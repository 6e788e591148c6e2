"""Creates, changes and deletes publications. The versions only differ in how a payload changes a draft."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from werkzeug.wrappers import Response

from sandbox.both_versions.listing import Render
from sandbox.endpoints import Call
from sandbox.errors import record_not_found
from sandbox.responses import created, deleted, json_response
from sandbox.state.blobs import StoredFile
from sandbox.state.drafts import Author, Draft, MissingReference, NewAsset
from sandbox.state.publications import unchanged_draft

_TEXTS = ("title", "publishable_type", "published_on", "abstract")
_REFERENCES = ("contributor", "organization")
_FILES = ("assets", "assets_attributes")

DraftChange = Callable[[Draft], Draft]


def create_publication(call: Call, change: DraftChange, render: Render) -> Response:
    """Stores the draft that ``change`` makes of an empty one; an unknown reference is 404."""
    manner = call.settings.variations.author_authorities
    try:
        new = call.tenant.publications.create(
            change(Draft(title=None)), now=call.tenant.clock.now(), authorities=manner
        )
    except MissingReference:
        raise record_not_found() from None
    return created(render(new, call), call.settings.variations)


def find_publication(call: Call) -> None:
    """Raises 404 if the publication of the path does not exist."""
    if call.tenant.publications.get(call.number or 0) is None:
        raise record_not_found()


def change_publication(call: Call, change: DraftChange, render: Render) -> Response:
    """Stores the draft that ``change`` makes of the publication of the path; an unknown record or reference is 404."""
    manner = call.settings.variations.author_authorities
    try:
        changed = call.tenant.publications.change(
            call.number or 0, lambda stored: change(unchanged_draft(stored)), authorities=manner
        )
    except MissingReference:
        raise record_not_found() from None
    if changed is None:
        raise record_not_found()
    return json_response(render(changed, call))


def remove_publication(call: Call) -> Response:
    """Deletes the publication of the path and its assets."""
    if not call.tenant.publications.remove(call.number or 0):
        raise record_not_found()
    return deleted(call.settings.variations)


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
