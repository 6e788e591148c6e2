"""Grants of people to clients, with their codes and tokens: documents. The state has digests of codes and tokens only.

A grant is one consent; docs/service.md calls it a connection. It starts with a code; the code becomes a pair of tokens; a refresh
makes a new pair of an old one. Each step holds ``Tenant.signing_in``, so that concurrent requests are serialised.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import Any

from sandbox.errors import invalid_token, unauthorized
from sandbox.oauth.surfaces import REST_API
from sandbox.permissions import Caller
from sandbox.state.records import Document
from sandbox.tenants import Tenant

# Assumption: how long a code is valid
_CODE_SECONDS = 60


def digest(secret: str) -> str:
    """Returns the stored form of a secret or token. They are long and random, so one round of SHA-256 hides them."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def new_grant(tenant: Tenant, client_id: str | None, person: Document, scopes: Iterable[str], surface: str) -> Document:
    """Starts a grant; without a client for a token of the control endpoint."""
    grant = {
        "client_id": client_id,
        "person": person["id"],
        "scopes": list(scopes),
        "surface": surface,
        "created_at": tenant.clock.now(),
        "ended": False,
    }
    return tenant.records["grants"].create(grant)


def issue_code(tenant: Tenant, grant: Document, **details: str | None) -> str:
    """Returns a code of a grant; ``details`` are those of the authorization that its redemption has to meet."""
    code = secrets.token_urlsafe(32)
    expires_at = tenant.clock.now() + _CODE_SECONDS
    tenant.records["tokens"].create(
        {"code": digest(code), "grant": grant["id"], "expires_at": expires_at, "used": False, **details}
    )
    return code


def issue_pair(
    tenant: Tenant, grant: Document, scopes: Iterable[str], *, parent: int | None = None, renewable: bool = True
) -> dict[str, Any]:
    """Returns the response with a new access token and its refresh token; ``parent``: the pair that was refreshed."""
    access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32) if renewable else None
    scopes, seconds = list(scopes), tenant.settings.oauth.access_token_seconds
    pair = {
        "access": digest(access),
        "refresh": refresh and digest(refresh),
        "grant": grant["id"],
        "parent": parent,
        "scopes": scopes,
        "expires_at": tenant.clock.now() + seconds,
        "refreshed_at": None,
        "ended": False,
    }
    tenant.records["tokens"].create(pair)
    return {
        "access_token": access,
        "token_type": "Bearer",
        "expires_in": seconds,
        "refresh_token": refresh,
        "scope": " ".join(scopes),
    }


def find_token(tenant: Tenant, kind: str, token: str) -> tuple[Document, Document] | None:
    """Returns a code or a pair of tokens with its grant. ``kind``: ``code``, ``access`` or ``refresh``."""
    stored = tenant.records["tokens"].find(kind, digest(token))
    return (stored, tenant.records["grants"].get(stored["grant"])) if stored else None


def end_grant(tenant: Tenant, grant: Document) -> None:
    """Ends a grant with its codes and tokens."""
    tenant.records["grants"].change(grant["id"], {"ended": True})


def active_grants(tenant: Tenant) -> list[Document]:
    """Returns the grants that have not ended, oldest first."""
    return [grant for grant in tenant.records["grants"].all() if not grant["ended"]]


def check_bearer(tenant: Tenant, authorization: str | None) -> Caller:
    """Returns the caller of ``Authorization: Bearer TOKEN``, or raises 401.

    A token for another resource is 401 with ``audience mismatch`` (service.md#oauth). By refresh policy, the first use of a token
    ends the older ones.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise unauthorized(f'Bearer realm="{tenant.name}"')
    known = find_token(tenant, "access", token.strip())
    if known is None:
        raise invalid_token(tenant.name, "unknown token")
    pair, grant = known
    if pair["ended"] or grant["ended"]:
        raise invalid_token(tenant.name, "token revoked")
    if pair["expires_at"] <= tenant.clock.now():
        raise invalid_token(tenant.name, "token expired")
    if grant["surface"] != REST_API:
        raise invalid_token(tenant.name, "audience mismatch")
    if tenant.settings.oauth.refresh_policy == "until_used":
        _end_older(tenant, pair)
    return Caller(tenant.records["users"].get(grant["person"]), frozenset(pair["scopes"]))


def _end_older(tenant: Tenant, pair: Document) -> None:
    while pair["parent"] is not None:
        pair = tenant.records["tokens"].get(pair["parent"])
        if pair["ended"]:
            return
        tenant.records["tokens"].change(pair["id"], {"ended": True})
