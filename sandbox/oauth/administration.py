"""Management of issued clients, grants and tokens at the control endpoint. The service's own endpoints are not shown.

service.md#clients has the facts: a secret that is shown once, and a revocation that ends all connections. Secrets are not rotated here,
each client uses PKCE, and its tokens are for the REST API.

| POST | /_control/tokens | an access token without OAuth |
| POST | /_control/oauth/clients | issue a client with its metadata |
| POST | /_control/oauth/clients/revoke | `client_id`, of any client |
| POST | /_control/oauth/grants/end | end the grants of `client_id`, of `person` (an e-mail address), or of both |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sandbox.errors import record_not_found, unprocessable
from sandbox.oauth.errors import OAuthError
from sandbox.oauth.grants import active_grants, end_grant, issue_pair, new_grant
from sandbox.oauth.registration import PUBLIC, add_client, find_client, new_client
from sandbox.oauth.scopes import with_asset_scopes
from sandbox.oauth.surfaces import REST_API
from sandbox.permissions import SCOPES
from sandbox.state.records import Document
from sandbox.tenants import Tenant


def issue_token(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Returns an access token without OAuth.

    ``person`` is an e-mail address, ``scopes`` a list (default: all). ``before_assets``: as if it were older than the asset scopes.
    """
    scopes = body.get("scopes", list(SCOPES))
    if not isinstance(scopes, list) or any(scope not in SCOPES for scope in scopes):
        raise unprocessable(f"scopes: must be a list of {', '.join(SCOPES)}")
    person = tenant.records["users"].find("email", body.get("person", tenant.account.email))
    if person is None:
        raise unprocessable("person: must be the e-mail address of a user")
    if body.get("before_assets"):
        scopes = with_asset_scopes(scopes)
    grant = new_grant(tenant, None, person, scopes, REST_API)
    return {"access_token": issue_pair(tenant, grant, scopes, renewable=False)["access_token"]}


def issue_client(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Issues a client; its secret is shown here only."""
    try:
        client = new_client(dict(body), issued=True)
    except OAuthError as refusal:
        raise unprocessable(refusal.message) from None
    if client["token_endpoint_auth_method"] == PUBLIC:
        raise unprocessable("token_endpoint_auth_method: a client issued by an administrator is always confidential")
    return add_client(tenant, client)


def revoke(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Ends a client and all its connections at once."""
    client = find_client(tenant, body.get("client_id"))
    if client is None:
        raise record_not_found()
    tenant.records["clients"].remove(client["id"])
    end_grants(tenant, {"client_id": client["client_id"]})
    return {"client_id": client["client_id"], "revoked": True}


def end_grants(tenant: Tenant, body: Mapping[str, Any]) -> object:
    """Ends the grants of a client, of a person, or all."""
    client_id, person = body.get("client_id", ""), body.get("person", "").lower()
    ended = [
        grant
        for grant in active_grants(tenant)
        if client_id in {"", grant["client_id"]} and person in {"", _email(tenant, grant).lower()}
    ]
    for grant in ended:
        end_grant(tenant, grant)
    return {"ended": len(ended)}


def _email(tenant: Tenant, grant: Document) -> str:
    return str(tenant.records["users"].get(grant["person"])["email"])


ACTIONS: Mapping[tuple[str, str], Callable[[Tenant, dict[str, Any]], object]] = {
    ("POST", "/_control/tokens"): issue_token,
    ("POST", "/_control/oauth/clients"): issue_client,
    ("POST", "/_control/oauth/clients/revoke"): revoke,
    ("POST", "/_control/oauth/grants/end"): end_grants,
}
