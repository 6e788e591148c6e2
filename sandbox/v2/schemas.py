"""The schemas of version 2 in OpenAPI's words."""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.both_versions.schemas import (
    AUTHOR_TYPE,
    COMMON_SCHEMAS,
    FILE_SCHEMAS,
    ID,
    INTEGER,
    NAME,
    SHOWN_TEXTS,
    TAKEN_REFERENCES,
    TAKEN_TEXTS,
    TEXT_OR_NULL,
    array,
    form,
    or_null,
    page_of,
    record,
    ref,
)
from sandbox.endpoints import Schema
from sandbox.v2.render import FLAT_IDENTIFIERS

_DESTROY = {"_destroy": {"type": "boolean", "description": "Take the entry away instead of adding it"}}
_WORDS = {"name": TEXT_OR_NULL, "content_type": TEXT_OR_NULL}
_ASSETS = {
    **array(
        {
            "anyOf": [
                form({"file": ref("FileUpload"), **_WORDS}, required=("file",)),
                form({"id": ID, **_WORDS, **_DESTROY}, required=("id",)),
            ]
        }
    ),
    "description": "Files to attach, or, by `id`, files that are attached and are changed or taken away",
}
_TAKEN: Mapping[str, Schema] = {
    **TAKEN_TEXTS,
    **{
        name: {**TEXT_OR_NULL, "description": "Null or nothing removes it", "deprecated": True}
        for name in FLAT_IDENTIFIERS
    },
    "authors": array(form({"name": NAME, "type": AUTHOR_TYPE, **_DESTROY}, required=("name",))),
    "categories": array(
        {
            "anyOf": [
                form({"name": NAME, **_DESTROY}, required=("name",)),
                form({"id": ID, "name": NAME, **_DESTROY}, required=("id",)),
            ]
        }
    ),
    **TAKEN_REFERENCES,
    "cover": or_null("FileUpload"),
    "assets": _ASSETS,
    "assets_attributes": _ASSETS,
}

SCHEMAS: Mapping[str, Schema] = {
    **COMMON_SCHEMAS,
    **FILE_SCHEMAS,
    "Publication": record(
        {
            "id": INTEGER,
            **SHOWN_TEXTS,
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
    "PublicationCreate": form(_TAKEN, required=("title",)),
    "PublicationUpdate": form(_TAKEN),
}
