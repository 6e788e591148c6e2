"""Attached files and forms for uploads, alike in every version.

Order of the checks when an asset is created: the publication (404 ``RecordNotFound``), then the upload (404
``StorageNotFound``). Nothing is made when one of them is missing.
"""

from __future__ import annotations

import re

from werkzeug.wrappers import Response

from sandbox.both_versions.rendering import asset_record
from sandbox.both_versions.schemas import MEDIA_TYPE
from sandbox.endpoints import Call, Endpoint, Parameter, SuccessResponse, named
from sandbox.errors import record_not_found, unprocessable
from sandbox.responses import created, deleted, json_response
from sandbox.state.publications import Asset

_MAX_NAME_LENGTH = 255

_PRESIGN_PARAMETERS = (
    Parameter(
        "filename",
        "The file's name, which the form fixes as its Content-Disposition. Without it the form has none.",
        {"type": "string", "maxLength": _MAX_NAME_LENGTH},
    ),
    Parameter("type", "The file's media type, which the form fixes as its Content-Type.", MEDIA_TYPE),
)


def presign_endpoint(path: str, place: str, scope: str) -> Endpoint:
    """The endpoint that gives out forms for one kind of upload; ``place`` begins the ids of its files."""

    def presign(call: Call) -> Response:
        filename, mime_type = call.request.args.get("filename"), call.request.args.get("type")
        if filename is not None and len(filename) > _MAX_NAME_LENGTH:
            raise unprocessable(f"filename: must have at most {_MAX_NAME_LENGTH} characters")
        if mime_type is not None and not re.fullmatch(MEDIA_TYPE["pattern"], mime_type):
            raise unprocessable("type: must be a media type such as application/pdf")
        storage = call.tenant.storage
        form = storage.presign(
            call.base_url, place, filename=filename or None, mime_type=mime_type, settings=call.settings
        )
        return json_response(form)

    return Endpoint(
        method="GET",
        path=path,
        summary=f"A form to upload {place} with",
        handler=named(presign, f"presign_{place}"),
        parameters=_PRESIGN_PARAMETERS,
        success=SuccessResponse(
            "Where to send the form, and every field that has to be in it before the file", "Presign"
        ),
        refusals=(422,),
        scope=scope,
    )


def create_asset(call: Call) -> Response:
    """Attach an upload to a publication."""
    wanted = call.payload
    publication = wanted["publication_id"]
    if not call.tenant.assets.has_publication(publication):
        raise record_not_found()
    file = call.tenant.storage.promote(wanted["file"]["id"], wanted["file"].get("metadata"))
    name = wanted.get("name", file.filename)
    content_type = wanted.get("content_type", file.mime_type)
    asset = call.tenant.assets.create(publication, name=name, content_type=content_type, file=file)
    if asset is None:
        raise record_not_found()
    return created(asset_record(asset, call), call.settings.variations)


def get_asset(call: Call) -> Response:
    """One asset."""
    return json_response(asset_record(_asset_of_path(call), call))


def change_asset(call: Call) -> Response:
    """Give an asset another name, type, publication or file."""
    found, wanted = _asset_of_path(call), call.payload
    publication = wanted.get("publication_id")
    if publication is not None and not call.tenant.assets.has_publication(publication):
        raise record_not_found()
    upload = wanted.get("file")
    file = call.tenant.storage.promote(upload["id"], upload.get("metadata")) if upload else None
    call.tenant.assets.change(found.id, wanted, publication=publication, file=file)
    return json_response(asset_record(_asset_of_path(call), call))


def delete_asset(call: Call) -> Response:
    """Remove an asset and its file."""
    if not call.tenant.assets.remove(call.number or 0):
        raise record_not_found()
    return deleted(call.settings.variations)


def _asset_of_path(call: Call) -> Asset:
    found = call.tenant.assets.get(call.number or 0)
    if found is None:
        raise record_not_found()
    return found


ENDPOINTS = (
    presign_endpoint("/assets/presign", "assets", "assets:write"),
    presign_endpoint("/publications/cover/presign", "covers", "library:write"),
    Endpoint(
        method="POST",
        path="/assets",
        summary="Attach an upload to a publication",
        doc="404 `RecordNotFound`: no such publication; 404 `StorageNotFound`: nothing was uploaded under `cache/<file.id>`.",
        handler=create_asset,
        payload="AssetCreate",
        success=SuccessResponse("The asset", "Asset"),
        refusals=(404,),
        scope="assets:write",
    ),
    Endpoint(
        method="GET",
        path="/assets/{id}",
        summary="One asset",
        handler=get_asset,
        success=SuccessResponse("The asset", "Asset"),
        refusals=(404,),
        scope="assets:read",
    ),
    Endpoint(
        method="PATCH",
        path="/assets/{id}",
        summary="Change an asset",
        handler=change_asset,
        payload="AssetChange",
        success=SuccessResponse("The changed asset", "Asset"),
        refusals=(404,),
        scope="assets:write",
    ),
    Endpoint(
        method="DELETE",
        path="/assets/{id}",
        summary="Remove an asset and its file",
        handler=delete_asset,
        success=SuccessResponse("An empty object", "Nothing"),
        refusals=(404,),
        scope="assets:write",
    ),
)
