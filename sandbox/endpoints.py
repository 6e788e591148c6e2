"""Endpoints as data: routing and machine-readable description are both made from one declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import BaseConverter, Map, Rule
from werkzeug.wrappers import Request, Response

from sandbox.errors import method_not_allowed, route_not_found, unauthorized
from sandbox.permissions import Caller
from sandbox.responses import json_response
from sandbox.settings import Settings
from sandbox.tenants import Tenant

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}

# SQLite's integers have up to 19 digits, so no record has a longer id
_MAX_DIGITS = 18


class Shape(Protocol):
    """Another shape of a resource (``sandbox/shapes/shape.py``, which needs this module)."""

    @property
    def answer(self) -> str:
        """What a create and a change answer: ``record`` or ``id``."""

    @property
    def ids(self) -> str:
        """What stands before the number in an id."""

    def sent(self, action: str, payload: Mapping[str, Any], dropped: str) -> dict[str, Any]:
        """Returns a valid payload as the sandbox has it."""

    def shown(self, records: Sequence[dict[str, Any]], tenant: Tenant) -> list[dict[str, Any]]:
        """Returns records of the sandbox in their shape."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter. A ``deprecated`` one is named in ``X-API-Deprecation`` when it is used."""

    name: str
    doc: str
    schema: Schema = field(default_factory=lambda: TEXT)
    deprecated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """A method on a path below the version, for example ``/publications/{id}``.

    ``payload``: the name of the schema that validates the body before the handler is called; ``answer``: that of the response.
    ``public``: needs no sign-in. ``scope``: the scope that a token needs. ``refusals``: error statuses beside those of every
    endpoint of its kind. ``deprecated``: what ``X-API-Deprecation`` names in each response. ``resource``: the resource whose records it
    answers; ``action``: what it does to them, such as ``list`` or ``create``. ``status``: the only one of a success.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    answer: str = "Nothing"
    doc: str = ""
    parameters: tuple[Parameter, ...] = ()
    refusals: tuple[int, ...] = ()
    public: bool = False
    scope: str | None = None
    deprecated: tuple[str, ...] = ()
    payload: str | None = None
    resource: str = ""
    action: str = ""
    media_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """An API version. ``sign_in`` returns the caller or raises 401. ``security`` has OpenAPI's security schemes.

    In ``security``, ``{base_url}`` stands for the tenant's address. ``shapes``: the resources of other shapes. ``described``: the
    schemas that its description shows; None where it has no description.
    """

    name: str
    title: str
    doc: str
    endpoints: tuple[Endpoint, ...]
    schemas: Mapping[str, Schema]
    sign_in: Callable[[Request, Tenant], Caller]
    security: Mapping[str, Schema]
    described: Mapping[str, Schema] | None
    shapes: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """A request to an endpoint. ``settings`` are the tenant's settings when the request arrived."""

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
    def number(self) -> int:
        """The ``{id}`` of the path as a number, 0 if no record can have it."""
        return self.number_in("id")

    def number_in(self, parameter: str) -> int:
        """The same of another parameter of the path."""
        text = self.path[parameter].removeprefix(self.shape.ids if self.shape else "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else 0

    @property
    def base_url(self) -> str:
        """The tenant's address on the host of the request."""
        return self.tenant.base_url(self.request.host_url)

    @property
    def shape(self) -> Shape | None:
        """The other shape of the endpoint's resource, if it has one."""
        return self.version.shapes.get(self.endpoint.resource)

    def shown(self, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns records of the sandbox as the version shows them; without other shapes, without what only those have."""
        if self.shape is not None:
            return self.shape.shown(records, self.tenant)
        for record in records:
            record.pop("extra", None)
        return list(records)

    def answer(self, record: dict[str, Any]) -> Response:
        """Returns the response with a record."""
        (content,) = self.shown([record])
        if self.shape is not None and self.shape.answer == "id" and self.endpoint.action in {"create", "change"}:
            content = {"id": content["id"]}
        return json_response(content, status=self.endpoint.status)


Handler = Callable[[Call], Response]
Action = TypeVar("Action")


class _Id(BaseConverter):
    """The id of a path. ``/publications/all`` is not a publication with the id ``all``, whatever the method."""

    regex = r"(?!(?:all|locations|me|presign)$)[^/]+"


class Router:
    """Finds the endpoint of a path below a tenant."""

    def __init__(self, versions: Sequence[Version]) -> None:
        rules = [
            Rule(
                f"/api/{version.name}{endpoint.path.replace('{', '<id:').replace('}', '>')}",
                endpoint=(version, endpoint),
                methods=[endpoint.method],
            )
            for version in versions
            for endpoint in version.endpoints
        ]
        options = {"merge_slashes": False, "strict_slashes": False, "redirect_defaults": False}
        self._map = Map(rules, converters={"id": _Id}, **options)  # type: ignore[arg-type]

    def match(self, method: str, path: str) -> tuple[Version, Endpoint, Mapping[str, str]]:
        """Returns version, endpoint and path values, or raises 404 or 405."""
        try:
            (version, endpoint), values = self._map.bind("").match(path, method)
        except NotFound:
            raise route_not_found(path) from None
        except MethodNotAllowed as refused:
            raise method_not_allowed(method, refused.valid_methods or ()) from None
        return version, endpoint, values


def literal_action(actions: Mapping[tuple[str, str], Action], method: str, path: str) -> Action:
    """Returns the action of a method and a path without parameters, or raises 404 or 405."""
    methods = {method for method, route in actions if route == path}
    if not methods:
        raise route_not_found(path)
    action = actions.get(("GET" if method == "HEAD" else method, path))
    if action is None:
        raise method_not_allowed(method, methods | ({"HEAD"} if "GET" in methods else set()))
    return action


def deprecations(call: Call) -> Iterator[str]:
    """Yields the names for ``X-API-Deprecation``: deprecated fields of the response, then parameters and fields of the request."""
    yield from call.endpoint.deprecated
    for parameter in call.endpoint.parameters:
        if parameter.deprecated and parameter.name in call.request.args:
            yield parameter.name
    if call.endpoint.payload is not None:
        for name, schema in call.version.schemas[call.endpoint.payload]["properties"].items():
            if schema.get("deprecated") and name in call.payload:
                yield name
    if call.version.name == "v2" and (announced := call.settings.variations.announced):
        yield announced
