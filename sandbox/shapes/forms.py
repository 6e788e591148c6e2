"""How a field of the sandbox is shown and accepted in another form.

``plain`` as it is; ``text`` a number as text; ``datetime`` a day as its first second; ``object`` an id with a name, ``objects`` a list of
them; ``entries`` a list of scalars as list of objects with one member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.both_versions.schemas import ID, INTEGER, TEXT_OR_NULL, array, payload_object, response_object
from sandbox.endpoints import Schema
from sandbox.shapes.model import FieldShape
from sandbox.shapes.native import NativeField

FORMS = ("plain", "text", "datetime", "object", "objects", "entries")
Names = Mapping[int, str]

_DAY_LENGTH = len("YYYY-MM-DD")
_NUMBER = "^[1-9][0-9]{0,17}$"


def fits(form: str, source: NativeField) -> bool:
    """Returns whether a field of the sandbox can have a form."""
    schema = source.any_schema
    return {
        "plain": True,
        "text": source.reference is not None,
        "datetime": schema.get("format") == "date",
        "object": source.reference is not None and not source.is_list,
        "objects": source.reference is not None and source.is_list,
        "entries": source.is_list and schema["items"].get("type") in {"string", "integer"},
    }[form]


def words(source: NativeField) -> list[str]:
    """Returns the words of an enumeration, none for another field."""
    return [word for word in source.any_schema.get("enum", ()) if isinstance(word, str)]


def shown_schema(shape: FieldShape, plain: Schema) -> Schema:
    """Returns the schema of a form in records."""
    return _schema(shape, plain, response_object({"id": INTEGER, "name": TEXT_OR_NULL}))


def sent_schema(shape: FieldShape, plain: Schema) -> Schema:
    """Returns the schema of a form in payloads, where the name of a record is optional and has no effect."""
    return plain if shape.write_as else _schema(shape, plain, {**_OBJECT, "properties": {"id": ID}})


_OBJECT: Schema = {"type": "object", "required": ["id"]}


def _schema(shape: FieldShape, plain: Schema, reference: Schema) -> Schema:
    if shape.form == "entries":
        member = {shape.member: plain["items"]}
        return {**plain, "items": payload_object(member, required=(shape.member,))}
    scalars = {
        "text": {"type": "string", "pattern": _NUMBER},
        "datetime": {"type": "string", "format": "date-time"},
        "object": reference,
        "objects": reference,
    }
    if shape.form in scalars:
        scalar = scalars[shape.form]
        return array(scalar) if plain["type"] == "array" else _typed(plain, scalar)
    if shape.values:
        return {**plain, "enum": [shape.values.get(word, word) for word in plain["enum"]]}
    return plain


def _typed(plain: Schema, schema: Schema) -> Schema:
    """Allows null where the plain form does."""
    return {**schema, "type": [schema["type"], "null"]} if "null" in plain["type"] else schema


def shown_value(shape: FieldShape, value: Any, names: Names) -> Any:
    """Returns a value of the sandbox in its form. ``names``: those of the records that it may refer to."""
    if value is None:
        return None
    if isinstance(value, list) and shape.form in {"objects", "entries", "text"}:
        return [_shown(shape, each, names) for each in value]
    return _shown(shape, value, names)


def _shown(shape: FieldShape, value: Any, names: Names) -> Any:
    match shape.form:
        case "text":
            return str(value)
        case "datetime":
            return f"{value}T00:00:00Z"
        case "object" | "objects":
            return {"id": value, "name": names.get(value)}
        case "entries":
            return {shape.member: value}
    return shape.values.get(value, value) if shape.values else value


def native_value(shape: FieldShape, value: Any) -> Any:
    """Returns a value of a payload as the sandbox has it."""
    if value is None or shape.write_as:
        return value
    if isinstance(value, list) and shape.form in {"objects", "entries", "text"}:
        return [_native(shape, each) for each in value]
    return _native(shape, value)


def _native(shape: FieldShape, value: Any) -> Any:
    match shape.form:
        case "text":
            return int(value)
        case "datetime":
            return value[:_DAY_LENGTH]
        case "object" | "objects":
            return value["id"]
        case "entries":
            return value[shape.member]
    return {shown: word for word, shown in shape.values.items()}.get(value, value) if shape.values else value
