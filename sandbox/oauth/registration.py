"""``POST /oauth/clients``: a client registers itself (RFC 7591; service.md#clients).

Assumptions: a day is any 24 hours, and only accepted registrations count; unknown metadata are ignored, as in RFC 7591; known
metadata with unsupported values are refused.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from werkzeug.wrappers import Request, Response

from sandbox.errors import ApiError
from sandbox.oauth import redirect_uris
from sandbox.oauth.errors import OAuthError
from sandbox.oauth.scopes import READ_SCOPES, intersection, is_valid_scope
from sandbox.permissions import SCOPES
from sandbox.responses import json_response
from sandbox.state.clients import Client
from sandbox.tenants import Tenant

DAY_SECONDS = 86400.0
AUTH_METHODS = ("client_secret_basic", "client_secret_post", "none")
GRANT_TYPES = ("authorization_code", "refresh_token")
RESPONSE_TYPES = ("code",)
_NAME_LENGTH = 200
_ADDRESSES = 20
_ADDRESS_LENGTH = 2000
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which cannot be encoded


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a client, with defaults."""

    name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]
    auth_method: str
    scopes: tuple[str, ...]


def register(request: Request, tenant: Tenant) -> Response:
    """Answers a registration with 201, everything that was stored, and the secret, which is shown here only."""
    client = new_client(parse_metadata(_parsed_json(request.get_data())), tenant.clock.now())
    secret = None if client.is_public else new_secret()
    at_most, now = tenant.settings.oauth.registrations_per_day, client.created_at
    oldest = tenant.clients.register(client, secret, at_most=at_most, since=now - DAY_SECONDS)
    if oldest is not None:
        wait = oldest + DAY_SECONDS - now if tenant.settings.oauth.registration_wait == "sent" else None
        raise _too_many(at_most, wait)
    return json_response(client_record(client, secret), status=201, headers={"Cache-Control": "no-store"})


def new_client(
    metadata: Metadata, now: float, *, issued: bool = False, pkce: bool = True, surface: str | None = None
) -> Client:
    """Returns a client with these metadata and a new id."""
    return Client(
        id=secrets.token_hex(16),
        name=metadata.name,
        auth_method=metadata.auth_method,
        redirect_uris=metadata.redirect_uris,
        grant_types=metadata.grant_types,
        response_types=metadata.response_types,
        scopes=metadata.scopes,
        issued=issued,
        pkce=pkce,
        surface=surface,
        created_at=now,
    )


def new_secret() -> str:
    """Returns 256 random bits as text."""
    return secrets.token_urlsafe(32)


def client_record(client: Client, secret: str | None = None) -> dict[str, Any]:
    """Returns the client as in RFC 7591; the secret only if it is new."""
    credentials = {} if secret is None else {"client_secret": secret, "client_secret_expires_at": 0}
    return {
        "client_id": client.id,
        **credentials,
        "client_id_issued_at": int(client.created_at),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": client.grant_types,
        "response_types": client.response_types,
        "token_endpoint_auth_method": client.auth_method,
        "scope": " ".join(client.scopes),
    }


def parse_metadata(body: object) -> Metadata:
    """Returns the metadata of a registration, or raises the error of RFC 7591."""
    if not isinstance(body, dict):
        raise _invalid("The body must be a JSON object")
    return Metadata(
        name=_name(body),
        redirect_uris=_redirect_uris(body),
        grant_types=_grant_types(body),
        response_types=_response_types(body),
        auth_method=_auth_method(body),
        scopes=_scopes(body),
    )


def _parsed_json(body: bytes) -> object:
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        raise _invalid("The body is not JSON") from None
    return parsed


def _name(body: Mapping[str, Any]) -> str:
    name = body.get("client_name")
    if name is None:
        return ""
    if not isinstance(name, str) or len(name) > _NAME_LENGTH or _SURROGATE.search(name):
        raise _invalid(f"client_name must be a text of at most {_NAME_LENGTH} characters")
    return name


def _redirect_uris(body: Mapping[str, Any]) -> tuple[str, ...]:
    addresses = body.get("redirect_uris")
    if not _is_texts(addresses) or not 1 <= len(addresses) <= _ADDRESSES:
        raise _invalid_address(f"redirect_uris must be a list of 1 to {_ADDRESSES} addresses")
    for position, address in enumerate(addresses):
        if len(address) > _ADDRESS_LENGTH:
            raise _invalid_address(f"redirect_uris[{position}] must have at most {_ADDRESS_LENGTH} characters")
        if problem := redirect_uris.redirect_uri_problem(address):
            raise _invalid_address(f"redirect_uris[{position}] {problem}")
    return tuple(addresses)


def _grant_types(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the grant types; the default is both, because an access token comes with a refresh token (service.md#tokens)."""
    types = body.get("grant_types")
    if types is None:
        return GRANT_TYPES
    if not _is_texts(types) or not set(types) <= set(GRANT_TYPES) or "authorization_code" not in types:
        raise _invalid("grant_types must have authorization_code, and may have refresh_token")
    return tuple(each for each in GRANT_TYPES if each in types)


def _response_types(body: Mapping[str, Any]) -> tuple[str, ...]:
    types = body.get("response_types")
    if types is not None and (not _is_texts(types) or set(types) != set(RESPONSE_TYPES)):
        raise _invalid("response_types must be code and nothing else")
    return RESPONSE_TYPES


def _auth_method(body: Mapping[str, Any]) -> str:
    method = body.get("token_endpoint_auth_method")
    if method is None:
        return AUTH_METHODS[0]
    if method not in AUTH_METHODS:
        raise _invalid(f"token_endpoint_auth_method must be one of {', '.join(AUTH_METHODS)}")
    return str(method)


def _scopes(body: Mapping[str, Any]) -> tuple[str, ...]:
    scope = body.get("scope")
    if scope is None:
        return READ_SCOPES
    if not isinstance(scope, str) or not is_valid_scope(scope):
        raise _invalid("scope must be names separated by one space each")
    if unknown := [name for name in scope.split(" ") if name not in SCOPES]:
        raise _invalid(f"scope: {unknown[0]} is unknown; known are {', '.join(SCOPES)}")
    return intersection(scope.split(" "))


def _is_texts(value: object) -> TypeGuard[Sequence[str]]:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)


def _invalid(description: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", description)


def _invalid_address(description: str) -> OAuthError:
    return OAuthError("invalid_redirect_uri", description)


def _too_many(at_most: int, wait: float | None) -> ApiError:
    """Returns 429 with the error body of the API; ``Retry-After`` has the seconds to wait, if they are given."""
    message = f"At most {at_most} clients may register in a day; store the client_id and reuse it"
    return ApiError(
        429, "TooManyRequests", message, {} if wait is None else {"Retry-After": str(max(1, math.ceil(wait)))}
    )
