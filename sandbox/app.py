"""The WSGI application. It leads a request from its path to the tenant, the API version and the endpoint.

A request below ``/api`` or ``/oauth`` is counted and limited as soon as its head has arrived. Then follow faults, latency,
routing, sign-in and the endpoint.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Request, Response

from sandbox import control
from sandbox.both_versions.payloads import read_payload
from sandbox.documentation import page as documentation
from sandbox.endpoints import Call, deprecations
from sandbox.errors import ApiError, internal_server_error, route_not_found, too_many_requests, version_ended
from sandbox.faults import apply_fault
from sandbox.oauth.routes import OAUTH
from sandbox.oauth.routes import respond as respond_to_oauth
from sandbox.objects.errors import no_such_bucket
from sandbox.responses import without_nulls
from sandbox.shapes.service import service_of
from sandbox.storage import STORAGE
from sandbox.tenants import LoggedRequest, Tenant, subdomain

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

VERSIONS = service_of("").versions
CONTROL = "_control"
_ENDED_PAGE = "<!DOCTYPE html><title>Gone</title><p>This version of the API has been shut down."
_METERED = ("/api/", "/oauth/")


class Sandbox:
    """The service: each tenant below its name, and the control endpoint."""

    def __init__(self, tenants: Mapping[str, Tenant]) -> None:
        self.tenants = tenants

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request."""
        return self._respond(Request(environ))(environ, start_response)

    def storage(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request to the storage service, which has its own origin."""
        return self._respond_storage(Request(environ))(environ, start_response)

    def _respond(self, request: Request) -> Response:
        name, slash, rest = request.path.removeprefix("/").partition("/")
        if name == CONTROL:
            return _catch_errors(request, lambda: control.respond(request, self.tenants))
        path = slash + rest
        if (own := subdomain(request.host)) in self.tenants:
            name, path = str(own), request.path
        if name not in self.tenants or path.startswith(STORAGE):
            return route_not_found(request.path).response()
        return self._log_and_answer(self.tenants[name], request, path)

    def _respond_storage(self, request: Request) -> Response:
        """Answers a request to a bucket. A bucket has its tenant's name; its paths appear in the log as ``/storage/KEY``."""
        name, _, key = request.path.removeprefix("/").partition("/")
        if name not in self.tenants:
            return no_such_bucket().response()
        return self._log_and_answer(self.tenants[name], request, f"{STORAGE}{key}")

    def _log_and_answer(self, tenant: Tenant, request: Request, path: str) -> Response:
        """Answers a request of a tenant and adds it to the tenant's log."""
        arrived = tenant.clock.now()
        status = None
        try:
            response = self._rate_limited(tenant, request, path)
            status = response.status_code
        finally:
            tenant.request_log.append(_log_entry(request, path, arrived, status))
        return response

    def _rate_limited(self, tenant: Tenant, request: Request, path: str) -> Response:
        if path.startswith(_METERED):
            wait = tenant.rate.receive(tenant.settings.requests_per_minute)
            if wait is not None:
                return too_many_requests(wait).response()
        return self._with_faults(tenant, request, path)

    def _with_faults(self, tenant: Tenant, request: Request, path: str) -> Response:
        """Answers a request with the faults and the latency of the tenant."""

        def proceed() -> Response:
            return _catch_errors(request, lambda: self._route(tenant, request, path))

        if tenant.settings.latency:
            tenant.clock.sleep(tenant.settings.latency)
        if path.startswith(_METERED) and tenant.faults.pending():  # the storage reads its stream itself
            request.get_data()  # the connection may be gone when the request takes effect
        fault = tenant.faults.take(request.method, _target(request, path), proceed)
        if fault is not None:
            return apply_fault(fault, proceed, tenant.clock)
        response = proceed()
        tenant.faults.passed(request.method, _target(request, path))
        return response

    def _route(self, tenant: Tenant, request: Request, path: str) -> Response:
        """Leads a request to the storage service, OAuth, the documentation or an endpoint."""
        if path.startswith(STORAGE):
            return tenant.storage.respond(request, path)
        if path.startswith(OAUTH):
            return respond_to_oauth(request, tenant, path)
        settings = tenant.settings
        service = service_of(settings.shapes)
        if path in documentation.PATHS:
            return documentation.respond(request, tenant, service.versions)
        if (status := settings.variations.v2_ended) and f"{path}/".startswith("/api/v2/"):
            if status == HTTPStatus.OK:
                return Response(_ENDED_PAGE, content_type="text/html; charset=utf-8")
            raise version_ended(status, tenant.base_url(request.host_url))
        version, endpoint, values = service.router.match(request.method, path)
        caller = None if endpoint.public else version.sign_in(request, tenant)
        if caller is not None and endpoint.scope is not None:
            caller.require(endpoint.scope)
        call = Call(request, tenant, settings, version, endpoint, values, caller)
        return _call_endpoint(replace(call, payload=_read_payload(call)))


def _read_payload(call: Call) -> Any:
    """Returns the validated body as the sandbox has it, without a dropped field; None for an endpoint without one."""
    schema, dropped = call.endpoint.payload, call.settings.variations.dropped_field
    if schema is None:
        return None
    payload = read_payload(call.request, schema, call.version.schemas)
    if call.shape is not None:
        return call.shape.sent(call.endpoint.action, payload, dropped)
    return {name: value for name, value in payload.items() if name != dropped}


def _call_endpoint(call: Call) -> Response:
    """Calls the endpoint and adds what may apply to every response of the API."""
    response = call.endpoint.handler(call)
    if names := ", ".join(deprecations(call)):
        response.headers["X-API-Deprecation"] = names
    return without_nulls(response) if call.settings.variations.nulls == "absent" else response


def _catch_errors(request: Request, answer: Callable[[], Response]) -> Response:
    """Turns errors into responses; an unexpected one becomes a 500 and its traceback goes to stderr."""
    try:
        return answer()
    except ApiError as error:
        return error.response()
    except Exception:  # noqa: BLE001  # the traceback goes to stderr
        with suppress(OSError):  # stderr may be a pipe that nobody reads any more
            traceback.print_exc(file=request.environ["wsgi.errors"])
        return internal_server_error().response()


def _target(request: Request, path: str) -> str:
    """Returns path and query below the tenant, which the pattern of a fault searches."""
    query = request.query_string.decode("latin-1")
    return f"{path}?{query}" if query else path


def _log_entry(request: Request, path: str, arrived: float, status: int | None) -> LoggedRequest:
    scheme = request.headers.get("Authorization", "").partition(" ")[0] or None
    return LoggedRequest(arrived, request.method, path, request.query_string.decode("latin-1"), status, scheme)
