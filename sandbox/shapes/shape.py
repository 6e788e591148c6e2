"""A resource of another shape: its schemas and operations, and the translation of records and payloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sandbox.both_versions.resources import Resource
from sandbox.both_versions.schemas import ID, INTEGER, page_of, payload_object, response_object
from sandbox.endpoints import TEXT, Endpoint, Schema
from sandbox.errors import unprocessable
from sandbox.shapes.fields import Field, Names, accepts_null, sources
from sandbox.shapes.lists import RecordList
from sandbox.state.records import EXTRA, Document
from sandbox.tenants import Tenant
from sandbox.validation import one_of

# Python writes JSON of more levels in some places and not in others
_MOST_LEVELS = 200


@dataclass(frozen=True, slots=True)
class Merge:
    """Another merge: its address and the name of the id in its payload."""

    path: str = ""
    method: str = one_of("PATCH", "POST", "PUT")
    field: str = "into_id"


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a resource. ``fields``: all beside ``id``. ``wrapped``: payloads are in an object under this name.

    ``verb``: the method of a change, which has the fields to change, or, if it ``replaces``, empties the others. ``answer``: what a
    create and a change answer. ``status``: of a create; None for the usual one. ``merge``: of authorities and locations.
    ``ids``: what stands before the number in an id, which is a text then. ``lists``: of other records, at addresses of their own.
    """

    resource: Resource
    fields: tuple[Field, ...] = ()
    wrapped: str = ""
    verb: str = one_of("PATCH", "PUT")
    replaces: bool = False
    answer: str = one_of("record", "id")
    status: int | None = one_of(None, 200, 201, 202)
    merge: Merge | None = None
    ids: str = ""
    lists: tuple[RecordList, ...] = ()

    def schemas(self) -> dict[str, Schema]:
        """Returns the schemas of records and payloads, under the names of those that they replace."""
        name, id_schema = self.resource.name, TEXT if self.ids else INTEGER
        shown = {field.name: schema for field in self.fields if (schema := field.shown_schema()) is not None}
        required = tuple(field.sent_name for field in self.fields if field.required)
        schemas = {
            name: response_object({"id": id_schema, **shown}),
            f"{name}List": page_of(name),
            f"{name}Create": self._wrapped(payload_object(dict(self._sent_schemas(new=True)), required=required)),
            f"{name}Change": self._wrapped(payload_object(dict(self._sent_schemas(new=False)))),
        }
        if self.answer == "id":
            schemas[f"{name}Id"] = response_object({"id": id_schema})
        if self.merge is not None:
            schemas[f"{name}Merge"] = payload_object({self.merge.field: ID}, required=(self.merge.field,))
        return schemas

    def _sent_schemas(self, *, new: bool) -> Iterator[tuple[str, Schema]]:
        for field in self.fields:
            if (schema := field.sent_schema(new=new)) is not None:
                yield field.sent_name, schema

    def _wrapped(self, payload: Schema) -> Schema:
        return payload_object({self.wrapped: payload}, required=(self.wrapped,)) if self.wrapped else payload

    def endpoint(self, usual: Endpoint) -> Endpoint:
        """Returns an endpoint of version 3 in this shape."""
        name = self.resource.name
        if usual.action == "merge" and self.merge is not None:
            path = self.merge.path or usual.path
            return replace(usual, method=self.merge.method, path=path, payload=f"{name}Merge")
        if usual.action in {"create", "change"}:
            usual = replace(usual, answer=f"{name}Id") if self.answer == "id" else usual
            if usual.action == "change":
                return replace(usual, method=self.verb)
            return replace(usual, status=self.status or usual.status)
        return usual

    def sent(self, action: str, payload: Mapping[str, Any], dropped: str) -> Document:
        """Returns a valid payload as the sandbox has it. ``dropped``: a field that is accepted and not kept."""
        if action == "merge":
            return {"into_id": payload[self.merge.field if self.merge else "into_id"]}
        values = payload[self.wrapped] if self.wrapped else payload
        if self.replaces and action == "change":
            values = {**self._empty(), **values}
        native: Document = {}
        extra: Document = {}
        for field in self.fields:
            if field.sent_name not in values or field.sent_name == dropped or field.read_only:
                continue
            value = values[field.sent_name]
            if field.source is not None:
                native[field.source.name] = field.sent(value)
            elif _is_deeper(value, _MOST_LEVELS):
                raise unprocessable(f"{field.sent_name} has more than {_MOST_LEVELS} levels")
            else:
                extra[field.name] = value
        if action == "create":
            extra = {
                **{field.name: None for field in self.fields if field.source is None and not field.read_only},
                **extra,
            }
            native = {**self.resource.defaults, **native}
        return {**native, EXTRA: extra}

    def _empty(self) -> Document:
        """Returns the values of a change that empties every field that can be empty."""
        schemas = dict(self._sent_schemas(new=False))
        own = {field.sent_name for field in self.fields if field.source is None}
        empty = {name: None for name, schema in schemas.items() if name in own or accepts_null(schema)}
        return {name: [] for name, schema in schemas.items() if schema.get("type") == "array"} | empty

    def shown(self, records: Iterable[Document], tenant: Tenant) -> list[Document]:
        """Returns records of the sandbox in their shape."""
        rows = list(records)
        names = {
            field.name: _names(field, rows, tenant) for field in self.fields if field.form in {"object", "objects"}
        }
        return [self._record(row, names) for row in rows]

    def _record(self, row: Document, names: Mapping[str, Names]) -> Document:
        extra = row.pop(EXTRA, None) or {}
        record: Document = {"id": f"{self.ids}{row['id']}" if self.ids else row["id"]}
        for field in self.fields:
            if field.source is None:
                seeded = field.seed[(row["id"] - 1) % len(field.seed)] if field.seed else None
                record[field.name] = extra.get(field.name, seeded)
            elif field.source.shown is not None:
                record[field.name] = field.shown(row[field.source.name], names.get(field.name, {}))
        further = row.keys() - sources(self.resource).keys() - record.keys()  # of the variation `extra_fields`
        return record | {name: row[name] for name in row if name in further}


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (levels == 0 or any(_is_deeper(entry, levels - 1) for entry in inner))


def _names(field: Field, rows: Iterable[Document], tenant: Tenant) -> Names:
    """Returns the names of the records that a field of some rows refers to."""
    if field.source is None or field.source.reference is None:
        return {}
    values = [row[field.source.name] for row in rows if row[field.source.name] is not None]
    numbers = {number for value in values for number in (value if isinstance(value, list) else [value])}
    if field.source.reference == "publications":
        return tenant.publications.titles(numbers)
    return tenant.records[field.source.reference].texts(numbers)
