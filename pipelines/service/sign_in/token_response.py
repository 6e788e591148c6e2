"""Reads the responses of the token endpoint and of the registration endpoint (service.md#tokens, service.md#clients)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx
import msgspec

from pipelines.errors import ProtocolError
from pipelines.service.http.failures import status_line
from pipelines.service.redaction import keep_secret, outside_text
from pipelines.service.sign_in.oauth_errors import (
    LostResponseError,
)
from pipelines.service.sign_in.stored_sign_in import Grant, Registration

DEFAULT_LIFETIME = 3600.0
"""Seconds that an access token lives if the response does not say (service.md#tokens)."""


def read_object(response: httpx.Response) -> dict[str, Any]:
    """Returns the JSON object of a response, whatever its content type. Raises `LostResponseError` if there is none."""
    try:
        content = msgspec.json.decode(response.content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        content = None
    if isinstance(content, dict):
        return content
    raise LostResponseError(
        f"POST {outside_text(response.request.url)} answered {status_line(response)} with a body that is no JSON object. Is base_url "
        "the library's address?"
    )


def read_registration(
    answer: Mapping[str, Any], redirect_uris: Sequence[str], scopes: Iterable[str], auth: str
) -> Registration:
    """Returns the registration that the server stored; it may differ from the request (RFC 7591, 3.2.1)."""
    client_id, secret = answer.get("client_id"), answer.get("client_secret")
    method, stored_uris = answer.get("token_endpoint_auth_method", auth), answer.get("redirect_uris")
    has_secret = isinstance(secret, str) or method == "none"
    if not isinstance(client_id, str) or not client_id or method not in _METHODS or not has_secret:
        raise ProtocolError(
            "POST /oauth/clients answered with a registration that cannot be used: client_id, client_secret or a documented method is "
            "missing. Is base_url the library's address?"
        )
    usable = [uri for uri in redirect_uris if isinstance(stored_uris, list) and uri in stored_uris]
    keep_secret(secret if isinstance(secret, str) else "")
    return Registration(
        client_id=client_id,
        client_secret=secret if method != "none" else None,
        auth=method,
        redirect_uris=tuple(usable or redirect_uris),
        asked=tuple(scopes),
    )


_METHODS = ("none", "client_secret_basic", "client_secret_post")
"""How a client authenticates (service.md#clients)."""


def read_grant(answer: Mapping[str, Any], obtained: float, before: Grant) -> Grant:
    """Returns a grant with the tokens of a response; `obtained` is the time of the response.

    A server may keep the old refresh token, and may leave out the scopes: then they are as `before` (RFC 6749, 5.1 and 6).
    """
    access, refresh = answer.get("access_token"), answer.get("refresh_token")
    keep_secret(*(token for token in (access, refresh) if isinstance(token, str)))
    kind = answer.get("token_type")
    kind = "bearer" if kind is None else kind
    if not isinstance(access, str) or not access or not access.isprintable() or not access.isascii():
        raise LostResponseError(
            "POST /oauth/token answered without a usable access_token. Is base_url the library's address?"
        )
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise ProtocolError(
            f"POST /oauth/token gave a token of the type {outside_text(kind)}; only bearer tokens are documented."
        )
    scopes = _scopes(answer.get("scope"))
    return replace(
        before,
        access_token=access,
        refresh_token=refresh if isinstance(refresh, str) and refresh else before.refresh_token,
        scopes=before.scopes if scopes is None else scopes,
        lifetime=_seconds(answer.get("expires_in")) or DEFAULT_LIFETIME,
        obtained=obtained,
    )


def _scopes(value: object) -> tuple[str, ...] | None:
    """Returns scopes from a text with blanks between them (RFC 6749, 3.3), or from the list that some servers send."""
    if isinstance(value, str):
        return tuple(value.split())
    if isinstance(value, list) and all(isinstance(scope, str) for scope in value):
        return tuple(value)
    return None


def _seconds(value: object) -> float | None:
    """Returns a lifetime from a number or from a number as text; None if it is no positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
