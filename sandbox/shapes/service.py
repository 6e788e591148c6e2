"""Reads the description of other shapes and makes the service that has them. What cannot be served is 422 and names the place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sandbox.both_versions.payloads import schema_problem
from sandbox.both_versions.resources import Resource
from sandbox.endpoints import Router, Schema, Version
from sandbox.errors import ApiError, unprocessable
from sandbox.shapes.fields import Field, sources
from sandbox.shapes.lists import RecordList
from sandbox.shapes.shape import Merge, Shape
from sandbox.v2 import V2
from sandbox.v3 import RESOURCES, V3
from sandbox.validation import with_changes


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


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Names the place of what is wrong."""
    try:
        yield
    except ApiError as error:
        raise unprocessable(f"{place}.{error.message}") from None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise unprocessable(f"{place}: {type(error).__name__} {error}") from None


def _shaped(text: str) -> Version:
    with _at("shapes"):
        content = json.loads(text)
        shapes = {name: _shape(name, described) for name, described in content.get("resources", {}).items()}
        schemas = {**V3.schemas}
        for shape in shapes.values():
            schemas |= shape.schemas()
        endpoints = tuple(
            shapes[endpoint.resource].endpoint(endpoint) if endpoint.resource in shapes else endpoint
            for endpoint in V3.endpoints
        )
        for shape in shapes.values():
            for of_record in shape.lists:
                endpoints = (*endpoints, *of_record.endpoints(shape.resource))
                schemas |= of_record.schemas(shape.resource)
        told = content.get("description", "follows")
        shown = {"follows": schemas, "missing": None}
        described = shown[told] if isinstance(told, str) else _with_lies(schemas, shapes, told["lies"])
        return replace(V3, endpoints=endpoints, schemas=schemas, shapes=shapes, described=described)


def _shape(name: str, described: Mapping[str, Any]) -> Shape:
    with _at(f"resources.{name}"):
        resource = RESOURCES[name]
        fields = tuple(_field(resource, field, description) for field, description in described["fields"].items())
        merge = with_changes(Merge(), described["merge"]) if "merge" in described else None
        lists = tuple(
            with_changes(RecordList(key), description) for key, description in described.get("lists", {}).items()
        )
        rest = {key: value for key, value in described.items() if key not in {"fields", "merge", "lists"}}
        return with_changes(Shape(resource, fields, merge=merge, lists=lists), rest)


def _field(resource: Resource, name: str, described: Mapping[str, Any]) -> Field:
    with _at(f"fields.{name}"):
        source = sources(resource)[described["from"]] if "from" in described else None
        rest = {key: value for key, value in described.items() if key != "from"}
        field = with_changes(Field(name, source), {**rest, "seed": tuple(rest.get("seed", ()))})
        if problem := schema_problem(field.schema, V3.schemas):
            raise unprocessable(problem)
        if source is not None and field.form not in source.forms:
            raise unprocessable(f"form: {source.name} has no form {field.form}")
        if source is not None and source.create is None and source.change is None:
            return replace(field, read_only=True)
        return field


def _with_lies(
    schemas: Mapping[str, Schema], shapes: Mapping[str, Shape], lies: Mapping[str, Any]
) -> Mapping[str, Schema]:
    """Returns the schemas with those of some fields replaced, or removed for None. A field that is nowhere is added everywhere."""
    lying: dict[str, Any] = deepcopy(dict(schemas))
    for name, told in lies.items():
        resource, wrapped = RESOURCES[name], shapes[name].wrapped if name in shapes else ""
        payloads = [lying[f"{resource.name}Create"], lying[f"{resource.name}Change"]]
        described = [
            lying[resource.name],
            *(payload["properties"][wrapped] if wrapped else payload for payload in payloads),
        ]
        for field, lie in told.items():
            for schema in [schema for schema in described if field in schema["properties"]] or described:
                schema["properties"].pop(field, None)
                if lie is not None:
                    schema["properties"][field] = lie
                elif "required" in schema:
                    schema["required"] = [name for name in schema["required"] if name != field]
    return lying
