"""``POST /oauth/token`` exchanges a code or a refresh token for a new pair of tokens.

The refresh request is not shown; the assumption is that of RFC 6749, section 6 (service.md#tokens).
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

from werkzeug.wrappers import Request, Response

from sandbox.oauth import surfaces
from sandbox.oauth.client_authentication import authenticate
from sandbox.oauth.errors import OAuthError, invalid_grant, invalid_request, invalid_scope, invalid_target
from sandbox.oauth.grants import end_grant, find_token, issue_pair
from sandbox.oauth.parameters import Parameters
from sandbox.oauth.scopes import intersection, is_valid_scope
from sandbox.responses import json_response
from sandbox.state.records import Document
from sandbox.tenants import Tenant

_FORM = "application/x-www-form-urlencoded"
_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")

# Policy → for how many seconds a refresh token may be used again; a later use ends the grant. With ``at_once`` the old pair ends at
# the refresh, with ``until_used`` when the new access token is used. service.md#tokens only says that each use replaces the token.
_REUSE_SECONDS = {"strict": -1.0, "leeway": 30.0, "until_used": math.inf, "at_once": -1.0}


def exchange(request: Request, tenant: Tenant) -> Response:
    """Answers a token request."""
    if request.mimetype != _FORM:
        raise invalid_request(f"The body must be {_FORM}")
    form = Parameters(request.form)
    if form.repeated:
        raise invalid_request(f"{form.repeated[0]} occurs more than once")
    client = authenticate(request, form, tenant)
    handler = _grant_handler(form, client)
    with tenant.signing_in:
        tokens = handler(form, client, tenant, tenant.base_url(request.host_url))
    return json_response(tokens, headers={"Cache-Control": "no-store"})


GrantHandler = Callable[[Parameters, Document, Tenant, str], Mapping[str, Any]]


def _grant_handler(form: Parameters, client: Document) -> GrantHandler:
    grant_type = form.get("grant_type")
    if grant_type is None:
        raise invalid_request("grant_type is missing")
    if grant_type not in _GRANT_HANDLERS:
        raise OAuthError("unsupported_grant_type", f"grant_type must be one of {', '.join(_GRANT_HANDLERS)}")
    if grant_type not in client["grant_types"]:
        raise OAuthError("unauthorized_client", f"The client is not registered for {grant_type}")
    return _GRANT_HANDLERS[grant_type]


def _exchange_code(form: Parameters, client: Document, tenant: Tenant, base: str) -> Mapping[str, Any]:
    """A code works once. One that is used twice ends its grant, because one of its two users is not entitled to it."""
    token, redirect_uri = _required(form, "code"), _required(form, "redirect_uri")
    known = find_token(tenant, "code", token)
    if known is None or known[1]["ended"] or known[0]["used"]:
        if known is not None:
            end_grant(tenant, known[1])
        raise invalid_grant("The code is unknown or was used before")
    code, grant = known
    if grant["client_id"] != client["client_id"]:
        raise invalid_grant("The code belongs to another client")
    if code["expires_at"] <= tenant.clock.now():
        raise invalid_grant("The code has expired")
    if code["redirect_uri"] != redirect_uri:
        raise invalid_grant("redirect_uri is not that of the authorization")
    _check_verifier(form.get("code_verifier"), code["challenge"])
    authorized = code["resource"] or base + surfaces.PATHS[grant["surface"]]
    if form.get("resource") not in {None, authorized}:
        raise invalid_target("resource is not that of the authorization")
    tenant.records["tokens"].change(code["id"], {"used": True})
    return issue_pair(tenant, grant, grant["scopes"])


def _check_verifier(verifier: str | None, challenge: str) -> None:
    """Checks PKCE with S256."""
    if verifier is None:
        raise invalid_grant("code_verifier is missing")
    hashed = urlsafe_b64encode(hashlib.sha256(verifier.encode("utf-8", "replace")).digest()).rstrip(b"=")
    if not _VERIFIER.fullmatch(verifier) or not hmac.compare_digest(hashed, challenge.encode()):
        raise invalid_grant("code_verifier does not belong to the code_challenge")


def _refresh(form: Parameters, client: Document, tenant: Tenant, base: str) -> Mapping[str, Any]:
    known = find_token(tenant, "refresh", _required(form, "refresh_token"))
    if known is None:
        raise invalid_grant("The refresh token is unknown or was used before")
    pair, grant = known
    if grant["client_id"] != client["client_id"]:
        raise invalid_grant("The refresh token belongs to another client")
    if pair["ended"] or grant["ended"]:
        raise invalid_grant("The refresh token is no longer valid")
    policy, now = tenant.settings.oauth.refresh_policy, tenant.clock.now()
    if pair["refreshed_at"] is not None and now > pair["refreshed_at"] + _REUSE_SECONDS[policy]:
        end_grant(tenant, grant)
        raise invalid_grant("The refresh token is unknown or was used before")
    if (resource := form.get("resource")) is not None:
        surfaces.check_resource(resource, grant["surface"], base)
    scopes = _narrowed(form.get("scope"), grant)
    tenant.records["tokens"].change(
        pair["id"], {"refreshed_at": pair["refreshed_at"] or now, "ended": policy == "at_once"}
    )
    return issue_pair(tenant, grant, scopes, parent=pair["id"])


def _narrowed(scope: str | None, grant: Document) -> tuple[str, ...]:
    """Returns the scopes of a new access token: those of the grant, or the requested part of them."""
    names = grant["scopes"] if scope is None else scope.split(" ")
    if scope is not None and not (is_valid_scope(scope) and set(names) <= set(grant["scopes"])):
        raise invalid_scope("scope must be a part of what was granted")
    return intersection(names)


def _required(form: Parameters, name: str) -> str:
    value = form.get(name)
    if value is None:
        raise invalid_request(f"{name} is missing")
    return value


_GRANT_HANDLERS: Mapping[str, GrantHandler] = {"authorization_code": _exchange_code, "refresh_token": _refresh}
