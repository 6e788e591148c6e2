"""Reads the description of other shapes and makes the service that has them. Whatever is wrong with it is 422 and names the place."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from sandbox.both_versions.payloads import schema_problem
from sandbox.both_versions.resources import Resource
from sandbox.endpoints import Endpoint, Router, Schema, Version
from sandbox.errors import ApiError, unprocessable
from sandbox.shapes.fields import Field, sources
from sandbox.shapes.members import ADDITION, LISTING, SCHEMAS
from sandbox.shapes.shape import Merge, Shape
from sandbox.v2 import V2
from sandbox.v3 import RESOURCES, V3
from sandbox.validation import nested_object, with_changes


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """The versions of a tenant and their router."""

    versions: tuple[Version, ...]
    router: Router


@lru_cache(maxsize=64)
def service_of(text: str) -> Service:
    """Returns the service with the shapes of this JSON text, or without others if it is empty; 422 if it is invalid."""
    version = _shaped(text) if text else V3
    return Service((version, V2), Router((version, V2)))


def _shaped(text: str) -> Version:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unprocessable(f"shapes: no JSON: {error}") from None
    if not isinstance(content, dict) or content.keys() - {"resources", "description"}:
        raise unprocessable("shapes: must be an object with resources and description")
    shapes = {}
    for name, described in nested_object(content, "resources").items():
        if name not in RESOURCES:
            raise unprocessable(f"shapes.resources: {name} is unknown; known are {', '.join(RESOURCES)}")
        try:
            shapes[name] = _shape(RESOURCES[name], described)
        except ApiError as error:
            raise unprocessable(f"shapes.resources.{name}.{error.message}") from None
    schemas = {**V3.schemas}
    for shape in shapes.values():
        schemas |= shape.schemas()
    endpoints = tuple(
        shapes[each.resource].endpoint(each) if each.resource in shapes else each for each in V3.endpoints
    )
    if "collections" in shapes and shapes["collections"].members:
        added = (ADDITION,) if shapes["collections"].members == "added" else ()
        endpoints, schemas = (*endpoints, LISTING, *added), schemas | SCHEMAS
    _check_addresses(endpoints)
    told = content.get("description", "follows")
    if told not in {"follows", "missing"} if isinstance(told, str) else told.keys() != {"lies"}:
        raise unprocessable("shapes.description: must be follows, missing or an object with lies")
    lies = nested_object(told, "lies") if isinstance(told, dict) else {}
    return replace(
        V3,
        endpoints=endpoints,
        schemas=schemas,
        shapes=shapes,
        described=None if told == "missing" else _with_lies(schemas, shapes, lies),
    )


def _shape(resource: Resource, described: Any) -> Shape:
    _check_keys(described, {each.name for each in fields(Shape)} - {"resource"})
    if "fields" not in described:
        raise unprocessable("fields: is missing")
    shown = tuple(_field(resource, name, each) for name, each in nested_object(described, "fields").items())
    written = [each for each in shown if not each.read_only]
    for names in ([each.sent_name for each in written], [each.source.name for each in written if each.source]):
        if twice := {name for name in names if names.count(name) > 1}:
            raise unprocessable(f"fields: {min(twice)} is twice in payloads")
    merge = with_changes(Merge(), nested_object(described, "merge")) if "merge" in described else None
    if merge is not None and resource.key not in {"authorities", "locations"}:
        raise unprocessable("merge: only authorities and locations can be merged")
    if merge is not None and merge.path and "/{id}" not in merge.path:
        raise unprocessable("merge: path must have {id}")
    rest = {name: value for name, value in described.items() if name not in {"fields", "merge"}}
    return with_changes(Shape(resource, shown, merge=merge), rest)


def _field(resource: Resource, name: str, described: Any) -> Field:
    try:
        _check_keys(described, {each.name for each in fields(Field)} - {"name", "source"} | {"from"})
        source = sources(resource).get(described.get("from", ""))
        if "from" in described and source is None:
            raise unprocessable(f"there is no field {described['from']!r}; known are {', '.join(sources(resource))}")
        rest = {each: value for each, value in described.items() if each != "from"}
        field = with_changes(Field(name, source), {**rest, "seed": tuple(rest.get("seed", ()))})
        if source is not None and source.create is None and source.change is None:
            field = replace(field, read_only=True)
        problems = *_problems(field, rest), schema_problem(field.schema, V3.schemas)
        if problem := next(filter(None, problems), None):
            raise unprocessable(problem)
    except ApiError as error:
        raise unprocessable(f"fields.{name}: {error.message}") from None
    return field


def _check_keys(described: Any, known_keys: Collection[str]) -> None:
    if not isinstance(described, dict):
        raise unprocessable("must be an object")
    if unknown := described.keys() - known_keys:
        raise unprocessable(f"{min(unknown)}: unknown; known are {', '.join(sorted(known_keys))}")


def _problems(field: Field, described: Mapping[str, Any]) -> Iterator[str]:
    """Yields what in a field does not fit together."""
    if field.name in {"", "id"} or field.write_as == "id":
        yield "a field needs a name other than id"
    if field.required and (field.read_only or (field.source is not None and field.source.create is None)):
        yield "required: payloads of a create do not have it"
    if field.source is None:
        if described.keys() & {"form", "member", "write_as", "values"}:
            yield "form, member, write_as and values: only for a field with from"
        return
    if described.keys() & {"schema", "seed"}:
        yield "schema and seed: only for a field without from"
    if field.form not in field.source.forms or (field.form == "entries") != bool(field.member):
        yield f"form: {field.source.name} has no form {field.form}, or lacks its member"
    if field.values.keys() - set(field.source.schema.get("enum", ())):
        yield f"values: {field.source.name} has not all of these words"


def _with_lies(
    schemas: Mapping[str, Schema], shapes: Mapping[str, Shape], lies: Mapping[str, Any]
) -> Mapping[str, Schema]:
    """Returns the schemas with those of some fields replaced, or removed for None. A field that is nowhere is added everywhere."""
    lying: dict[str, Any] = deepcopy(dict(schemas))
    for name, told in lies.items():
        if name not in RESOURCES or not isinstance(told, dict):
            raise unprocessable(f"shapes.description.lies: {name} is unknown, or has no fields")
        resource, wrapped = RESOURCES[name], shapes[name].wrapped if name in shapes else ""
        payloads = [lying[f"{resource.name}Create"], lying[f"{resource.name}Change"]]
        described = [lying[resource.name], *(each["properties"][wrapped] if wrapped else each for each in payloads)]
        for field, lie in told.items():
            for schema in [each for each in described if field in each["properties"]] or described:
                schema["properties"].pop(field, None)
                if lie is not None:
                    schema["properties"][field] = lie
                elif "required" in schema:
                    schema["required"] = [each for each in schema["required"] if each != field]
    return lying


def _check_addresses(endpoints: Sequence[Endpoint]) -> None:
    addresses = [(endpoint.method, endpoint.path) for endpoint in endpoints]
    for method, path in addresses:
        if addresses.count((method, path)) > 1:
            raise unprocessable(f"shapes: {method} {path} is already another operation")
