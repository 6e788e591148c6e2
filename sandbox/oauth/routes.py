"""The endpoints below ``{base_url}/oauth``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from werkzeug.wrappers import Request, Response

from sandbox.endpoints import literal_action
from sandbox.oauth.consent import ask, decide
from sandbox.oauth.registration import register
from sandbox.oauth.token_endpoint import exchange
from sandbox.tenants import Tenant

OAUTH = "/oauth/"


def respond(request: Request, tenant: Tenant, path: str) -> Response:
    """Answers a request below ``/oauth/``; ``path`` is the path below the tenant."""
    return literal_action(_ACTIONS, request.method, path)(request, tenant)


_ACTIONS: Mapping[tuple[str, str], Callable[[Request, Tenant], Response]] = {
    ("POST", "/oauth/clients"): register,
    ("GET", "/oauth/authorize"): ask,
    ("POST", "/oauth/authorize"): decide,
    ("POST", "/oauth/token"): exchange,
}
