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
from sandbox.oauth.errors import OAuthError
from sandbox.oauth.grants import active_grants, end_grant, issue_pair, new_grant
from sandbox.oauth.registration import PUBLIC, add_client, find_client, new_client
from sandbox.oauth.scopes import with_asset_scopes
from sandbox.oauth.surfaces import MCP_SERVER, REST_API
from sandbox.permissions import SCOPES
from sandbox.state.records import Document
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
    person = tenant.records["users"].find("email", options.person)
    if person is None:
        raise unprocessable("person: must be the e-mail address of a user")
    if options.before_assets:
        scopes = with_asset_scopes(scopes)
    grant = new_grant(tenant, None, person, scopes, options.surface)
    return {"access_token": issue_pair(tenant, grant, scopes, renewable=False)["access_token"]}


def issue_client(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Issues a client; its secret is shown here only."""
    options = with_changes(_IssueOptions(), {name: body[name] for name in ("pkce", "surface") if name in body})
    try:
        client = new_client(dict(body), issued=True, pkce=options.pkce, surface=options.surface)
    except OAuthError as refusal:
        raise unprocessable(refusal.description) from None
    if client["token_endpoint_auth_method"] == PUBLIC:
        raise unprocessable("token_endpoint_auth_method: a client issued by an administrator is always confidential")
    return {**add_client(tenant, client), "pkce": client["pkce"], "surface": client["surface"]}


def revoke(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Ends a client and all its connections at once."""
    options = with_changes(_Selection(), {"client_id": body.get("client_id", "")})
    client = find_client(tenant, options.client_id)
    if client is None:
        raise record_not_found()
    tenant.records["clients"].remove(client["id"])
    end_grants(tenant, {"client_id": options.client_id})
    return {"client_id": options.client_id, "revoked": True}


def list_grants(tenant: Tenant, body: Mapping[str, Any]) -> object:  # noqa: ARG001  # one signature for all
    """Returns the active grants, with the e-mail address of the person."""
    names = ("client_id", "person", "scopes", "surface", "created_at")
    return [
        {**{name: grant[name] for name in names}, "person": _email(tenant, grant)} for grant in active_grants(tenant)
    ]


def end_grants(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Ends the grants of a client, of a person, or all."""
    options = with_changes(_Selection(), body)
    ended = [
        grant
        for grant in active_grants(tenant)
        if options.client_id in {"", grant["client_id"]}
        and options.person.lower() in {"", _email(tenant, grant).lower()}
    ]
    for grant in ended:
        end_grant(tenant, grant)
    return {"ended": len(ended)}


def _email(tenant: Tenant, grant: Document) -> str:
    return str(tenant.records["users"].get(grant["person"])["email"])


Administration = Callable[[Tenant, Mapping[str, Any]], object]

ACTIONS: Mapping[tuple[str, str], Administration] = {
    ("POST", "/_control/tokens"): issue_token,
    ("POST", "/_control/oauth/clients"): issue_client,
    ("POST", "/_control/oauth/clients/revoke"): revoke,
    ("GET", "/_control/oauth/grants"): list_grants,
    ("POST", "/_control/oauth/grants/end"): end_grants,
}
