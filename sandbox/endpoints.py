"""Endpoints as data: one declaration each, from which both the routing and the machine-readable description are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from sandbox.callers import Caller
from sandbox.errors import method_not_allowed, route_not_found, unauthorized
from sandbox.settings import Settings
from sandbox.tenants import Tenant

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}

# SQLite's numbers have 19 digits; a longer id is an id that no record has
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter. One that is ``deprecated`` is named in ``X-API-Deprecation`` when it is used."""

    name: str
    doc: str
    schema: Schema = field(default_factory=lambda: TEXT)
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class SuccessResponse:
    """What a success looks like: the name of a schema of the version, and the headers that come along."""

    doc: str
    schema: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """One method on one path below the version, as ``/publications/{id}``.

    ``public``: needs no sign-in. ``scope``: the scope a token needs, in versions that have tokens. ``refusals``: statuses
    beside those of every endpoint. ``deprecated_fields``: fields of the answer that ``X-API-Deprecation`` names.
    ``payload``: the name of the schema that a body has to meet before the handler sees it.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    success: SuccessResponse
    doc: str = ""
    parameters: tuple[Parameter, ...] = ()
    refusals: tuple[int, ...] = ()
    public: bool = False
    scope: str | None = None
    deprecated_fields: tuple[str, ...] = ()
    payload: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One API version. ``sign_in`` gives the caller or raises 401; ``security`` describes the ways in OpenAPI's words.

    In ``security``, ``{base_url}`` stands for the tenant's address.
    """

    name: str
    title: str
    doc: str
    endpoints: tuple[Endpoint, ...]
    schemas: Mapping[str, Schema]
    sign_in: Callable[[Request, Tenant], Caller]
    security: Mapping[str, Schema]


@dataclass(frozen=True, slots=True)
class Call:
    """One request on its way to the rules. ``settings`` are the tenant's as they were when it came."""

    request: Request
    tenant: Tenant
    settings: Settings
    version: Version
    endpoint: Endpoint
    path: Mapping[str, str]
    caller: Caller | None
    payload: Any = None

    @property
    def signed_in(self) -> Caller:
        """The caller of an endpoint that is not public."""
        if self.caller is None:
            raise unauthorized("Bearer")
        return self.caller

    @property
    def number(self) -> int | None:
        """The ``{id}`` of the path, None when it is no number that a record could have."""
        text = self.path["id"]
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else None

    @property
    def base_url(self) -> str:
        """The tenant's address, as the caller wrote its host."""
        return self.tenant.base_url(self.request.host_url)


Handler = Callable[[Call], Response]


class Router:
    """Finds the endpoint for a path below a tenant."""

    def __init__(self, versions: Sequence[Version]) -> None:
        rules = (_rule(version, endpoint) for version in versions for endpoint in version.endpoints)
        self._literal = {
            f"/api/{version.name}{endpoint.path}": version
            for version in versions
            for endpoint in version.endpoints
            if "{" not in endpoint.path
        }
        self._map = Map(rules, merge_slashes=False, strict_slashes=False, redirect_defaults=False)

    def match(self, method: str, path: str) -> tuple[Version, Endpoint, Mapping[str, str]]:
        """The endpoint and the values in the path, or 404 or 405."""
        try:
            (version, endpoint), values = self._map.bind("").match(path, method)
        except NotFound:
            raise route_not_found(path) from None
        except MethodNotAllowed as refused:
            allowed = self._methods(path) if path in self._literal else refused.valid_methods or ()
            raise method_not_allowed(method, allowed) from None
        if "{" in endpoint.path and path in self._literal:
            raise method_not_allowed(method, self._methods(path))
        return version, endpoint, values

    def _methods(self, path: str) -> set[str]:
        """What a path without values can do: ``/publications/all`` is no publication with the id ``all``."""
        version = self._literal[path]
        methods = {each.method for each in version.endpoints if path == f"/api/{version.name}{each.path}"}
        return methods | ({"HEAD"} if "GET" in methods else set())


def _rule(version: Version, endpoint: Endpoint) -> Rule:
    path = endpoint.path.replace("{", "<").replace("}", ">")
    return Rule(f"/api/{version.name}{path}", endpoint=(version, endpoint), methods=[endpoint.method])


def named(handler: Handler, name: str) -> Handler:
    """Gives a handler the name that the description shows as ``operationId``."""
    handler.__name__ = name
    return handler


def deprecations(call: Call) -> Iterator[str]:
    """The names for ``X-API-Deprecation``: deprecated fields of the answer, then deprecated parameters that were used."""
    yield from call.endpoint.deprecated_fields
    for parameter in call.endpoint.parameters:
        if parameter.deprecated and parameter.name in call.request.args:
            yield parameter.name
