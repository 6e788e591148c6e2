"""How the authorization server says no: ``{"error", "error_description"}``, as RFC 6749 and RFC 7591 have it.

The error body of the API belongs to the API; here OAuth's own form is what every OAuth client reads.
"""

from __future__ import annotations

from collections.abc import Mapping


class OAuthError(Exception):
    """A refusal. Rules raise it; whether it becomes JSON or a trip back to the client is the endpoint's business."""

    def __init__(
        self, error: str, description: str, *, status: int = 400, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.status = status
        self.headers = dict(headers or {})

    def body(self) -> dict[str, str]:
        """The members that OAuth names."""
        return {"error": self.error, "error_description": self.description}


class UntrustedRequest(Exception):  # noqa: N818  # a page for the person, not an error of the program
    """An authorization request whose client or address is not known: nobody may be sent anywhere."""


def invalid_request(description: str) -> OAuthError:
    """Something is missing, there twice, or malformed."""
    return OAuthError("invalid_request", description)


def invalid_grant(description: str) -> OAuthError:
    """The code or refresh token is not good, or not for this client."""
    return OAuthError("invalid_grant", description)


def invalid_scope(description: str) -> OAuthError:
    """Nothing that was asked for can be given."""
    return OAuthError("invalid_scope", description)


def invalid_target(description: str) -> OAuthError:
    """The document's answer to a missing ``resource``, and RFC 8707's to a wrong one."""
    return OAuthError("invalid_target", description)


def invalid_client(realm: str) -> OAuthError:
    """401: who the client is was not shown, or not in the registered way. One text for all, so that nothing can be guessed."""
    return OAuthError(
        "invalid_client",
        "The client is unknown, or did not authenticate in the way it is registered for",
        status=401,
        headers={"WWW-Authenticate": f'Basic realm="{realm}", charset="UTF-8"'},
    )
