"""Makes the version that serves other shapes: its endpoints call those of version 3 with translated payloads and records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from werkzeug.wrappers import Response

from sandbox.both_versions.payloads import SchemaValidator
from sandbox.documentation import swagger_endpoint
from sandbox.endpoints import Call, Endpoint, Router, Schema, Version, named
from sandbox.errors import route_not_found, unprocessable
from sandbox.shapes.definition import read_shapes
from sandbox.shapes.model import ResourceShape, Shapes
from sandbox.shapes.native import RESOURCES
from sandbox.shapes.translation import Record, Translation
from sandbox.state.records import EXTRA
from sandbox.tenants import Tenant
from sandbox.v2 import V2
from sandbox.v3 import V3


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """The versions of a tenant and their router. ``described``: the versions as their descriptions show them."""

    versions: tuple[Version, ...]
    described: tuple[Version, ...]
    translations: Mapping[str, Translation]
    router: Router


@lru_cache(maxsize=64)
def service_of(text: str) -> Service:
    """Returns the service with the shapes of this JSON text, or without others if it is empty; 422 if it is invalid."""
    if not text:
        return Service((V3, V2), (V3, V2), {}, Router((V3, V2)))
    shapes = read_shapes(text)
    translations = {name: Translation(shape) for name, shape in shapes.resources.items()}
    schemas = {**V3.schemas}
    for translation in translations.values():
        schemas |= translation.schemas()
    described = replace(V3, schemas=_with_lies(schemas, shapes), endpoints=tuple(_endpoints(translations)))
    endpoints = tuple(
        replace(each, handler=_describing(each, shapes, described)) if each in swagger_endpoint.ENDPOINTS else each
        for each in described.endpoints
    )
    version = replace(described, schemas=schemas, endpoints=endpoints)
    _check_addresses(version)
    return Service((version, V2), (described, V2), translations, Router((version, V2)))


def create_record(tenant: Tenant, resource: str, payload: Mapping[str, Any]) -> Record | None:
    """Creates a record of a table from a payload of its shape and returns it; None if the resource has no other shape."""
    service = service_of(tenant.settings.shapes)
    translation = service.translations.get(resource)
    if translation is None:
        return None
    schemas = service.versions[0].schemas
    for problem in SchemaValidator(schemas).problems(payload, schemas[translation.shape.native.create], ""):
        raise unprocessable(problem)
    sent = translation.sent(payload, new=True)
    (shown,) = translation.shown([tenant.records[resource].create({**sent.native, EXTRA: sent.extra})], tenant)
    return shown


def _endpoints(translations: Mapping[str, Translation]) -> Iterator[Endpoint]:
    by_schema = {
        name: translation
        for translation in translations.values()
        for name in (translation.shape.native.record, translation.shape.native.listing)
    }
    for endpoint in V3.endpoints:
        translation = by_schema.get(endpoint.success.schema or "")
        yield endpoint if translation is None else _shaped(endpoint, translation)


def _shaped(endpoint: Endpoint, translation: Translation) -> Endpoint:
    shape = translation.shape
    is_new, is_change = endpoint.payload == shape.native.create, endpoint.payload == shape.native.change
    success = endpoint.success
    if is_new or is_change:
        schema = translation.identity if shape.answer == "id" else success.schema
        success = replace(success, schema=schema, status=shape.status if is_new else None)
    is_merge = endpoint.payload == "Merge" and shape.merge is not None
    return replace(
        endpoint,
        method=shape.verb if is_change else _merged(shape, "method", endpoint.method) if is_merge else endpoint.method,
        path=_merged(shape, "path", endpoint.path) if is_merge else endpoint.path,
        payload=translation.merge if is_merge else endpoint.payload,
        success=success,
        handler=named(_handler(endpoint, translation), endpoint.handler.__name__),
    )


def _merged(shape: ResourceShape, part: str, usual: str) -> str:
    value: str | None = getattr(shape.merge, part)
    return value or usual


def _handler(endpoint: Endpoint, translation: Translation) -> Callable[[Call], Response]:
    """Returns the handler that calls the one of version 3."""
    shape = translation.shape
    is_new, is_change = endpoint.payload == shape.native.create, endpoint.payload == shape.native.change

    def handle(call: Call) -> Response:
        native = replace(call, version=V3, endpoint=endpoint, extra={})
        if is_new or is_change:
            sent = translation.sent(call.payload, new=is_new, dropped=call.settings.variations.dropped_field)
            native = replace(native, payload=sent.native, extra=sent.extra)
        elif shape.merge is not None and endpoint.payload == "Merge":
            native = replace(native, payload={"into_id": call.payload[shape.merge.field]})
        response = endpoint.handler(native)
        content = _translated(json.loads(response.get_data()), translation, call.tenant)
        if shape.answer == "id" and (is_new or is_change):
            content = {"id": content["id"]}
        response.set_data(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode())
        if is_new and shape.status is not None:
            response.status_code = shape.status
        return response

    return handle


def _translated(content: Any, translation: Translation, tenant: Tenant) -> Any:
    """Translates a record, a list of records, or the object around them."""
    if isinstance(content, list):
        return translation.shown(content, tenant)
    if "records" in content:
        return {"records": translation.shown(content["records"], tenant)}
    return translation.shown([content], tenant)[0]


def _describing(endpoint: Endpoint, shapes: Shapes, described: Version) -> Callable[[Call], Response]:
    """Returns the handler of the description: none, a literal text, or that of the shapes."""

    def describe(call: Call) -> Response:
        if shapes.missing:
            raise route_not_found(call.request.path)
        if shapes.text is not None:
            return Response(shapes.text, content_type=endpoint.success.media_type)
        return endpoint.handler(replace(call, version=described))

    return named(describe, endpoint.handler.__name__)


def _with_lies(schemas: Mapping[str, Schema], shapes: Shapes) -> Mapping[str, Schema]:
    """Returns the schemas with those of some fields replaced, or removed for None. A field that is nowhere is added everywhere."""
    lying: dict[str, Any] = deepcopy(dict(schemas))
    for resource, lies in shapes.lies.items():
        native, shape = RESOURCES[resource], shapes.resources.get(resource)
        payloads = [lying[native.create], lying[native.change]]
        if shape is not None and shape.wrapped:
            payloads = [each["properties"][shape.wrapped] for each in payloads]
        described = [lying[native.record], *payloads]
        for name, lie in lies.items():
            for schema in [each for each in described if name in each["properties"]] or described:
                _tell(schema, name, lie)
    return lying


def _tell(schema: dict[str, Any], name: str, lie: Schema | None) -> None:
    if lie is not None:
        schema["properties"][name] = lie
        return
    schema["properties"].pop(name, None)
    if "required" in schema:
        schema["required"] = [each for each in schema["required"] if each != name]


def _check_addresses(version: Version) -> None:
    seen = set()
    for endpoint in version.endpoints:
        address = (endpoint.method, endpoint.path)
        if address in seen:
            raise unprocessable(f"shapes: {endpoint.method} {endpoint.path} is already another operation")
        seen.add(address)
