"""Explains refusals of the authorization server, with the remedy: RFC 6749 (4.1.2.1, 5.2), 7591 (3.2.2) and 8707."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import httpx

from pipelines.errors import (
    BookferryError,
    ConfigurationError,
    ProtocolError,
    RefusedError,
    SignInError,
    TemporaryError,
)
from pipelines.service.http.failures import describe_request, error_and_description, status_line
from pipelines.service.redaction import outside_text


class LostResponseError(TemporaryError):
    """The response was lost, so the request may have had its effect."""


class RenewalError(TemporaryError):
    """The sign-in cannot be renewed now. That says nothing of the request that needs it: nothing of it was sent."""


class GrantRefusedError(SignInError):
    """The server does not accept this code or refresh token any more."""


class ForeignResponseError(SignInError):
    """The response at the redirect address does not belong to our request."""


class ClientRefusedError(SignInError):
    """The server does not know this client, or not with this secret. `forgotten`: it says so in OAuth's own error codes."""

    def __init__(self, message: str, *, forgotten: bool) -> None:
        super().__init__(message)
        self.forgotten = forgotten


def token_refused(response: httpx.Response) -> BookferryError:
    """Returns the error for a response of the token endpoint that is neither a success nor a 5xx."""
    return _response_refused(_TOKEN, response)


def registration_refused(response: httpx.Response) -> BookferryError:
    """Returns the error for a refused registration."""
    return _response_refused(_REGISTRATION, response)


def authorization_refused(error: str, description: str) -> BookferryError:
    """Returns the error for an authorization response without a code."""
    return _refused(_AUTHORIZATION, {error}, f"The library did not sign you in{_quoted(error, description)}")


def _response_refused(refusals: _Refusals, response: httpx.Response) -> BookferryError:
    error, description = error_and_description(response)
    answered = f"{describe_request(response.request)} answered {status_line(response)}{_quoted(error, description)}"
    status = response.status_code
    moved, client = response.has_redirect_location and "redirect", response.is_client_error and "4xx"
    return _refused(refusals, {error, str(status), moved, client}, answered, status)


def _refused(refusals: _Refusals, signs: AbstractSet[Any], answered: str, status: int = 0) -> BookferryError:
    kind, remedy = next((kind, remedy) for of, kind, remedy in refusals if not of or not signs.isdisjoint(of.split()))
    message = answered + remedy
    refused: BookferryError = kind(message, status=status) if kind is RefusedError else kind(message)
    return refused


_Refusals = tuple[tuple[str, Any, str], ...]
"""OAuth codes and statuses (none: any), the error, and what follows the answer: its meaning and the remedy. The first that fits counts."""

_WRONG_TARGET = (
    "invalid_target",
    ConfigurationError,
    (
        ": the library does not know itself by the address in base_url. Write base_url exactly as the library's own pages do (host, port "
        "and path), without /api."
    ),
)
_NOWHERE = "redirect 404 405"
_LATER = "temporarily_unavailable server_error"
_ANY = ""
OWN_CLIENT = (
    "Or ask an administrator of the library for a client, and set client_id and client_secret_env in bookferry.toml."
)

_TOKEN: _Refusals = (
    (f"{_LATER} 408", LostResponseError, "."),
    ("invalid_grant invalid_token access_denied", GrantRefusedError, "."),
    ("invalid_client unauthorized_client", partial(ClientRefusedError, forgotten=True), "."),
    ("401", partial(ClientRefusedError, forgotten=False), "."),
    _WRONG_TARGET,
    (
        _NOWHERE,
        ConfigurationError,
        ": there is no authorization server. Is base_url the library's address, without /api?",
    ),
    (_ANY, SignInError, ": it does not give a token for such a request."),
)

_REGISTRATION: _Refusals = (
    (
        _NOWHERE,
        ConfigurationError,
        f": programs cannot register there. Is base_url the library's address, without /api? {OWN_CLIENT}",
    ),
    ("401 403", ConfigurationError, f": the library does not accept registrations of programs. {OWN_CLIENT}"),
    (
        "invalid_redirect_uri",
        ConfigurationError,
        f": it takes no redirect to this machine (http://127.0.0.1:PORT/callback). {OWN_CLIENT}",
    ),
    ("4xx", RefusedError, f": it does not take Bookferry's registration. {OWN_CLIENT}"),
    (_ANY, ProtocolError, ", which is no response to a registration. Is base_url the library's address?"),
)

_AUTHORIZATION: _Refusals = (
    (
        "access_denied",
        SignInError,
        ": the request was refused on the consent page. Run the same command again to allow it.",
    ),
    _WRONG_TARGET,
    (
        "invalid_scope",
        ConfigurationError,
        ": this client may not ask for these scopes. Ask for fewer, with --for backup.",
    ),
    (
        "unauthorized_client invalid_client unsupported_response_type",
        ConfigurationError,
        ": this client may not sign anybody in. Ask the administrator who issued it, or run the command again with --new-client.",
    ),
    (_LATER, TemporaryError, ". Run the same command again later."),
    (_ANY, SignInError, ". Run the same command again; if that does not help, ask the library's operators."),
)


def _quoted(error: str, description: str) -> str:
    words = ": ".join(outside_text(part) for part in (error, description) if part)
    return f" ({words})" if words else ""
