"""Translates the records and payloads of one resource between the sandbox and another shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.both_versions.payloads import SchemaValidator
from sandbox.both_versions.schemas import ID, INTEGER, page_of, payload_object, response_object
from sandbox.endpoints import Schema
from sandbox.errors import unprocessable
from sandbox.shapes.forms import Names, native_value, sent_schema, shown_schema, shown_value
from sandbox.shapes.model import FieldShape, ResourceShape
from sandbox.state.records import EXTRA
from sandbox.tenants import Tenant
from sandbox.v3 import V3

Record = dict[str, Any]

# Python writes JSON of more levels in some places and not in others
_MOST_LEVELS = 200


@dataclass(frozen=True, slots=True)
class SentValues:
    """A payload in two parts: the sandbox's own fields, and those that only the shape has."""

    native: Record
    extra: Record


@dataclass(frozen=True, slots=True)
class Translation:
    """The translation of a resource."""

    shape: ResourceShape

    @property
    def identity(self) -> str:
        """The name of the schema of a response that has the id only."""
        return f"{self.shape.native.record}Id"

    @property
    def merge(self) -> str:
        """The name of the schema of a merge."""
        return f"{self.shape.native.record}Merge"

    def schemas(self) -> dict[str, Schema]:
        """Returns the schemas of records and payloads, under the names of those that they replace."""
        native = self.shape.native
        shown = {each.name: _shown(each, native.name) for each in self.shape.fields if _is_shown(each)}
        created = {
            each.sent_name: schema for each in self.shape.fields if (schema := _sent(each, "create")) is not None
        }
        changed = {
            each.sent_name: schema for each in self.shape.fields if (schema := _sent(each, "change")) is not None
        }
        required = tuple(each.sent_name for each in self.shape.fields if each.required)
        schemas = {
            native.record: response_object({"id": INTEGER, **shown}),
            native.listing: page_of(native.record),
            native.create: self._wrapped(payload_object(created, required=required)),
            native.change: self._wrapped(payload_object(changed)),
        }
        if self.shape.answer == "id":
            schemas[self.identity] = response_object({"id": INTEGER})
        if self.shape.merge is not None:
            field = self.shape.merge.field
            schemas[self.merge] = payload_object({field: ID}, required=(field,))
        return schemas

    def _wrapped(self, payload: Schema) -> Schema:
        name = self.shape.wrapped
        return payload_object({name: payload}, required=(name,)) if name else payload

    def sent(self, payload: Mapping[str, Any], *, new: bool, dropped: str = "") -> SentValues:
        """Returns the values of a valid payload. ``dropped``: a field that is accepted and not kept."""
        values = payload[self.shape.wrapped] if self.shape.wrapped else payload
        if self.shape.replaces and not new:
            values = {**self._empty(), **values}
        native, extra = {}, {}
        for field in self.shape.fields:
            is_there = field.sent_name in values and field.sent_name != dropped
            if field.read_only or not (is_there or (new and field.native is None)):
                continue
            if field.native is None:
                extra[field.name] = _storable(field, values[field.sent_name]) if is_there else None
            else:
                native[field.native.name] = native_value(field, values[field.sent_name])
        return SentValues(self.shape.native.filled(native) if new else native, extra)

    def _empty(self) -> Record:
        """Returns the values of a change that empties every field that can be empty."""
        empty: Record = {}
        validator = SchemaValidator(V3.schemas)
        for field in self.shape.fields:
            schema = _sent(field, "change")
            if schema is None:
                continue
            if field.native is None or next(validator.problems(None, schema, ""), None) is None:
                empty[field.sent_name] = None
            elif field.native.is_list:
                empty[field.sent_name] = []
        return empty

    def shown(self, records: Iterable[Record], tenant: Tenant) -> list[Record]:
        """Returns records of the sandbox in their shape."""
        rows = list(records)
        names = {
            field.name: _names(field, rows, tenant)
            for field in self.shape.fields
            if field.form in {"object", "objects"} and field.native is not None
        }
        return [self._record(row, names) for row in rows]

    def _record(self, row: Record, names: Mapping[str, Names]) -> Record:
        record = {"id": row["id"]}
        extra = row[EXTRA] or {}
        for field in self.shape.fields:
            if field.native is None:
                record[field.name] = extra[field.name] if field.name in extra else field.seeded(row["id"])
            elif field.native.shown is not None:
                record[field.name] = shown_value(field, row[field.native.name], names.get(field.name, {}))
        by_variation = row.keys() - self.shape.native.fields.keys() - record.keys() - {EXTRA}
        return record | {name: row[name] for name in row if name in by_variation}


def _storable(field: FieldShape, value: Any) -> Any:
    """Returns a value that can be stored as it is, or raises 422."""
    if _is_deeper(value, _MOST_LEVELS):
        raise unprocessable(f"{field.sent_name} has more than {_MOST_LEVELS} levels")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (levels == 0 or any(_is_deeper(each, levels - 1) for each in inner))


def _is_shown(field: FieldShape) -> bool:
    return field.native is None or field.native.shown is not None


def _shown(field: FieldShape, resource: str) -> Schema:
    """Returns the schema of a field in records."""
    if field.native is None:
        is_always_set = field.seed and None not in field.seed and (field.required or field.read_only)
        schema = field.schema if is_always_set else _or_null(field.schema)
    else:
        schema = shown_schema(field, field.native.shown or {})
        if (resource, field.native.name) == ("hard_copies", "publication_id") and not field.required:
            schema = _or_null(schema)
    return {**schema, "readOnly": True} if field.read_only else schema


def _sent(field: FieldShape, operation: str) -> Schema | None:
    """Returns the schema of a field in the payload of a create or a change, None if it is not there."""
    if field.read_only:
        return None
    if field.native is None:
        return field.schema
    plain: Schema | None = getattr(field.native, operation)
    return None if plain is None else sent_schema(field, plain)


def _or_null(schema: Schema) -> Schema:
    accepts_null = next(SchemaValidator(V3.schemas).problems(None, schema, ""), None) is None
    return schema if accepts_null else {"anyOf": [schema, {"type": "null"}]}


def _names(field: FieldShape, rows: Iterable[Record], tenant: Tenant) -> Names:
    """Returns the names of the records that a field of some rows refers to."""
    source, table = field.native, field.native.reference if field.native else None
    if source is None or table is None:
        return {}
    values = [row[source.name] for row in rows if row[source.name] is not None]
    numbers = {each for value in values for each in (value if isinstance(value, list) else [value])}
    return (
        tenant.publications.titles(numbers) if table == "publications" else tenant.records[table].names(numbers, "name")
    )
