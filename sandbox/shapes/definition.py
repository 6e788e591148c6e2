"""Reads the description of other shapes; whatever is wrong with it is 422 and names the place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sandbox.both_versions.payloads import SCHEMA_OF_SCHEMAS, SchemaValidator
from sandbox.both_versions.schemas import payload_object, ref
from sandbox.endpoints import Schema
from sandbox.errors import unprocessable
from sandbox.shapes.forms import FORMS, fits, words
from sandbox.shapes.model import FieldShape, MergeShape, ResourceShape, Shapes
from sandbox.shapes.native import RESOURCES, NativeField, NativeResource
from sandbox.v3 import V3

FOLLOWS, MISSING = "follows", "missing"

_TEXT: Schema = {"type": "string", "minLength": 1}
_BOOLEAN: Schema = {"type": "boolean"}
_OF_NATIVE = ("form", "member", "values", "write_as")
_OF_OWN = ("schema", "seed")
_FILE_SCHEMAS: Mapping[str, Schema] = {
    **SCHEMA_OF_SCHEMAS,
    "Field": payload_object(
        {
            "from": _TEXT,
            "required": _BOOLEAN,
            "read_only": _BOOLEAN,
            "form": {"enum": list(FORMS)},
            "member": _TEXT,
            "write_as": _TEXT,
            "values": {"type": "object", "additionalProperties": _TEXT},
            "schema": ref("Schema"),
            "seed": {"type": "array", "minItems": 1},
        }
    ),
    "Resource": payload_object(
        {
            "fields": {"type": "object", "additionalProperties": ref("Field")},
            "wrapped": _TEXT,
            "verb": {"enum": ["PATCH", "PUT"]},
            "replaces": _BOOLEAN,
            "answer": {"enum": ["record", "id"]},
            "status": {"enum": [200, 201, 202]},
            "merge": payload_object(
                {
                    "path": {"type": "string", "pattern": r"^(/[\w-]+)+/\{id\}(/[\w-]+)*$"},
                    "method": {"enum": ["PATCH", "POST", "PUT"]},
                    "field": _TEXT,
                }
            ),
        },
        required=("fields",),
    ),
    "File": payload_object(
        {
            "description": {
                "anyOf": [
                    {"enum": [FOLLOWS, MISSING]},
                    payload_object({"text": {"type": "string"}}, required=("text",)),
                    payload_object(
                        {
                            "lies": payload_object(
                                {
                                    name: {
                                        "type": "object",
                                        "additionalProperties": {"type": ["object", "null"]},
                                    }
                                    for name in RESOURCES
                                }
                            )
                        },
                        required=("lies",),
                    ),
                ]
            },
            "resources": payload_object({name: ref("Resource") for name in RESOURCES}),
        }
    ),
}


def read_shapes(text: str) -> Shapes:
    """Returns the shapes that a JSON text describes."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unprocessable(f"shapes: no JSON: {error}") from None
    for problem in SchemaValidator(_FILE_SCHEMAS).problems(content, _FILE_SCHEMAS["File"], "shapes"):
        raise unprocessable(problem)
    shapes = {name: _resource(name, each) for name, each in content.get("resources", {}).items()}
    description = content.get("description", FOLLOWS)
    told = description if isinstance(description, dict) else {}
    return Shapes(shapes, description == MISSING, told.get("text"), told.get("lies", {}))


def _resource(name: str, content: Mapping[str, Any]) -> ResourceShape:
    place, native = f"shapes.resources.{name}", RESOURCES[name]
    fields = tuple(_field(native, each, rule, place) for each, rule in content["fields"].items())
    for problem in _clashes(fields):
        raise unprocessable(f"{place}.fields: {problem}")
    merge = content.get("merge")
    if merge is not None and name not in {"authorities", "locations"}:
        raise unprocessable(f"{place}.merge: only authorities and locations can be merged")
    others = {key: content[key] for key in ("wrapped", "verb", "replaces", "answer", "status") if key in content}
    return ResourceShape(native, fields, merge=None if merge is None else MergeShape(**merge), **others)


def _field(native: NativeResource, name: str, content: Mapping[str, Any], within: str) -> FieldShape:
    rule = {key: value for key, value in content.items() if key != "from"}
    source = native.fields.get(content.get("from", ""))
    shape = FieldShape(name, source, **{**rule, "seed": tuple(rule.get("seed", ()))})
    if source is not None and source.create is None and source.change is None:
        shape = FieldShape(name, source, **{**rule, "read_only": True})
    problems = (
        _unknown_source(content, native) if "from" in content and source is None else _field_problems(shape, rule)
    )
    for problem in problems:
        raise unprocessable(f"{within}.fields.{name}: {problem}")
    return shape


def _unknown_source(content: Mapping[str, Any], native: NativeResource) -> Iterator[str]:
    yield f"from: there is no field {content['from']!r}; known are {', '.join(sorted(native.fields))}"


def _field_problems(shape: FieldShape, rule: Mapping[str, Any]) -> Iterator[str]:
    source = shape.native
    wrong = [key for key in (_OF_NATIVE if source is None else _OF_OWN) if key in rule]
    if wrong:
        yield f"{wrong[0]}: only for a field {'with' if source is None else 'without'} from"
    if shape.required and (shape.read_only or (source is not None and source.create is None)):
        yield "required: payloads of a create do not have it"
    if source is not None:
        yield from _native_problems(shape, source)
    elif rule:
        yield from _own_problems(shape)


def _native_problems(shape: FieldShape, source: NativeField) -> Iterator[str]:
    if not fits(shape.form, source):
        yield f"form: {source.name} has no form {shape.form}"
    if (shape.form == "entries") != bool(shape.member):
        yield "member: belongs to the form entries, which needs it"
    if shape.write_as and shape.form not in {"object", "objects"}:
        yield "write_as: belongs to the forms object and objects"
    known = words(source)
    if set(shape.values) - set(known):
        yield f"values: known words are {', '.join(known) or 'none'}"
    if len({shape.values.get(word, word) for word in known}) < len(known):
        yield "values: two words would be the same"


def _own_problems(shape: FieldShape) -> Iterator[str]:
    for name in _referenced(shape.schema):
        if name not in V3.schemas:
            yield f"schema: there is no schema {name}"
            return
    for value in shape.seed:
        if value is not None:
            yield from SchemaValidator(V3.schemas).problems(value, shape.schema, "seed")


def _referenced(node: Any) -> Iterator[str]:
    """Yields the names of the schemas that a schema refers to."""
    if isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix("#/components/schemas/")
        for each in node.values():
            yield from _referenced(each)
    elif isinstance(node, list):
        for each in node:
            yield from _referenced(each)


def _clashes(fields: tuple[FieldShape, ...]) -> Iterator[str]:
    """Yields names and sources that two fields would share."""
    if any(not each.name or "id" in {each.name, each.write_as} for each in fields):
        yield "a field needs a name other than id"
    sent = [each.sent_name for each in fields if not each.read_only]
    sources = [each.native.name for each in fields if each.native and not each.read_only]
    for what, names in (
        ("the name of a payload's field", sent),
        ("the source of a field that can be written", sources),
    ):
        if twice := {name for name in names if names.count(name) > 1}:
            yield f"{min(twice)} is twice {what}"
