"""The control endpoint ``/_control`` for tests and rehearsals: outside the API, without sign-in, not counted.

| GET | /_control/tenants | requests, largest 60-second window and 429 answers of each tenant |
| GET | /_control/requests?tenant= | the last requests of a tenant |
| GET, PUT | /_control/settings | latency, rate, variations, OAuth, other shapes |
| GET, POST, DELETE | /_control/faults | faults that are still to happen |
| POST | /_control/tokens | an access token for version 3 without OAuth |
| | /_control/oauth/... | issued clients and grants: see ``oauth/administration.py`` |
| POST | /_control/locations | a location of hard copies |
| GET | /_control/mails?tenant= | the mails that the service would have sent |
| POST | /_control/reset | reset counts, faults and settings |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from typing import Any

from werkzeug.exceptions import BadRequest
from werkzeug.wrappers import Request, Response

from sandbox.both_versions.payloads import payload_problem
from sandbox.endpoints import literal_action
from sandbox.errors import bad_request, unprocessable
from sandbox.faults import parse_fault
from sandbox.oauth import administration
from sandbox.oauth.administration import Administration
from sandbox.responses import json_response
from sandbox.settings import Settings
from sandbox.shapes.service import service_of
from sandbox.tenants import Tenant
from sandbox.v3 import RESOURCES

Tenants = Mapping[str, Tenant]
_PARTS = ("counts", "faults", "settings")


def respond(request: Request, tenants: Tenants) -> Response:
    """Answers a control request."""
    return json_response(literal_action(_ACTIONS, request.method, request.path)(request, tenants))


def _get_counts(request: Request, tenants: Tenants) -> object:  # noqa: ARG001  # every action has one signature
    return {name: tenant.counts() for name, tenant in tenants.items()}


def _get_requests(request: Request, tenants: Tenants) -> object:
    selected = _selected_tenants(dict(request.args), tenants)
    return [asdict(entry) for tenant in selected for entry in list(tenant.request_log)]


def _get_mails(request: Request, tenants: Tenants) -> object:
    return [asdict(mail) for tenant in _selected_tenants(dict(request.args), tenants) for mail in list(tenant.mails)]


def _get_settings(request: Request, tenants: Tenants) -> object:  # noqa: ARG001
    return {name: _shown(tenant.settings) for name, tenant in tenants.items()}


def _shown(settings: Settings) -> object:
    return {**asdict(settings), "shapes": json.loads(settings.shapes) if settings.shapes else None}


def _change_settings(request: Request, tenants: Tenants) -> object:
    changes = _body(request)
    selected = _selected_tenants(changes, tenants)
    changes.pop("tenant", None)
    changed = [(tenant, tenant.settings.with_changes(changes)) for tenant in selected]
    for _, settings in changed:
        service_of(settings.shapes)
    for tenant, settings in changed:
        tenant.settings = settings
    return _get_settings(request, tenants)


def _get_faults(request: Request, tenants: Tenants) -> object:  # noqa: ARG001
    return {name: tenant.faults.pending() for name, tenant in tenants.items()}


def _add_fault(request: Request, tenants: Tenants) -> object:
    body = _body(request)
    selected = _selected_tenants(body, tenants)
    body.pop("tenant", None)
    fault = parse_fault(body)
    for tenant in selected:
        tenant.faults.add(fault)
    return _get_faults(request, tenants)


def _clear_faults(request: Request, tenants: Tenants) -> object:
    for tenant in _selected_tenants(dict(request.args), tenants):
        tenant.faults.clear()
    return _get_faults(request, tenants)


def _on_one_tenant(action: Administration) -> Callable[[Request, Tenants], object]:
    """Applies an action to exactly one tenant. Its name is optional if it is the only one."""

    def administer(request: Request, tenants: Tenants) -> object:
        body = dict(request.args) if request.method == "GET" else _body(request)
        selected = _selected_tenants(body, tenants)
        if len(selected) != 1:
            raise unprocessable(f"tenant: must be one of {', '.join(tenants)}")
        body.pop("tenant", None)
        return action(selected[0], body)

    return administer


def _create_location(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Creates a location, as a person does in the web interface; version 3 has no endpoint for it.

    The body is a payload of a create, in another shape if locations have one.
    """
    version, resource = service_of(tenant.settings.shapes).versions[0], RESOURCES["locations"]
    shape = version.shapes.get("locations")
    if problem := payload_problem(body, version.schemas["LocationCreate"], version.schemas):
        raise unprocessable(problem)
    values = dict(body) if shape is None else shape.sent("create", body, "")
    record = tenant.records["locations"].create(resource.new(values))
    return record if shape is None else shape.shown([record], tenant)[0]


def _reset(request: Request, tenants: Tenants) -> object:
    body = _body(request)
    parts = body.get("parts", _PARTS)
    if not isinstance(parts, list | tuple) or any(part not in _PARTS for part in parts):
        raise unprocessable(f"parts: must be a list of {', '.join(_PARTS)}")
    for tenant in _selected_tenants(body, tenants):
        _reset_tenant(tenant, parts)
    return _get_counts(request, tenants)


def _reset_tenant(tenant: Tenant, parts: Collection[str]) -> None:
    if "counts" in parts:
        tenant.rate.reset()
        tenant.request_log.clear()
        tenant.mails.clear()
    if "faults" in parts:
        tenant.faults.clear()
    if "settings" in parts:
        tenant.settings = tenant.initial_settings
        tenant.clock.ahead = 0.0


def _selected_tenants(body: Mapping[str, Any], tenants: Tenants) -> list[Tenant]:
    """Returns the named tenant, or all."""
    name = body.get("tenant")
    if name is None:
        return list(tenants.values())
    if not isinstance(name, str) or name not in tenants:
        raise unprocessable(f"tenant: must be one of {', '.join(tenants)}")
    return [tenants[name]]


def _body(request: Request) -> dict[str, Any]:
    if not request.get_data():
        return {}
    try:
        body = request.get_json(force=True)
    except BadRequest:
        raise bad_request("The body is not JSON") from None
    if not isinstance(body, dict):
        raise unprocessable("The body must be an object")
    return body


_ACTIONS: Mapping[tuple[str, str], Callable[[Request, Tenants], object]] = {
    ("GET", "/_control/tenants"): _get_counts,
    ("GET", "/_control/requests"): _get_requests,
    ("GET", "/_control/mails"): _get_mails,
    ("GET", "/_control/settings"): _get_settings,
    ("PUT", "/_control/settings"): _change_settings,
    ("GET", "/_control/faults"): _get_faults,
    ("POST", "/_control/faults"): _add_fault,
    ("DELETE", "/_control/faults"): _clear_faults,
    ("POST", "/_control/reset"): _reset,
    ("POST", "/_control/locations"): _on_one_tenant(_create_location),
    **{address: _on_one_tenant(action) for address, action in administration.ACTIONS.items()},
}
