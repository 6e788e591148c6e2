"""Tokens: how they are made, and who is behind one that comes with a request."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from sandbox.callers import Caller
from sandbox.errors import invalid_token, unauthorized
from sandbox.oauth.refresh_policies import REFRESH_POLICIES, OldPair
from sandbox.oauth.surfaces import REST_API
from sandbox.state.accounts import User
from sandbox.state.grants import NewGrant, Tokens
from sandbox.tenants import Tenant


def check_bearer(tenant: Tenant, authorization: str | None) -> Caller:
    """The caller behind ``Authorization: Bearer TOKEN`` on this surface, or 401.

    The document: "every token is valid for exactly one target resource"; on another one 401 with `error="invalid_token"`
    and `error_description="audience mismatch"`. The first use of a token may end the ones before it, by refresh policy.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise unauthorized(f'Bearer realm="{tenant.name}"')
    now = tenant.clock.now()
    found = tenant.grants.access(token.strip())
    if found is None:
        raise invalid_token(tenant.name, "unknown token")
    if found.ended:
        raise invalid_token(tenant.name, "token revoked")
    if found.expires_at <= now:
        raise invalid_token(tenant.name, "token expired")
    if found.grant.surface != REST_API:
        raise invalid_token(tenant.name, "audience mismatch")
    policy = REFRESH_POLICIES[tenant.settings.oauth.refresh_policy]
    if policy.old_pair is OldPair.STAYS_UNTIL_NEW_IS_USED:
        tenant.grants.end_pairs_before(token.strip(), now)
    return Caller(found.grant.person, frozenset(found.scopes))


def mint(tenant: Tenant, scopes: Iterable[str], *, renewable: bool = True) -> Tokens:
    """A new access token with these scopes, and the refresh token that comes with it."""
    return Tokens(
        access=secrets.token_urlsafe(32),
        refresh=secrets.token_urlsafe(32) if renewable else None,
        scopes=tuple(scopes),
        expires_at=tenant.clock.now() + tenant.settings.oauth.access_token_seconds,
    )


def issue(tenant: Tenant, person: User, scopes: Iterable[str], surface: str = REST_API) -> str:
    """An access token without the way through OAuth, for tests and rehearsals."""
    tokens = mint(tenant, scopes, renewable=False)
    tenant.grants.grant_directly(NewGrant(None, person, tokens.scopes, surface), tokens, tenant.clock.now())
    return tokens.access
