"""The endpoints below ``{base_url}/oauth``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from sandbox.errors import method_not_allowed, route_not_found
from sandbox.oauth.consent import ask, decide
from sandbox.oauth.errors import OAuthError
from sandbox.oauth.registration import register
from sandbox.oauth.token_endpoint import exchange
from sandbox.responses import json_response
from sandbox.tenants import Tenant

OAUTH = "/oauth/"


def respond(request: Request, tenant: Tenant, path: str) -> Response:
    """Answers a request below ``/oauth/``; ``path`` is the path below the tenant."""
    try:
        action, _ = _ROUTES.bind("").match(path, request.method)
    except NotFound:
        raise route_not_found(path) from None
    except MethodNotAllowed as refused:
        raise method_not_allowed(request.method, refused.valid_methods or ()) from None
    try:
        response: Response = action(request, tenant)
    except OAuthError as refusal:
        headers = {"Cache-Control": "no-store", **refusal.headers}
        return json_response(refusal.body(), status=refusal.status, headers=headers)
    return response


_ACTIONS: Mapping[tuple[str, str], Callable[[Request, Tenant], Response]] = {
    ("POST", "/oauth/clients"): register,
    ("GET", "/oauth/authorize"): ask,
    ("POST", "/oauth/authorize"): decide,
    ("POST", "/oauth/token"): exchange,
}
_ROUTES = Map(
    [Rule(path, endpoint=action, methods=[method]) for (method, path), action in _ACTIONS.items()], merge_slashes=False
)
