"""Explains refusals of the authorization server, with the remedy: RFC 6749 (4.1.2.1, 5.2), 7591 (3.2.2) and 8707."""

from __future__ import annotations

from datetime import datetime, timedelta

import httpx
import msgspec

from pipelines.errors import (
    BookferryError,
    ConfigurationError,
    ProtocolError,
    RefusedError,
    SignInError,
    TemporaryError,
)
from pipelines.service.http.failures import describe_request, status_line
from pipelines.service.http.retry_after import retry_after
from pipelines.service.redaction import outside_text


class NotSentError(TemporaryError):
    """Nothing has left: the request may be repeated."""


class LostResponseError(TemporaryError):
    """The response was lost, so the request may have had its effect."""


class GrantRefusedError(SignInError):
    """The server does not accept this code or refresh token any more."""


class ForeignResponseError(SignInError):
    """The response at the redirect address does not belong to our request."""


class ClientRefusedError(SignInError):
    """The server does not know this client, or not with this secret. `forgotten`: it says so in OAuth's own error codes."""

    def __init__(self, message: str, *, forgotten: bool) -> None:
        super().__init__(message)
        self.forgotten = forgotten


class _Refusal(msgspec.Struct):
    """The error body of RFC 6749, 5.2, or of the API (service.md#errors)."""

    error: object = None
    error_description: object = None


def error_and_description(response: httpx.Response) -> tuple[str, str]:
    """Returns error code and description of a response as they came; empty if there are none."""
    try:
        refusal = _REFUSAL_DECODER.decode(response.content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "", ""
    if isinstance(refusal.error, dict):
        return str(refusal.error.get("code") or ""), str(refusal.error.get("message") or "")
    return str(refusal.error or ""), str(refusal.error_description or "")


def token_refused(response: httpx.Response) -> BookferryError:  # noqa: PLR0911  one for each remedy
    """Returns the error for a response of the token endpoint that is neither a success nor a 5xx."""
    error, description = error_and_description(response)
    answered = f"{describe_request(response.request)} answered {status_line(response)}{_quoted(error, description)}"
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        return TemporaryError(f"{answered}: too many requests. Nothing was lost: run the same command again later.")
    if error in ("temporarily_unavailable", "server_error") or response.status_code == httpx.codes.REQUEST_TIMEOUT:
        return LostResponseError(f"{answered}.")
    if error in ("invalid_grant", "invalid_token", "access_denied"):
        return GrantRefusedError(f"{answered}.")
    if error in ("invalid_client", "unauthorized_client") or response.status_code == httpx.codes.UNAUTHORIZED:
        return ClientRefusedError(f"{answered}.", forgotten=error in ("invalid_client", "unauthorized_client"))
    if error == "invalid_target":
        return _wrong_target(answered)
    if response.has_redirect_location or response.status_code in (
        httpx.codes.NOT_FOUND,
        httpx.codes.METHOD_NOT_ALLOWED,
    ):
        return ConfigurationError(
            f"{answered}: there is no authorization server. Is base_url the library's address, without /api?"
        )
    return SignInError(f"{answered}: it does not give a token for such a request.")


def registration_refused(response: httpx.Response, now: datetime) -> BookferryError:
    """Returns the error for a refused registration."""
    error, description = error_and_description(response)
    answered = f"{describe_request(response.request)} answered {status_line(response)}{_quoted(error, description)}"
    own = "Or ask an administrator of the library for a client, and set client_id and client_secret_env in bookferry.toml."
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        asked = retry_after(response, now)
        when = "tomorrow"
        if asked is not None and asked < timedelta(days=366).total_seconds():
            when = f"after {now + timedelta(seconds=asked):%d %B %Y %H:%M} UTC"
        return TemporaryError(
            f"{answered}: the library takes no more registrations today. Run the same command again {when}. {own}"
        )
    if response.has_redirect_location or response.status_code in (
        httpx.codes.NOT_FOUND,
        httpx.codes.METHOD_NOT_ALLOWED,
    ):
        return ConfigurationError(
            f"{answered}: programs cannot register there. Is base_url the library's address, without /api? {own}"
        )
    if response.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return ConfigurationError(f"{answered}: the library does not accept registrations of programs. {own}")
    if error == "invalid_redirect_uri":
        return ConfigurationError(
            f"{answered}: it takes no redirect to this machine (http://127.0.0.1:PORT/callback). {own}"
        )
    if response.is_client_error:
        return RefusedError(
            f"{answered}: it does not take Bookferry's registration. {own}", status=response.status_code
        )
    return ProtocolError(f"{answered}, which is no response to a registration. Is base_url the library's address?")


def authorization_refused(error: str, description: str) -> BookferryError:
    """Returns the error for an authorization response without a code."""
    answered = f"The library did not sign you in{_quoted(error, description)}"
    if error == "access_denied":
        return SignInError(
            f"{answered}: the request was refused on the consent page. Run the same command again to allow it."
        )
    if error == "invalid_target":
        return _wrong_target(answered)
    if error == "invalid_scope":
        return ConfigurationError(
            f"{answered}: this client may not ask for these scopes. Ask for fewer, with --for backup."
        )
    if error in ("unauthorized_client", "invalid_client", "unsupported_response_type"):
        return ConfigurationError(
            f"{answered}: this client may not sign anybody in. Ask the administrator who issued it, or run the command again with "
            "--new-client."
        )
    if error in ("temporarily_unavailable", "server_error"):
        return TemporaryError(f"{answered}. Run the same command again later.")
    return SignInError(f"{answered}. Run the same command again; if that does not help, ask the library's operators.")


def _wrong_target(answered: str) -> ConfigurationError:
    return ConfigurationError(
        f"{answered}: the library does not know itself by the address in base_url. Write base_url exactly as the library's own pages do "
        "(host, port and path), without /api."
    )


def _quoted(error: str, description: str) -> str:
    words = ": ".join(outside_text(part) for part in (error, description) if part)
    return f" ({words})" if words else ""


_REFUSAL_DECODER = msgspec.json.Decoder(_Refusal)
