"""The control endpoint ``/_control`` for tests and rehearsals: outside the API, without sign-in, not counted.

| GET | /_control/tenants | requests, largest 60-second window and 429 answers of each tenant |
| GET | /_control/requests?tenant= | the last requests of a tenant |
| GET, PUT | /_control/settings | latency, rate, variations, OAuth, other shapes |
| GET, POST | /_control/faults | faults that are still to happen |
| POST | /_control/tokens | an access token for version 3 without OAuth |
| | /_control/oauth/... | issued clients and grants: see ``oauth/administration.py`` |
| POST | /_control/locations | a location of hard copies |
| POST | /_control/reset | reset counts, faults and settings |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from werkzeug.exceptions import BadRequest
from werkzeug.wrappers import Request, Response

from sandbox.both_versions.payloads import payload_problem
from sandbox.endpoints import literal_action
from sandbox.errors import bad_request, unprocessable
from sandbox.faults import parse_fault
from sandbox.oauth import administration
from sandbox.responses import json_response
from sandbox.shapes.service import service_of
from sandbox.tenants import Tenant
from sandbox.v3 import RESOURCES

Tenants = Mapping[str, Tenant]
Body = dict[str, Any]
_PARTS = ("counts", "faults", "settings")


def respond(request: Request, tenants: Tenants) -> Response:
    """Answers a control request about the named tenant, or all."""
    action = literal_action(_ACTIONS, request.method, request.path)
    body = dict(request.args) if request.method in {"GET", "HEAD"} else {**request.args, **_body(request)}
    name = body.pop("tenant", None)
    if name is not None and (not isinstance(name, str) or name not in tenants):
        raise unprocessable(f"tenant: must be one of {', '.join(tenants)}")
    return json_response(action(list(tenants.values()) if name is None else [tenants[name]], body))


def _get_counts(tenants: Sequence[Tenant], _body: Body) -> object:
    return {tenant.name: tenant.rate.counts() for tenant in tenants}


def _get_requests(tenants: Sequence[Tenant], _body: Body) -> object:
    return [asdict(entry) for tenant in tenants for entry in list(tenant.request_log)]


def _get_settings(tenants: Sequence[Tenant], _body: Body) -> object:
    return {
        tenant.name: {**asdict(tenant.settings), "shapes": json.loads(tenant.settings.shapes or "null")}
        for tenant in tenants
    }


def _change_settings(tenants: Sequence[Tenant], body: Body) -> object:
    changed = [(tenant, tenant.settings.with_changes(body)) for tenant in tenants]
    for _, settings in changed:
        service_of(settings.shapes)
    for tenant, settings in changed:
        tenant.settings = settings
    return _get_settings(tenants, body)


def _get_faults(tenants: Sequence[Tenant], _body: Body) -> object:
    return {tenant.name: tenant.faults.pending() for tenant in tenants}


def _add_fault(tenants: Sequence[Tenant], body: Body) -> object:
    fault = parse_fault(body)
    for tenant in tenants:
        tenant.faults.add(fault)
    return _get_faults(tenants, body)


def _of_one_tenant(action: Callable[[Tenant, Body], object]) -> Callable[[Sequence[Tenant], Body], object]:
    """Applies an action to exactly one tenant. Its name is optional if it is the only one."""

    def administer(tenants: Sequence[Tenant], body: Body) -> object:
        if len(tenants) != 1:
            raise unprocessable(f"tenant: must be one of {', '.join(tenant.name for tenant in tenants)}")
        return action(tenants[0], body)

    return administer


def _create_location(tenant: Tenant, body: Body) -> object:
    """Creates a location, as a person does in the web interface; version 3 has no endpoint for it.

    The body is a payload of a create, in another shape if locations have one.
    """
    version = service_of(tenant.settings.shapes).versions[0]
    shape = version.shapes.get("locations")
    if problem := payload_problem(body, version.schemas["LocationCreate"], version.schemas):
        raise unprocessable(problem)
    values = body if shape is None else shape.sent("create", body, "")
    record = tenant.records["locations"].create(RESOURCES["locations"].new(values))
    return record if shape is None else shape.shown([record], tenant)[0]


def _reset(tenants: Sequence[Tenant], body: Body) -> object:
    parts = body.get("parts", _PARTS)
    if not isinstance(parts, list | tuple) or any(part not in _PARTS for part in parts):
        raise unprocessable(f"parts: must be a list of {', '.join(_PARTS)}")
    for tenant in tenants:
        if "counts" in parts:
            tenant.rate.reset()
            tenant.request_log.clear()
        if "faults" in parts:
            tenant.faults.clear()
        if "settings" in parts:
            tenant.settings = tenant.initial_settings
            tenant.clock.ahead = 0.0
    return _get_counts(tenants, body)


def _body(request: Request) -> Body:
    if not request.get_data():
        return {}
    try:
        body = request.get_json(force=True)
    except BadRequest:
        raise bad_request("The body is not JSON") from None
    if not isinstance(body, dict):
        raise unprocessable("The body must be an object")
    return body


_ACTIONS: Mapping[tuple[str, str], Callable[[Sequence[Tenant], Body], object]] = {
    ("GET", "/_control/tenants"): _get_counts,
    ("GET", "/_control/requests"): _get_requests,
    ("GET", "/_control/settings"): _get_settings,
    ("PUT", "/_control/settings"): _change_settings,
    ("GET", "/_control/faults"): _get_faults,
    ("POST", "/_control/faults"): _add_fault,
    ("POST", "/_control/reset"): _reset,
    ("POST", "/_control/locations"): _of_one_tenant(_create_location),
    **{address: _of_one_tenant(action) for address, action in administration.ACTIONS.items()},
}
