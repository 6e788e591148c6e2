"""OpenAPI schemas: functions to write them, and the schemas of both versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.endpoints import Schema

TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
INTEGER: Schema = {"type": "integer"}
ID: Schema = {"type": "integer", "minimum": 1}
MEDIA_TYPE: Schema = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+( *; *[A-Za-z0-9!#$&^_.+-]+=[A-Za-z0-9!#$&^_.+-]+)*$",
}
DATE_OR_NULL: Schema = {"type": ["string", "null"], "format": "date"}


def response_object(properties: Mapping[str, Any], *, optional: Mapping[str, Any] | None = None) -> Schema:
    """Returns the schema of an object in a response: all properties but the optional ones are there; others may be."""
    return {"type": "object", "required": list(properties), "properties": {**properties, **(optional or {})}}


def payload_object(properties: Mapping[str, Any], *, required: tuple[str, ...] = ()) -> Schema:
    """Returns the schema of an object in a payload: it has no other properties."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def ref(name: str) -> Schema:
    """Returns a reference to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def or_null(name: str) -> Schema:
    """Returns the named schema or null."""
    return {"anyOf": [ref(name), {"type": "null"}]}


def array(of: Schema) -> Schema:
    """Returns the schema of a list."""
    return {"type": "array", "items": of}


def page_of(name: str) -> Schema:
    """Returns the schema of the object around the records of a list."""
    return response_object({"records": array(ref(name))})


def payload_object_or_null(properties: Mapping[str, Any], *, required: tuple[str, ...] = ()) -> Schema:
    """Returns the schema of an object in a payload, or null."""
    return {"anyOf": [payload_object(properties, required=required), {"type": "null"}]}


AUTHOR_TYPE: Schema = {"type": "string", "enum": ["person", "corporate"]}
NAME: Schema = {"type": "string", "minLength": 1}
REFERENCE: Schema = payload_object_or_null({"id": ID, "name": TEXT_OR_NULL}, required=("id",))

# Fields of a publication that both versions read and write alike
TEXT_FIELDS: Mapping[str, Schema] = {
    "title": TEXT_OR_NULL,
    "publishable_type": TEXT_OR_NULL,
    "published_on": DATE_OR_NULL,
    "abstract": TEXT_OR_NULL,
}
REFERENCE_PAYLOAD_FIELDS: Mapping[str, Schema] = {
    "contributor": {**REFERENCE, "description": "A user of the account, by `id`"},
    "organization": {**REFERENCE, "description": "An organization of the account, by `id`"},
}

_METADATA = response_object({"size": INTEGER, "filename": {"type": "string"}, "mime_type": TEXT_OR_NULL})
_FILE = {"id": {"type": "string"}, "storage": {"type": "string"}, "metadata": _METADATA}
_ASSET_FORM = {"name": TEXT_OR_NULL, "content_type": TEXT_OR_NULL, "file": ref("FileUpload")}
_URLS = {name: {"type": "string"} for name in ("url", "thumb_url", "preview_url")}

COMMON_SCHEMAS: Mapping[str, Schema] = {
    "Author": response_object({"name": {"type": "string"}, "type": AUTHOR_TYPE}),
    "Category": response_object({"id": INTEGER, "name": {"type": "string"}}),
    "Reference": response_object({"id": INTEGER, "name": {"type": "string"}}),
}
FILE_SCHEMAS: Mapping[str, Schema] = {
    "File": response_object(_FILE),
    "Cover": response_object(_FILE, optional={"url": {"type": "string"}}),
    "Asset": response_object(
        {
            "id": INTEGER,
            "publication_id": INTEGER,
            "name": TEXT_OR_NULL,
            "content_type": TEXT_OR_NULL,
            "file": ref("File"),
        },
        optional=_URLS,
    ),
    "FileUpload": payload_object(
        {
            "id": {"type": "string", "minLength": 1},
            "storage": {"type": "string", "enum": ["cache"]},
            "metadata": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "minimum": 0},
                    "filename": {"type": "string"},
                    "mime_type": TEXT_OR_NULL,
                },
            },
        },
        required=("id", "storage"),
    ),
    "AssetCreate": payload_object({**_ASSET_FORM, "publication_id": ID}, required=("publication_id", "file")),
    "AssetChange": payload_object({**_ASSET_FORM, "publication_id": ID}),
    "Presign": response_object(
        {"url": {"type": "string"}, "fields": {"type": "object", "additionalProperties": {"type": "string"}}}
    ),
    "Nothing": {"type": "object"},
}
