"""Management of issued clients, grants and tokens at the control endpoint. The service's own endpoints are not shown.

service.md#clients has the facts: PKCE on by default, the surface chosen at creation, a secret that is shown once, and a revocation that
ends all connections. Secrets are not rotated here.

| POST | /_control/tokens | an access token without OAuth |
| POST | /_control/oauth/clients | issue a client with its metadata, `pkce` and `surface` |
| POST | /_control/oauth/clients/revoke | `client_id`, of any client |
| GET | /_control/oauth/grants | the active grants |
| POST | /_control/oauth/grants/end | end the grants of `client_id`, of `person` (an e-mail address), or of both |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.errors import record_not_found, unprocessable
from sandbox.oauth import tokens
from sandbox.oauth.errors import OAuthError
from sandbox.oauth.registration import client_record, new_client, new_secret
from sandbox.oauth.scopes import with_asset_scopes
from sandbox.oauth.surfaces import MCP_SERVER, REST_API
from sandbox.permissions import SCOPES
from sandbox.state.grants import Grant
from sandbox.tenants import Tenant
from sandbox.validation import one_of, with_changes


@dataclass(frozen=True, slots=True)
class _IssueOptions:
    """What an administrator chooses beside the metadata."""

    pkce: bool = True
    surface: str = one_of(REST_API, MCP_SERVER)


@dataclass(frozen=True, slots=True)
class _Selection:
    """A client, or a person, or both."""

    client_id: str = ""
    person: str = ""


@dataclass(frozen=True, slots=True)
class _TokenOptions:
    """Options of a token; ``before_assets``: as if it were issued before the asset scopes existed."""

    person: str = ""
    surface: str = one_of(REST_API, MCP_SERVER)
    before_assets: bool = False


def issue_token(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Returns an access token without OAuth: ``person`` is an e-mail address, ``scopes`` a list (default: all)."""
    scopes = body.get("scopes", list(SCOPES))
    if not isinstance(scopes, list) or any(scope not in SCOPES for scope in scopes):
        raise unprocessable(f"scopes: must be a list of {', '.join(SCOPES)}")
    options = with_changes(
        _TokenOptions(person=tenant.account.email), {key: body[key] for key in body if key != "scopes"}
    )
    person = tenant.accounts.with_email(options.person)
    if person is None:
        raise unprocessable("person: must be the e-mail address of a user")
    if options.before_assets:
        scopes = with_asset_scopes(scopes)
    return {"access_token": tokens.issue(tenant, person, scopes, options.surface)}


def issue_client(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Issues a client; its secret is shown here only."""
    options = with_changes(_IssueOptions(), {name: body[name] for name in ("pkce", "surface") if name in body})
    now = tenant.clock.now()
    try:
        client = new_client(dict(body), now, issued=True, pkce=options.pkce, surface=options.surface)
    except OAuthError as refusal:
        raise unprocessable(refusal.description) from None
    if client.is_public:
        raise unprocessable("token_endpoint_auth_method: a client issued by an administrator is always confidential")
    secret = new_secret()
    tenant.clients.add(client, secret)
    return {**client_record(client, secret), "pkce": client.pkce, "surface": client.surface}


def revoke(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Ends a client and all its connections at once."""
    options = with_changes(_Selection(), {"client_id": body.get("client_id", "")})
    if tenant.clients.find(options.client_id) is None:
        raise record_not_found()
    tenant.clients.revoke(options.client_id, tenant.clock.now())
    return {"client_id": options.client_id, "revoked": True}


def list_grants(tenant: Tenant, body: Mapping[str, Any]) -> object:  # noqa: ARG001  # one signature for all
    """Returns the active grants."""
    return [
        {
            "client_id": grant.client_id,
            "person": grant.person.email,
            "scopes": grant.scopes,
            "surface": grant.surface,
            "created_at": grant.created_at,
        }
        for grant in tenant.grants.active()
    ]


def end_grants(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Ends the grants of a client, of a person, or all."""
    options = with_changes(_Selection(), body)
    keys = [grant.key for grant in tenant.grants.active() if _matches(grant, options)]
    tenant.grants.end(keys, tenant.clock.now())
    return {"ended": len(keys)}


def _matches(grant: Grant, options: _Selection) -> bool:
    return options.client_id in {"", grant.client_id} and options.person.lower() in {"", grant.person.email.lower()}


Administration = Callable[[Tenant, Mapping[str, Any]], object]

ACTIONS: Mapping[tuple[str, str], Administration] = {
    ("POST", "/_control/tokens"): issue_token,
    ("POST", "/_control/oauth/clients"): issue_client,
    ("POST", "/_control/oauth/clients/revoke"): revoke,
    ("GET", "/_control/oauth/grants"): list_grants,
    ("POST", "/_control/oauth/grants/end"): end_grants,
}
