"""Attached files and upload forms, the same in both versions.

A create checks the publication (404 ``RecordNotFound``) before the upload (404 ``StorageNotFound``).
"""

from __future__ import annotations

import re

from werkzeug.wrappers import Response

from sandbox.both_versions.rendering import asset_record
from sandbox.both_versions.schemas import MEDIA_TYPE
from sandbox.endpoints import Call, Endpoint, Parameter, SuccessResponse, named
from sandbox.errors import record_not_found, unprocessable
from sandbox.responses import deleted, json_response
from sandbox.state.records import Document, MissingReference, Records

_MAX_NAME_LENGTH = 255

_PRESIGN_PARAMETERS = (
    Parameter(
        "filename",
        "The file's name. The form fixes it as Content-Disposition; without a name it has none.",
        {"type": "string", "maxLength": _MAX_NAME_LENGTH},
    ),
    Parameter("type", "The file's media type. The form fixes it as Content-Type.", MEDIA_TYPE),
)


def presign_endpoint(path: str, place: str, scope: str) -> Endpoint:
    """Returns the endpoint that signs forms for one kind of upload; ``place`` begins the ids of its files."""

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
        summary=f"A form to upload {place}",
        handler=named(presign, f"presign_{place}"),
        parameters=_PRESIGN_PARAMETERS,
        success=SuccessResponse("The address of the form, and its fields, which precede the file", "Presign"),
        refusals=(422,),
        scope=scope,
    )


def create_asset(call: Call) -> Response:
    """Attaches an upload to a publication."""
    payload = call.payload
    _check_publication(call)
    empty_names = call.settings.variations.empty_names
    file = call.tenant.storage.promote(payload["file"]["id"], payload["file"].get("metadata"), empty_names=empty_names)
    texts = {
        "name": payload.get("name", file["filename"]),
        "content_type": payload.get("content_type", file["mime_type"]),
    }
    if texts["name"] == "" and empty_names == "replaced":
        texts["name"] = file["filename"]
    try:
        asset = _assets(call).create({"publication_id": payload["publication_id"], **texts, "file": file})
    except MissingReference:
        raise record_not_found() from None
    return call.answer(asset_record(asset, call))


def get_asset(call: Call) -> Response:
    """Returns an asset."""
    return call.answer(asset_record(_asset_of_path(call), call))


def change_asset(call: Call) -> Response:
    """Changes name, type, publication or file of an asset."""
    asset, values = _asset_of_path(call), dict(call.payload)
    _check_publication(call)
    if upload := values.get("file"):
        values["file"] = call.tenant.storage.promote(upload["id"], upload.get("metadata"))
    return call.answer(asset_record(_assets(call).change(asset["id"], values) or asset, call))


def delete_asset(call: Call) -> Response:
    """Deletes an asset and its file."""
    if not _assets(call).remove(call.number or 0):
        raise record_not_found()
    return deleted(call.settings.variations)


def _assets(call: Call) -> Records:
    return call.tenant.records["assets"]


def _check_publication(call: Call) -> None:
    number = call.payload.get("publication_id")
    if number is not None and call.tenant.publications.get(number) is None:
        raise record_not_found()


def _asset_of_path(call: Call) -> Document:
    asset = _assets(call).get(call.number or 0)
    if asset is None:
        raise record_not_found()
    return asset


ENDPOINTS = (
    presign_endpoint("/assets/presign", "assets", "assets:write"),
    presign_endpoint("/publications/cover/presign", "covers", "library:write"),
    Endpoint(
        method="POST",
        path="/assets",
        summary="Attach an upload to a publication",
        doc="404 `RecordNotFound`: no such publication; 404 `StorageNotFound`: no upload under `cache/<file.id>`.",
        handler=create_asset,
        action="create",
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
        summary="Delete an asset and its file",
        handler=delete_asset,
        success=SuccessResponse("An empty object", "Nothing"),
        refusals=(404,),
        scope="assets:write",
    ),
)
