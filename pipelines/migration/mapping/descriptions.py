"""What a description says of the fields of a resource, as far as records do not contradict it, and of its merges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipelines.inventory import LIST_PATHS
from pipelines.migration.mapping.enumerations import BOOLEAN, BOOLEANS
from pipelines.migration.model.field_mapping import several
from pipelines.migration.model.resource_types import FieldRule, MergeRequest
from pipelines.records.shapes.field_names import keys_of
from pipelines.records.shapes.observation import FieldShape, Kind, RecordShape
from pipelines.shapes.model import FieldSchema, MergeSchema, ResourceSchema


def undescribed_fields(schema: ResourceSchema, names: Iterable[str]) -> list[str]:
    """Those fields of records about which a description of records and payloads is silent, whatever the form in which it may have them."""
    payload = schema.create or schema.change
    if not schema.record or payload is None:
        return []
    described = {*schema.record, *(key for name in payload.fields for key in keys_of(name))}
    return sorted({*names} - described)


def contradicted_by_shape(schema: ResourceSchema, shown: Mapping[str, FieldShape]) -> set[str]:
    """Fields about which records contradict a description: it lacks them, or has another type."""
    payload = schema.create.fields if schema.create else {}
    contradicted = {
        name
        for name, field in payload.items()
        if name in shown
        and not shown[name].has_ids
        and described_types(field, shown[name]) != described_types(field, None)
    }
    return contradicted.union(undescribed_fields(schema, shown))


def confirmed_fields(schema: ResourceSchema, target: RecordShape) -> set[str]:
    """Fields of which the target's own records have the type that its description says."""
    payload = schema.create.fields if schema.create else {}
    shown = {name: target.fields[name] for name in payload.keys() & target.fields.keys()}
    return {name for name, field in shown.items() if field.kinds and described_types(payload[name], field)}


def contradicted_fields(schema: ResourceSchema, records: Iterable[Mapping[str, Any]]) -> set[str]:
    """The fields with an enumeration that records do not keep to: the description is wrong about them."""
    payload = schema.create.fields if schema.create else {}
    rules = {name: rule for name, field in payload.items() if (rule := FieldRule(described_choices(field))).choices}
    return {
        name
        for record in (records if rules else ())
        for name, rule in rules.items()
        if any(entry is not None and rule.refusal(entry) for entry in several(record.get(name)))
    }


_JSON_TYPES = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "integer",
    Kind.LARGE_INTEGER: "integer",
    Kind.NUMBER: "number",
    Kind.OBJECT: "object",
    Kind.LIST: "array",
}
"""Kind of values → the name of JSON Schema; all others are strings."""


def described_rule(described: FieldSchema | None, shown: FieldShape | None, *, with_choices: bool) -> FieldRule:
    """What a description takes in a field, as far as the target's own records do not contradict it."""
    if described is None:
        return FieldRule()
    return FieldRule(
        described_choices(described) if with_choices else (),
        described_types(described, shown),
        described_types(described.entries, shown.entries if shown else None),
        _described_kinds(described, shown),
    )


def _described_kinds(described: FieldSchema, shown: FieldShape | None) -> tuple[str, ...]:
    """The kinds of texts with a format, of a field or of the entries of its list; none where records have others."""
    entries, shown_entries = described.entries or described, (shown.entries or shown) if shown else FieldShape()
    kinds = _KINDS_OF_FORMATS.get(entries.format, ())
    return kinds if {*shown_entries.kinds} <= {*kinds} else ()


_KINDS_OF_FORMATS = {"date": (Kind.DATE,), "date-time": (Kind.TIME, Kind.DATE)}
"""Format of JSON Schema → the kinds of such texts."""


def described_choices(field: FieldSchema) -> tuple[str, ...]:
    """The values of an enumeration, of a field or of the entries of its list."""
    return tuple(field.choices or (field.entries.choices if field.entries else ()))


def choices_within(fields: Mapping[str, FieldSchema], above: str = "") -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the path of each object that has an enumeration or a boolean, its member with that, and the values.

    `above`: the path of all of them.
    """
    for name, field in fields.items():
        path, members = f"{above}{name}", (field.entries or field).members
        chosen = (
            (member, BOOLEANS if described_types(inner, None) == BOOLEAN else described_choices(inner))
            for member, inner in members.items()
        )
        yield from ((path, member, choices) for member, choices in chosen if choices)
        yield from choices_within(members, f"{path}/")


def described_types(field: FieldSchema | None, shown: FieldShape | None) -> tuple[str, ...]:
    """The types of a field; none where one is no type of JSON Schema, or where records have others."""
    types = {*field.types} - {"null"} if field else set[str]()
    shown_types = {_JSON_TYPES.get(Kind(kind), "string") for kind in shown.kinds} if shown else set[str]()
    if "number" in types:
        shown_types.discard("integer")
    return tuple(sorted(types)) if shown_types <= types <= {*_JSON_TYPES.values(), "string"} else ()


_REMAINS = re.compile(r"(^|_)(into|target|to|destination|remaining|keep|kept)(_|$)")
_GOES = re.compile(r"(^|_)(from|source|merge|merged|other|duplicate|remove)(_|$)")


def merge_request(resource: str, schema: MergeSchema | None) -> MergeRequest | None:
    """The request that merges a record into another; None where the description does not say clearly which record remains.

    A merge cannot be taken back, so that none is sent then.
    """
    if schema is None:
        return MergeRequest(f"{LIST_PATHS[resource]}/{{id}}/merge")
    names = schema.body.required or [*schema.body.writable]
    if len(names) != 1 or not names_remaining_record(names[0]):
        return None
    path = f"{LIST_PATHS[resource]}/{schema.path.replace('{}', '{id}')}"
    return MergeRequest(path, schema.body.method, names[0], schema.body.wrapped_in, described=True)


def names_remaining_record(field: str) -> bool:
    """Whether the name of a field says clearly that its id is that of the record that remains."""
    return bool(_REMAINS.search(field)) and not _GOES.search(field)
