"""Authenticates a client at the token endpoint, in its registered way only."""

from __future__ import annotations

import hmac
from urllib.parse import unquote_plus

from werkzeug.wrappers import Request

from sandbox.oauth.errors import invalid_client, invalid_request
from sandbox.oauth.grants import digest
from sandbox.oauth.parameters import Parameters
from sandbox.oauth.registration import find_client
from sandbox.state.records import Document
from sandbox.tenants import Tenant


def authenticate(request: Request, form: Parameters, tenant: Tenant) -> Document:
    """Returns the client of a token request, or raises ``invalid_client``."""
    method, client_id, secret = _credentials(request, form)
    client = find_client(tenant, client_id)
    if client is None or client["token_endpoint_auth_method"] != method:
        raise invalid_client(tenant.name)
    if secret is not None and not hmac.compare_digest(client["secret"], digest(secret)):
        raise invalid_client(tenant.name)
    return client


def _credentials(request: Request, form: Parameters) -> tuple[str | None, str | None, str | None]:
    """Returns method, id and secret; an unknown method is None."""
    if "Authorization" not in request.headers:
        secret = form.get("client_secret")
        return ("none" if secret is None else "client_secret_post"), form.get("client_id"), secret
    if form.get("client_secret") is not None:
        raise invalid_request("A client must not authenticate in two ways (RFC 6749, section 2.3)")
    basic = request.authorization
    if basic is None or basic.type != "basic" or basic.username is None or basic.password is None:
        return None, None, None
    client_id = unquote_plus(basic.username)
    if form.get("client_id") not in {None, client_id}:
        raise invalid_request("client_id is not the one that authenticates")
    return "client_secret_basic", client_id, unquote_plus(basic.password)
