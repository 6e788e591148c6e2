"""The OpenAPI schemas of version 2."""

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
from sandbox.endpoints import Schema
from sandbox.v2.publications import DESTROY_MARKER, FLAT_IDENTIFIERS

_ASSET_TEXTS = {"name": TEXT_OR_NULL, "content_type": TEXT_OR_NULL}
_ASSETS = {
    **array(
        {
            "anyOf": [
                payload_object({"file": ref("FileUpload"), **_ASSET_TEXTS}, required=("file",)),
                payload_object({"id": ID, **_ASSET_TEXTS, **DESTROY_MARKER}, required=("id",)),
            ]
        }
    ),
    "description": "New files, or, by `id`, attached files to change or remove",
}
_PAYLOAD_FIELDS: Mapping[str, Schema] = {
    **TEXT_FIELDS,
    **{
        name: {**TEXT_OR_NULL, "description": "Null or an empty text removes it", "deprecated": True}
        for name in FLAT_IDENTIFIERS
    },
    "authors": array(payload_object({"name": NAME, "type": AUTHOR_TYPE, **DESTROY_MARKER}, required=("name",))),
    "categories": array(
        {
            "anyOf": [
                payload_object({"name": NAME, **DESTROY_MARKER}, required=("name",)),
                payload_object({"id": ID, "name": NAME, **DESTROY_MARKER}, required=("id",)),
            ]
        }
    ),
    **REFERENCE_PAYLOAD_FIELDS,
    "cover": or_null("FileUpload"),
    "assets": _ASSETS,
    "assets_attributes": _ASSETS,
}

SCHEMAS: Mapping[str, Schema] = {
    **COMMON_SCHEMAS,
    **FILE_SCHEMAS,
    "Publication": response_object(
        {
            "id": INTEGER,
            **TEXT_FIELDS,
            "authors": array(ref("Author")),
            **{name: {**TEXT_OR_NULL, "deprecated": True} for name in FLAT_IDENTIFIERS},
            "import_state": {**TEXT_OR_NULL, "deprecated": True},
            "categories": array(ref("Category")),
            "cover": or_null("Cover"),
            "assets": array(ref("Asset")),
        },
        optional={"contributor": ref("Reference"), "organization": ref("Reference")},
    ),
    "PublicationList": page_of("Publication"),
    "PublicationCreate": payload_object(_PAYLOAD_FIELDS),
    "PublicationChange": payload_object(_PAYLOAD_FIELDS),
}
