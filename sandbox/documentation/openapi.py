"""The OpenAPI document of a version, made from its endpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml

from sandbox.endpoints import Endpoint, Parameter, Schema, Version

# libyaml is ten times faster, if it is available
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_ERRORS = {
    400: "The body cannot be read",
    401: "Sign-in is missing or wrong",
    403: "Access denied",
    404: "Requested record not found",
    422: "The input could not be processed",
    429: "Too many requests",
    500: "Internal server error",
}
_LIST_HEADERS = {
    "X-Total": "Total number of entries",
    "Link": "Addresses of the first, previous, next and last page",
}
_DEPRECATION = {
    "X-API-Deprecation": "Deprecated fields of the response; deprecated parameters and fields of the request"
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}


@lru_cache(maxsize=64)
def swagger_yaml(version: Version, base_url: str) -> bytes:
    """Returns ``swagger.yaml``, an OpenAPI 3.1 document."""
    document = description(version, base_url)
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text.encode()


def description(version: Version, base_url: str) -> dict[str, Any]:
    """Returns the OpenAPI document of a version at a tenant's address."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in version.endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, version)
    return {
        "openapi": "3.1.0",
        "info": {"title": version.title, "version": version.name, "description": version.doc},
        "servers": [{"url": f"{base_url}/api/{version.name}"}],
        "security": [{name: []} for name in version.security],
        "paths": paths,
        "components": {
            "securitySchemes": _at(base_url, version.security),
            "schemas": {**(version.described or {}), "Error": _ERROR},
        },
    }


def _at(base_url: str, node: Any) -> Any:
    """Replaces ``{base_url}`` by the tenant's address."""
    if isinstance(node, Mapping):
        return {name: _at(base_url, value) for name, value in node.items()}
    return node.replace("{base_url}", base_url) if isinstance(node, str) else node


def _operation(endpoint: Endpoint, version: Version) -> dict[str, Any]:
    operation: dict[str, Any] = {"summary": endpoint.summary}
    if endpoint.doc:
        operation["description"] = endpoint.doc
    if endpoint.public:
        operation["security"] = []
    elif endpoint.scope:
        operation["security"] = [{name: _scopes(endpoint, scheme)} for name, scheme in version.security.items()]
    if parameters := [*_path_parameters(endpoint), *map(_query_parameter, endpoint.parameters)]:
        operation["parameters"] = parameters
    if endpoint.payload:
        schema = {"$ref": f"#/components/schemas/{endpoint.payload}"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    operation["responses"] = {
        str(endpoint.status): _success(endpoint),
        **{str(status): _refusal(status) for status in sorted(_refusals(endpoint))},
    }
    return operation


def _scopes(endpoint: Endpoint, scheme: Schema) -> list[str]:
    """Returns the scope for OAuth; other schemes have none."""
    return [endpoint.scope] if endpoint.scope and scheme["type"] == "oauth2" else []


def _refusals(endpoint: Endpoint) -> set[int]:
    """Returns every error status of the endpoint."""
    statuses = {429, 500, *endpoint.refusals}
    if not endpoint.public:
        statuses.add(401)
    if endpoint.scope:
        statuses.add(403)
    if endpoint.payload:
        statuses |= {400, 404, 422}
    return statuses | ({404} if "{id}" in endpoint.path else set())


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]


def _query_parameter(parameter: Parameter) -> dict[str, Any]:
    described = {"name": parameter.name, "in": "query", "description": parameter.doc, "schema": dict(parameter.schema)}
    return described | ({"deprecated": True} if parameter.deprecated else {})


def _success(endpoint: Endpoint) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{endpoint.answer}"} if endpoint.answer else {}
    names = {**(_LIST_HEADERS if endpoint.action == "list" else {}), **(_DEPRECATION if endpoint.deprecated else {})}
    headers = {name: {"description": doc, "schema": {"type": "string"}} for name, doc in names.items()}
    described: dict[str, Any] = {"description": "Success", "content": {endpoint.media_type: {"schema": schema}}}
    return described | ({"headers": headers} if headers else {})


def _refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Error"}
    return {"description": _ERRORS[status], "content": {"application/json": {"schema": schema}}}
