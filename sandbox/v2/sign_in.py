"""Sign-in to version 2: HTTP Basic with the account, or the cookie of a signed-in browser.

With an ``Authorization`` header the cookie does not count.
"""

from __future__ import annotations

from collections.abc import Mapping

from werkzeug.wrappers import Request

from sandbox.endpoints import Schema
from sandbox.errors import unauthorized
from sandbox.permissions import Caller
from sandbox.state.accounts import User
from sandbox.tenants import Tenant

SESSION_COOKIE = "_library_session"

SECURITY: Mapping[str, Schema] = {
    "basic": {"type": "http", "scheme": "basic"},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
}


def sign_in(request: Request, tenant: Tenant) -> Caller:
    """Returns the caller, who may do whatever the roles allow, or raises 401."""
    user = _with_password(request, tenant) if "Authorization" in request.headers else _with_session(request, tenant)
    if user is None:
        raise unauthorized(f'Basic realm="{tenant.name}", charset="UTF-8"')
    return Caller(user)


def _with_password(request: Request, tenant: Tenant) -> User | None:
    credentials = request.authorization
    if (
        credentials is None
        or credentials.type != "basic"
        or credentials.username is None
        or credentials.password is None
    ):
        return None
    return tenant.with_password(credentials.username, credentials.password)


def _with_session(request: Request, tenant: Tenant) -> User | None:
    cookie = request.cookies.get(SESSION_COOKIE)
    return tenant.accounts.with_session(cookie, tenant.clock.now()) if cookie else None
