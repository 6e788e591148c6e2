"""Sign-in to version 3: an OAuth 2.1 bearer token for this API of this tenant."""

from __future__ import annotations

from collections.abc import Mapping

from werkzeug.wrappers import Request

from sandbox.endpoints import Schema
from sandbox.oauth.grants import check_bearer
from sandbox.permissions import SCOPES, Caller
from sandbox.tenants import Tenant

SECURITY: Mapping[str, Schema] = {
    "oauth2": {
        "type": "oauth2",
        "flows": {
            "authorizationCode": {
                "authorizationUrl": "{base_url}/oauth/authorize",
                "tokenUrl": "{base_url}/oauth/token",
                "refreshUrl": "{base_url}/oauth/token",
                "scopes": SCOPES,
            }
        },
    }
}


def sign_in(request: Request, tenant: Tenant) -> Caller:
    """Returns the caller of the token, or raises 401."""
    return check_bearer(tenant, request.headers.get("Authorization"))
