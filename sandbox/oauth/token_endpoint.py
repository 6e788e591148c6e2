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

from werkzeug.wrappers import Request, Response

from sandbox.oauth import surfaces
from sandbox.oauth.client_authentication import authenticate
from sandbox.oauth.errors import OAuthError, invalid_grant, invalid_request, invalid_scope, invalid_target
from sandbox.oauth.parameters import Parameters
from sandbox.oauth.refresh_policies import REFRESH_POLICIES, OldPair, Verdict
from sandbox.oauth.scopes import intersection, is_valid_scope
from sandbox.oauth.tokens import mint
from sandbox.responses import json_response
from sandbox.state.clients import Client
from sandbox.state.grants import CodeDetails, Grant, RefreshResult, TokenPair, Tokens
from sandbox.tenants import Tenant

_FORM = "application/x-www-form-urlencoded"
_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


def exchange(request: Request, tenant: Tenant) -> Response:
    """Answers a token request."""
    if request.mimetype != _FORM:
        raise invalid_request(f"The body must be {_FORM}")
    form = Parameters(request.form)
    if form.repeated:
        raise invalid_request(f"{form.repeated[0]} occurs more than once")
    client = authenticate(request, form, tenant)
    tokens = _grant_handler(form, client)(form, client, tenant, tenant.base_url(request.host_url))
    return _token_response(tokens, tenant)


GrantHandler = Callable[[Parameters, Client, Tenant, str], Tokens]


def _grant_handler(form: Parameters, client: Client) -> GrantHandler:
    grant_type = form.get("grant_type")
    if grant_type is None:
        raise invalid_request("grant_type is missing")
    if grant_type not in _GRANT_HANDLERS:
        raise OAuthError("unsupported_grant_type", f"grant_type must be one of {', '.join(_GRANT_HANDLERS)}")
    if grant_type not in client.grant_types:
        raise OAuthError("unauthorized_client", f"The client is not registered for {grant_type}")
    return _GRANT_HANDLERS[grant_type]


def _exchange_code(form: Parameters, client: Client, tenant: Tenant, base: str) -> Tokens:
    code, redirect_uri = _required(form, "code"), _required(form, "redirect_uri")
    now = tenant.clock.now()

    def issue(details: CodeDetails, grant: Grant) -> Tokens:
        if grant.client_id != client.id:
            raise invalid_grant("The code belongs to another client")
        if details.expires_at <= now:
            raise invalid_grant("The code has expired")
        if details.redirect_uri != redirect_uri:
            raise invalid_grant("redirect_uri is not that of the authorization")
        _check_verifier(form.get("code_verifier"), details.challenge)
        _check_code_resource(form.get("resource"), details, grant, base)
        return mint(tenant, grant.scopes)

    tokens = tenant.grants.redeem(code, issue, now)
    if tokens is None:
        raise invalid_grant("The code is unknown or was used before")
    return tokens


def _check_verifier(verifier: str | None, challenge: str | None) -> None:
    """Checks PKCE with S256. A verifier without a challenge is refused: an attacker may have removed the challenge."""
    if challenge is None:
        if verifier is not None:
            raise invalid_grant("The authorization had no code_challenge")
        return
    if verifier is None:
        raise invalid_grant("code_verifier is missing")
    hashed = urlsafe_b64encode(hashlib.sha256(verifier.encode("utf-8", "replace")).digest()).rstrip(b"=")
    if not _VERIFIER.fullmatch(verifier) or not hmac.compare_digest(hashed, challenge.encode()):
        raise invalid_grant("code_verifier does not belong to the code_challenge")


def _check_code_resource(resource: str | None, details: CodeDetails, grant: Grant, base: str) -> None:
    """Checks the optional ``resource``, which has to equal that of the authorization (service.md#oauth)."""
    authorized = details.resource or base + surfaces.PATHS[grant.surface]
    if resource is not None and resource != authorized:
        raise invalid_target("resource is not that of the authorization")


def _refresh(form: Parameters, client: Client, tenant: Tenant, base: str) -> Tokens:
    now, policy = tenant.clock.now(), REFRESH_POLICIES[tenant.settings.oauth.refresh_policy]

    def refresh(pair: TokenPair) -> RefreshResult | None:
        if pair.grant.client_id != client.id:
            raise invalid_grant("The refresh token belongs to another client")
        verdict = policy.verdict(ended=pair.ended, refreshed_at=pair.refreshed_at, now=now)
        if verdict is Verdict.REFUSE:
            raise invalid_grant("The refresh token is no longer valid")
        if verdict is Verdict.END_GRANT:
            return None
        if (resource := form.get("resource")) is not None:
            surfaces.check_resource(resource, pair.grant.surface, base)
        tokens = mint(tenant, _narrowed(form.get("scope"), pair.grant))
        return RefreshResult(tokens, ends_old_pair=policy.old_pair is OldPair.ENDS)

    tokens = tenant.grants.refresh(_required(form, "refresh_token"), refresh, now)
    if tokens is None:
        raise invalid_grant("The refresh token is unknown or was used before")
    return tokens


def _narrowed(scope: str | None, grant: Grant) -> tuple[str, ...]:
    """Returns the scopes of a new access token: those of the grant, or the requested part of them."""
    if scope is None:
        return grant.scopes
    if not is_valid_scope(scope) or not set(scope.split(" ")) <= set(grant.scopes):
        raise invalid_scope("scope must be a part of what was granted")
    return intersection(scope.split(" "))


def _required(form: Parameters, name: str) -> str:
    value = form.get(name)
    if value is None:
        raise invalid_request(f"{name} is missing")
    return value


def _token_response(tokens: Tokens, tenant: Tenant) -> Response:
    body = {
        "access_token": tokens.access,
        "token_type": "Bearer",
        "expires_in": math.ceil(tokens.expires_at - tenant.clock.now()),
        "refresh_token": tokens.refresh,
        "scope": " ".join(tokens.scopes),
    }
    return json_response(body, headers={"Cache-Control": "no-store"})


_GRANT_HANDLERS: Mapping[str, GrantHandler] = {"authorization_code": _exchange_code, "refresh_token": _refresh}
