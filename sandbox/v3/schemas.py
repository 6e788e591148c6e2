"""The schemas of version 3 in OpenAPI's words."""

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
from sandbox.endpoints import TEXT, Schema

_ASSETS = {
    **array(form({"name": TEXT_OR_NULL, "content_type": TEXT_OR_NULL, "file": ref("FileUpload")}, required=("file",))),
    "description": "Files that were uploaded and are to be attached; needs the scope `assets:write`",
}
_CATEGORIES = {
    **array({**form({"id": ID, "name": NAME}), "minProperties": 1}),
    "description": "Each `{name}`, which finds or creates, or `{id}`, which has to exist. Replaces the list.",
}
_TAKEN: Mapping[str, Schema] = {
    **TAKEN_TEXTS,
    "authors": array(form({"name": NAME, "type": {**AUTHOR_TYPE, "default": "person"}}, required=("name",))),
    "identifiers": array(form({"type": NAME, "value": NAME}, required=("type", "value"))),
    "categories": _CATEGORIES,
    **TAKEN_REFERENCES,
    "cover": or_null("FileUpload"),
    "assets": _ASSETS,
    "assets_attributes": _ASSETS,
}

SCHEMAS: Mapping[str, Schema] = {
    **COMMON_SCHEMAS,
    **FILE_SCHEMAS,
    "Identifier": record({"type": TEXT, "value": TEXT}),
    "Publication": record(
        {
            "id": INTEGER,
            **SHOWN_TEXTS,
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
    "PublicationCreate": form(_TAKEN, required=("title",)),
    "PublicationUpdate": form(_TAKEN),
}
