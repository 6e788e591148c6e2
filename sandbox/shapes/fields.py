"""A field of a resource as another service may have it: the sandbox's own field under another name and in another form, or one more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sandbox.both_versions.payloads import payload_problem
from sandbox.both_versions.resources import Resource
from sandbox.both_versions.schemas import ID, INTEGER, TEXT_OR_NULL, array, payload_object, response_object
from sandbox.endpoints import Schema
from sandbox.state.records import REFERENCES
from sandbox.v3 import V3
from sandbox.validation import one_of

Names = Mapping[int, str]

_DAY_LENGTH = len("YYYY-MM-DD")
_NAMED = response_object({"id": INTEGER, "name": TEXT_OR_NULL})
_WITH_ID = {"type": "object", "required": ["id"], "properties": {"id": ID}}


@dataclass(frozen=True, slots=True)
class Source:
    """A field of the sandbox. ``shown``, ``create`` and ``change``: its schemas in records and payloads; None where it does not occur.

    ``reference``: the resource whose ids it has. ``nullable``: whether it is null in a record that was made without it.
    """

    name: str
    shown: Schema | None
    create: Schema | None
    change: Schema | None
    reference: str | None
    nullable: bool

    @property
    def schema(self) -> Schema:
        """The schema that says what kind of value it is."""
        return self.shown or self.create or self.change or {}

    @property
    def forms(self) -> set[str]:
        """The forms that it can have."""
        forms = {"plain"}
        if self.schema.get("format") == "date":
            forms.add("datetime")
        if self.reference is not None:
            forms |= {"text", "objects" if self.schema["type"] == "array" else "object"}
        if self.schema.get("type") == "array" and (self.reference or self.schema["items"].get("type") == "string"):
            forms.add("entries")
        return forms


@dataclass(frozen=True, slots=True)
class Field:
    """A field. ``source`` (``from``): the sandbox's own field that it shows; None for one that is stored as it is sent.

    With a source, ``form`` is ``plain``; ``text``: an id as text, behind ``member``; ``datetime``: a date as its first second; ``object``:
    an id with the name of its record, ``objects``: a list of them; ``entries``: texts or ids as objects with one ``member``.
    ``write_as``: payloads have the bare ids of an object under this name. ``values``: other words of an enumeration. Without a source,
    ``schema`` says what it accepts, and records in which nobody has set it have a value of ``seed`` by turn of their ids. ``required``:
    by a create. ``read_only``: in records only.
    """

    name: str
    source: Source | None = None
    form: str = one_of("plain", "text", "datetime", "object", "objects", "entries")
    member: str = ""
    write_as: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    schema: Schema = field(default_factory=dict)
    seed: tuple[Any, ...] = ()
    required: bool = False
    read_only: bool = False

    @property
    def sent_name(self) -> str:
        """Its name in payloads."""
        return self.write_as or self.name

    def shown_schema(self) -> Schema | None:
        """Returns its schema in records, None if they do not have it."""
        if self.source is None:
            is_always_set = self.seed and None not in self.seed and (self.required or self.read_only)
            schema = self.schema if is_always_set else _or_null(self.schema)
        elif self.source.shown is None:
            return None
        else:
            schema = self._formed(self.source.shown, _NAMED)
            if self.source.nullable and not self.required:
                schema = _or_null(schema)
        return {**schema, "readOnly": True} if self.read_only else schema

    def sent_schema(self, *, new: bool) -> Schema | None:
        """Returns its schema in the payload of a create or a change, None if it is not there."""
        if self.read_only:
            return None
        if self.source is None:
            return self.schema
        schema = self.source.create if new else self.source.change
        return schema if schema is None or self.write_as else self._formed(schema, _WITH_ID)

    def _formed(self, plain: Schema, reference: Schema) -> Schema:
        schemas = {
            "text": {"type": "string", "pattern": f"^{re.escape(self.member)}[1-9][0-9]{{0,17}}$"},
            "datetime": {"type": "string", "format": "date-time"},
            "object": reference,
            "objects": reference,
        }
        if self.form == "entries":
            return array(payload_object({self.member: plain["items"]}, required=(self.member,)))
        if self.form == "plain":
            return (
                {**plain, "enum": [self.values.get(choice, choice) for choice in plain["enum"]]}
                if self.values
                else plain
            )
        schema = schemas[self.form]
        if plain["type"] == "array":
            return array(schema)
        return {**schema, "type": [schema["type"], "null"]} if "null" in plain["type"] else schema

    def shown(self, value: Any, names: Names) -> Any:
        """Returns a value of the sandbox in its form. ``names``: those of the records that it may refer to."""
        return _each(value, lambda entry: self._shown(entry, names)) if self._changes else value

    def sent(self, value: Any) -> Any:
        """Returns a value of a payload as the sandbox has it."""
        return _each(value, self._sent) if self._changes and not self.write_as else value

    @property
    def _changes(self) -> bool:
        return self.form != "plain" or bool(self.values)

    def _shown(self, value: Any, names: Names) -> Any:
        match self.form:
            case "text":
                return f"{self.member}{value}"
            case "datetime":
                return f"{value}T00:00:00Z"
            case "object" | "objects":
                return {"id": value, "name": names.get(value)}
            case "entries":
                return {self.member: value}
        return self.values.get(value, value)

    def _sent(self, value: Any) -> Any:
        match self.form:
            case "text":
                return int(value.removeprefix(self.member))
            case "datetime":
                return value[:_DAY_LENGTH]
            case "object" | "objects":
                return value["id"]
            case "entries":
                return value[self.member]
        return {shown: word for word, shown in self.values.items()}.get(value, value)


@cache
def sources(resource: Resource) -> Mapping[str, Source]:
    """Returns the sandbox's own fields of a resource by name."""
    create = V3.schemas[f"{resource.name}Create"]
    shown, created, changed = (
        V3.schemas[f"{resource.name}{ending}"]["properties"] for ending in ("", "Create", "Change")
    )
    return {
        name: Source(
            name,
            shown.get(name),
            created.get(name),
            changed.get(name),
            REFERENCES.get(resource.key, {}).get(name),
            nullable=name in create.get("required", ()) and name not in resource.defaults,
        )
        for name in {**shown, **changed}
        if name != "id"
    }


def accepts_null(schema: Schema) -> bool:
    """Returns whether null meets a schema."""
    return payload_problem(None, schema, V3.schemas) is None


def _or_null(schema: Schema) -> Schema:
    return schema if accepts_null(schema) else {"anyOf": [schema, {"type": "null"}]}


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """Changes a value, or each one of a list; null stays."""
    if value is None:
        return None
    return [change(entry) for entry in value] if isinstance(value, list) else change(value)
