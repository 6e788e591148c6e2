"""``POST /oauth/clients``: a client registers itself (RFC 7591; service.md#clients).

Assumptions: a day is any 24 hours, and only accepted registrations count; unknown metadata are ignored, as in RFC 7591; known
metadata with unsupported values are refused.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from typing import Any

from werkzeug.wrappers import Request, Response

from sandbox.both_versions.payloads import parsed_json, payload_problem
from sandbox.errors import ApiError
from sandbox.oauth import redirect_uris
from sandbox.oauth.errors import OAuthError
from sandbox.oauth.grants import digest
from sandbox.oauth.scopes import READ_SCOPES, intersection, is_valid_scope
from sandbox.permissions import SCOPES
from sandbox.responses import json_response
from sandbox.state.records import Document
from sandbox.tenants import Tenant

DAY_SECONDS = 86400.0
PUBLIC = "none"
AUTH_METHODS = ("client_secret_basic", "client_secret_post", PUBLIC)
GRANT_TYPES = ("authorization_code", "refresh_token")
RESPONSE_TYPES = ("code",)
_METADATA: Mapping[str, Any] = {
    "type": "object",
    "required": ["redirect_uris"],
    "properties": {
        "client_name": {"type": ["string", "null"], "maxLength": 200},
        "redirect_uris": {
            "type": "array",
            "minItems": 1,
            "maxItems": 20,
            "items": {"type": "string", "maxLength": 2000},
        },
        "grant_types": {"type": ["array", "null"], "items": {"enum": list(GRANT_TYPES)}, "minItems": 1},
        "response_types": {"type": ["array", "null"], "items": {"enum": list(RESPONSE_TYPES)}, "minItems": 1},
        "token_endpoint_auth_method": {"enum": [*AUTH_METHODS, None]},
        "scope": {"type": ["string", "null"]},
    },
}


_SHOWN = (
    "client_name",
    "redirect_uris",
    "grant_types",
    "response_types",
    "token_endpoint_auth_method",
    "scope",
)


def register(request: Request, tenant: Tenant) -> Response:
    """Answers a registration with 201, everything that was stored, and the secret, which is shown here only."""
    try:
        body = parsed_json(request.get_data())
    except ApiError as error:
        raise _invalid(error.message) from None
    client, now = new_client(body), tenant.clock.now()
    at_most = tenant.settings.oauth.registrations_per_day
    with tenant.signing_in:
        earlier = [client["created_at"] for client in tenant.records["clients"].all() if not client["issued"]]
        of_the_day = [at for at in earlier if at > now - DAY_SECONDS]
        if len(of_the_day) >= at_most:
            raise _too_many(at_most, (of_the_day[-at_most] if at_most else now) + DAY_SECONDS - now)
        answer = add_client(tenant, client)
    return json_response(answer, status=201, headers={"Cache-Control": "no-store"})


def add_client(tenant: Tenant, client: Document) -> dict[str, Any]:
    """Stores a client, and returns it as in RFC 7591, with its secret in plain text if it is confidential."""
    secret = None if client["token_endpoint_auth_method"] == PUBLIC else secrets.token_urlsafe(32)
    now = tenant.clock.now()
    tenant.records["clients"].create({**client, "created_at": now, "secret": secret and digest(secret)})
    credentials = {} if secret is None else {"client_secret": secret, "client_secret_expires_at": 0}
    shown = {name: client[name] for name in _SHOWN}
    return {"client_id": client["client_id"], **credentials, "client_id_issued_at": int(now), **shown}


def find_client(tenant: Tenant, client_id: str | None) -> Document | None:
    """Returns the client with this id, unless it is revoked."""
    return tenant.records["clients"].find("client_id", client_id) if client_id else None


def new_client(metadata: Any, *, issued: bool = False) -> Document:
    """Returns a client with these metadata and a new id, or raises the error of RFC 7591.

    ``issued``: by an administrator. The default of the grant types is both, because an access token comes with a refresh token
    (service.md#tokens).
    """
    if problem := payload_problem(metadata, _METADATA, {}):
        error = "invalid_redirect_uri" if "redirect_uris" in problem else "invalid_client_metadata"
        raise OAuthError(error, problem)
    for position, address in enumerate(metadata["redirect_uris"]):
        if reason := redirect_uris.redirect_uri_problem(address):
            raise OAuthError("invalid_redirect_uri", f"redirect_uris[{position}] {reason}")
    types = metadata.get("grant_types") or GRANT_TYPES
    if "authorization_code" not in types:
        raise _invalid("grant_types must have authorization_code")
    scope = metadata.get("scope")
    if scope is not None and not is_valid_scope(scope):
        raise _invalid("scope must be names separated by one space each")
    names = READ_SCOPES if scope is None else scope.split(" ")
    if unknown := [name for name in names if name not in SCOPES]:
        raise _invalid(f"scope: {unknown[0]} is unknown; known are {', '.join(SCOPES)}")
    return {
        "client_id": secrets.token_hex(16),
        "client_name": metadata.get("client_name") or "",
        "token_endpoint_auth_method": metadata.get("token_endpoint_auth_method") or AUTH_METHODS[0],
        "redirect_uris": metadata["redirect_uris"],
        "grant_types": [grant_type for grant_type in GRANT_TYPES if grant_type in types],
        "response_types": list(RESPONSE_TYPES),
        "scope": " ".join(intersection(names)),
        "issued": issued,
    }


def _invalid(description: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", description)


def _too_many(at_most: int, wait: float) -> ApiError:
    """Returns 429 with the error body of the API; ``Retry-After`` has the seconds to wait."""
    message = f"At most {at_most} clients may register in a day; store the client_id and reuse it"
    return ApiError(429, "TooManyRequests", message, {"Retry-After": str(max(1, math.ceil(wait)))})
