"""Refusals, each with the status and body of the document: ``{"error": {"code", "message"}}``.

The document names two codes, ``RecordNotFound`` and ``InsufficientScope``; the others are assumptions, gathered here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class ApiError(Exception):
    """An answer other than success. Rules raise it; the application renders it."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})

    def body(self) -> dict[str, dict[str, str]]:
        """The document's error body."""
        return {"error": {"code": self.code, "message": self.message}}


def record_not_found() -> ApiError:
    """404 as the document words it."""
    return ApiError(404, "RecordNotFound", "Requested record not found")


def route_not_found(path: str) -> ApiError:
    """404 for an address that no endpoint has."""
    return ApiError(404, "RouteNotFound", f"There is nothing at {path}")


def method_not_allowed(method: str, allowed: Iterable[str]) -> ApiError:
    """405, which by HTTP's own rule names what is allowed."""
    headers = {"Allow": ", ".join(sorted(allowed))}
    return ApiError(405, "MethodNotAllowed", f"{method} is not possible here", headers)


def unauthorized(challenge: str) -> ApiError:
    """401 with the challenge that tells how to sign in."""
    return ApiError(401, "Unauthorized", "Sign-in is missing or wrong", {"WWW-Authenticate": challenge})


def invalid_token(realm: str, description: str) -> ApiError:
    """401 for a bearer token that is missing, expired, unknown or meant for somebody else."""
    challenge = f'Bearer realm="{realm}", error="invalid_token", error_description="{description}"'
    return unauthorized(challenge)


def access_denied() -> ApiError:
    """403 for what the person's roles do not allow."""
    return ApiError(403, "AccessDenied", "The roles of this account do not allow this")


def insufficient_scope(scope: str) -> ApiError:
    """403 that names the scope the token lacks (RFC 6750, section 3.1)."""
    headers = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}
    return ApiError(403, "InsufficientScope", f"The token lacks the scope {scope}", headers)


def storage_not_found(file_id: str) -> ApiError:
    """404 for a file id under which nothing was uploaded. Assumption: the document gives neither status nor code."""
    return ApiError(404, "StorageNotFound", f"Storage object not found: cache/{file_id}")


def too_many_requests(retry_after: int) -> ApiError:
    """429 with the number of whole seconds after which one request would be accepted."""
    message = f"Too many requests, try again in {retry_after} seconds"
    return ApiError(429, "TooManyRequests", message, {"Retry-After": str(retry_after)})


def bad_request(message: str) -> ApiError:
    """400 for a body that cannot be read at all."""
    return ApiError(400, "BadRequest", message)


def unprocessable(message: str) -> ApiError:
    """422 for a body that can be read but not processed."""
    return ApiError(422, "UnprocessableEntity", message)


def internal_server_error() -> ApiError:
    """500; the traceback goes to the log, never into the answer."""
    return ApiError(500, "InternalServerError", "Internal server error")
