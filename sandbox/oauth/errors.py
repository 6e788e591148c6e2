"""Errors of the authorization server: ``{"error", "error_description"}``, as in RFC 6749 and RFC 7591."""

from __future__ import annotations

from collections.abc import Mapping

from werkzeug.wrappers import Response

from sandbox.errors import ApiError
from sandbox.responses import json_response


class OAuthError(ApiError):
    """An error. The endpoint sends it as JSON or in a redirect."""

    def __init__(
        self, error: str, description: str, *, status: int = 400, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, error, description, {"Cache-Control": "no-store", **(headers or {})})

    def body(self) -> dict[str, str]:
        """Returns the members of the error."""
        return {"error": self.code, "error_description": self.message}

    def response(self) -> Response:
        """Returns the HTTP response."""
        return json_response(self.body(), status=self.status, headers=self.headers)


class UntrustedRequest(Exception):  # noqa: N818  # a page for the person, not an error of the program
    """An authorization request with an unknown client or address: nobody may be redirected."""


def invalid_request(description: str) -> OAuthError:
    """Returns the error for a parameter that is missing, repeated or malformed."""
    return OAuthError("invalid_request", description)


def invalid_grant(description: str) -> OAuthError:
    """Returns the error for a code or refresh token that is not valid for this client."""
    return OAuthError("invalid_grant", description)


def invalid_scope(description: str) -> OAuthError:
    """Returns the error for scopes of which none can be granted."""
    return OAuthError("invalid_scope", description)


def invalid_target(description: str) -> OAuthError:
    """Returns the error for a missing (service.md#oauth) or wrong (RFC 8707) ``resource``."""
    return OAuthError("invalid_target", description)


def invalid_client(realm: str) -> OAuthError:
    """Returns 401. The text is the same in all cases, so that nobody learns which clients exist."""
    return OAuthError(
        "invalid_client",
        "The client is unknown, or did not authenticate in the way it is registered for",
        status=401,
        headers={"WWW-Authenticate": f'Basic realm="{realm}", charset="UTF-8"'},
    )
