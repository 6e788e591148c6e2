"""The OpenAPI schemas of version 3."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.both_versions.schemas import (
    AUTHOR_TYPE,
    COMMON_SCHEMAS,
    FILE_SCHEMAS,
    ID,
    INTEGER,
    NAME,
    REFERENCE_PAYLOAD_FIELDS,
    TEXT_FIELDS,
    TEXT_OR_NULL,
    array,
    or_null,
    page_of,
    payload_object,
    ref,
    response_object,
)
from sandbox.endpoints import TEXT, Schema

_ASSETS = {
    **array(
        payload_object(
            {"name": TEXT_OR_NULL, "content_type": TEXT_OR_NULL, "file": ref("FileUpload")}, required=("file",)
        )
    ),
    "description": "Uploaded files to attach; needs the scope `assets:write`",
}
_CATEGORIES = {
    **array({**payload_object({"id": ID, "name": NAME}), "minProperties": 1}),
    "description": "`{name}` finds or creates a category, `{id}` has to exist. Replaces the list.",
}
_PAYLOAD_FIELDS: Mapping[str, Schema] = {
    **TEXT_FIELDS,
    "authors": array(payload_object({"name": NAME, "type": {**AUTHOR_TYPE, "default": "person"}}, required=("name",))),
    "identifiers": array(payload_object({"type": NAME, "value": NAME}, required=("type", "value"))),
    "categories": _CATEGORIES,
    **REFERENCE_PAYLOAD_FIELDS,
    "cover": or_null("FileUpload"),
    "assets": _ASSETS,
    "assets_attributes": _ASSETS,
}

SCHEMAS: Mapping[str, Schema] = {
    **COMMON_SCHEMAS,
    **FILE_SCHEMAS,
    "Identifier": response_object({"type": TEXT, "value": TEXT}),
    "Publication": response_object(
        {
            "id": INTEGER,
            **TEXT_FIELDS,
            "authors": array(ref("Author")),
            "identifiers": array(ref("Identifier")),
            "categories": array(ref("Category")),
            "contributor": or_null("Reference"),
            "organization": or_null("Reference"),
            "cover": or_null("Cover"),
            "assets": array(ref("Asset")),
        }
    ),
    "PublicationList": page_of("Publication"),
    "PublicationCreate": payload_object(_PAYLOAD_FIELDS),
    "PublicationChange": payload_object(_PAYLOAD_FIELDS),
}
