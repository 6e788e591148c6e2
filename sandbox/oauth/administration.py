"""Management of issued clients, grants and tokens at the control endpoint. The service's own endpoints are not shown.

service.md#clients has the facts: at most two secrets, a changeover window, PKCE on by default, the surface chosen at creation.
Assumptions: a rotation that would make a third secret is refused, so that it interrupts nobody; a rotation without a window ends
every older secret and always works.

| POST | /_control/tokens | an access token without OAuth |
| GET, POST | /_control/oauth/clients | list the issued clients; issue one with its metadata, `pkce` and `surface` |
| POST | /_control/oauth/clients/rotate | `client_id`, `changeover_seconds`: a new secret |
| POST | /_control/oauth/clients/revoke | `client_id`, of any client |
| GET | /_control/oauth/grants | the active grants |
| POST | /_control/oauth/grants/end | end the grants of `client_id`, of `person` (an e-mail address), or of both |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.errors import ApiError, record_not_found, unprocessable
from sandbox.oauth import tokens
from sandbox.oauth.errors import OAuthError
from sandbox.oauth.registration import client_record, new_client, new_secret
from sandbox.oauth.scopes import with_asset_scopes
from sandbox.oauth.surfaces import MCP_SERVER, REST_API
from sandbox.permissions import SCOPES
from sandbox.state.clients import Client, TooManySecrets
from sandbox.state.grants import Grant
from sandbox.tenants import Tenant
from sandbox.validation import at_least, one_of, with_changes

MAX_SECRETS = 2


@dataclass(frozen=True, slots=True)
class _IssueOptions:
    """What an administrator chooses beside the metadata."""

    pkce: bool = True
    surface: str = one_of(REST_API, MCP_SERVER)


@dataclass(frozen=True, slots=True)
class _Selection:
    """A client, and what is done with it; ``person``: whose grants end."""

    client_id: str = ""
    changeover_seconds: float = at_least(0, 86400.0)
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


def list_clients(tenant: Tenant, body: Mapping[str, Any]) -> object:  # noqa: ARG001  # one signature for all
    """Returns the issued clients without their secrets."""
    return [_issued_client_record(tenant, client) for client in tenant.clients.issued()]


def issue_client(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Issues a client; its secret is shown here only."""
    if tenant.settings.oauth.issued_clients == "closed":
        raise ApiError(403, "Forbidden", "The plan of this library has no clients issued by administrators")
    options = with_changes(_IssueOptions(), {name: body[name] for name in ("pkce", "surface") if name in body})
    now = tenant.clock.now()
    try:
        client = new_client(dict(body), now, issued=True, pkce=options.pkce, surface=options.surface)
    except OAuthError as refusal:
        raise unprocessable(refusal.description) from None
    if client.is_public:
        raise unprocessable("token_endpoint_auth_method: a client issued by an administrator is always confidential")
    secret = new_secret()
    tenant.clients.issue(client, secret)
    return {**client_record(client, secret), "pkce": client.pkce, "surface": client.surface}


def rotate(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Issues a new secret; the one before it stays valid for the changeover window."""
    options, now = with_changes(_Selection(), body), tenant.clock.now()
    client = _issued(tenant, options.client_id)
    secret = new_secret()
    try:
        tenant.clients.rotate(
            client.id, secret, now=now, old_until=now + options.changeover_seconds, at_most=MAX_SECRETS
        )
    except TooManySecrets:
        message = f"{MAX_SECRETS} secrets are valid; wait until the older one ends, or rotate without a window"
        raise ApiError(409, "TooManySecrets", message) from None
    return {"client_id": client.id, "client_secret": secret, **_issued_client_record(tenant, client)}


def revoke(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Ends a client and all its connections at once."""
    options = with_changes(_Selection(), {"client_id": body.get("client_id", "")})
    if tenant.clients.find(options.client_id) is None:
        raise record_not_found()
    tenant.clients.revoke(options.client_id, tenant.clock.now())
    return {"client_id": options.client_id, "revoked": True}


def list_grants(tenant: Tenant, body: Mapping[str, Any]) -> object:  # noqa: ARG001
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


def _issued(tenant: Tenant, client_id: str) -> Client:
    client = tenant.clients.find(client_id)
    if client is None or not client.issued:
        raise record_not_found()
    return client


def _issued_client_record(tenant: Tenant, client: Client) -> dict[str, Any]:
    valid = tenant.clients.secrets(client.id, tenant.clock.now())
    return {
        **client_record(client),
        "pkce": client.pkce,
        "surface": client.surface,
        "revoked_at": client.revoked_at,
        "secrets": [{"created_at": each.created_at, "expires_at": each.expires_at} for each in valid],
    }


Administration = Callable[[Tenant, Mapping[str, Any]], object]

ACTIONS: Mapping[tuple[str, str], Administration] = {
    ("POST", "/_control/tokens"): issue_token,
    ("GET", "/_control/oauth/clients"): list_clients,
    ("POST", "/_control/oauth/clients"): issue_client,
    ("POST", "/_control/oauth/clients/rotate"): rotate,
    ("POST", "/_control/oauth/clients/revoke"): revoke,
    ("GET", "/_control/oauth/grants"): list_grants,
    ("POST", "/_control/oauth/grants/end"): end_grants,
}
