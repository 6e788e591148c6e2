"""Sign-in to version 2: HTTP Basic with the account, or the cookie of a signed-in browser.

With an ``Authorization`` header the cookie does not count.
"""

from __future__ import annotations

from collections.abc import Mapping

from werkzeug.wrappers import Request

from sandbox.accounts import SESSION_COOKIE, with_password
from sandbox.endpoints import Schema
from sandbox.errors import unauthorized
from sandbox.permissions import Caller
from sandbox.tenants import Tenant

SECURITY: Mapping[str, Schema] = {
    "basic": {"type": "http", "scheme": "basic"},
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
}


def sign_in(request: Request, tenant: Tenant) -> Caller:
    """Returns the caller, who may do whatever the roles allow, or raises 401."""
    if "Authorization" not in request.headers:
        is_signed_in = request.cookies.get(SESSION_COOKIE) == tenant.session_cookie
        person = tenant.records["users"].find("email", tenant.account.email) if is_signed_in else None
    else:
        basic = request.authorization
        name, password = (basic.username, basic.password) if basic and basic.type == "basic" else (None, None)
        person = None if name is None or password is None else with_password(tenant, name, password)
    if person is None:
        raise unauthorized(f'Basic realm="{tenant.name}", charset="UTF-8"')
    return Caller(person)
