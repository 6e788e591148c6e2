"""Issues tokens, and finds the caller of a token."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from sandbox.errors import invalid_token, unauthorized
from sandbox.oauth.refresh_policies import REFRESH_POLICIES, OldPair
from sandbox.oauth.surfaces import REST_API
from sandbox.permissions import Caller
from sandbox.state.accounts import User
from sandbox.state.grants import NewGrant, Tokens
from sandbox.tenants import Tenant


def check_bearer(tenant: Tenant, authorization: str | None) -> Caller:
    """Returns the caller of ``Authorization: Bearer TOKEN``, or raises 401.

    A token for another resource is 401 with ``audience mismatch`` (service.md#oauth). By refresh policy, the first use of a token
    ends the older ones.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise unauthorized(f'Bearer realm="{tenant.name}"')
    now = tenant.clock.now()
    access_token = tenant.grants.access(token.strip())
    if access_token is None:
        raise invalid_token(tenant.name, "unknown token")
    if access_token.ended:
        raise invalid_token(tenant.name, "token revoked")
    if access_token.expires_at <= now:
        raise invalid_token(tenant.name, "token expired")
    if access_token.grant.surface != REST_API:
        raise invalid_token(tenant.name, "audience mismatch")
    policy = REFRESH_POLICIES[tenant.settings.oauth.refresh_policy]
    if policy.old_pair is OldPair.STAYS_UNTIL_NEW_IS_USED:
        tenant.grants.end_pairs_before(token.strip(), now)
    return Caller(access_token.grant.person, frozenset(access_token.scopes))


def mint(tenant: Tenant, scopes: Iterable[str], *, renewable: bool = True) -> Tokens:
    """Returns a new access token with these scopes, and its refresh token."""
    return Tokens(
        access=secrets.token_urlsafe(32),
        refresh=secrets.token_urlsafe(32) if renewable else None,
        scopes=tuple(scopes),
        expires_at=tenant.clock.now() + tenant.settings.oauth.access_token_seconds,
    )


def issue(tenant: Tenant, person: User, scopes: Iterable[str], surface: str = REST_API) -> str:
    """Returns an access token without OAuth, for tests and rehearsals."""
    tokens = mint(tenant, scopes, renewable=False)
    tenant.grants.grant_directly(NewGrant(None, person, tokens.scopes, surface), tokens, tenant.clock.now())
    return tokens.access
