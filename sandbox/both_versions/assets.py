"""Attached files and upload forms, the same in both versions.

A create checks the publication (404 ``RecordNotFound``) before the upload (404 ``StorageNotFound``).
"""

from __future__ import annotations

import re

from werkzeug.wrappers import Response

from sandbox.both_versions.files import asset_record, attached_file, stored_file
from sandbox.both_versions.resources import Resource
from sandbox.both_versions.schemas import MEDIA_TYPE
from sandbox.endpoints import Call, Endpoint, Parameter
from sandbox.errors import unprocessable
from sandbox.responses import json_response
from sandbox.state.records import Document

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
        form = storage.presign(call.base_url, place, filename=filename or None, mime_type=mime_type)
        return json_response(form)

    return Endpoint(
        method="GET",
        path=path,
        summary=f"A form to upload {place}",
        handler=presign,
        parameters=_PRESIGN_PARAMETERS,
        answer="Presign",
        refusals=(422,),
        scope=scope,
    )


class _Assets(Resource):
    def sent(self, call: Call) -> Document:
        """Returns the payload as it is stored, with the file of its upload."""
        payload: Document = dict(call.payload)
        if "publication_id" in payload:
            call.tenant.publications.get(payload["publication_id"])
        if call.endpoint.action == "create":
            return {**payload, **attached_file(payload, call)}
        return {**payload, "file": stored_file(payload["file"], call)} if "file" in payload else payload

    def record(self, document: Document, call: Call) -> Document:
        """Returns the record of an asset."""
        return asset_record(document, call)


_ASSETS = _Assets(
    key="assets",
    name="Asset",
    noun="file of a publication",
    path="/assets",
    actions=("create", "get", "change", "delete"),
    read="assets:read",
    write="assets:write",
    docs={
        "create": "404 `RecordNotFound`: no such publication; 404 `StorageNotFound`: no upload under `cache/<file.id>`."
    },
)

ENDPOINTS = (
    presign_endpoint("/assets/presign", "assets", "assets:write"),
    presign_endpoint("/publications/cover/presign", "covers", "library:write"),
    *_ASSETS.endpoints(),
)
