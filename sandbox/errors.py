"""API errors with their status and the body of service.md#errors: ``{"error": {"code", "message"}}``.

``RecordNotFound`` and ``InsufficientScope`` are known codes; the others are assumptions (service.md#errors).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from werkzeug.wrappers import Response

from sandbox.responses import json_response


class ApiError(Exception):
    """An error response. Endpoints raise it; the application sends it."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Returns the HTTP response."""
        error = {"code": self.code, "message": self.message}
        return json_response({"error": error}, status=self.status, headers=self.headers)


def record_not_found() -> ApiError:
    """Returns 404 for a missing record."""
    return ApiError(404, "RecordNotFound", "Requested record not found")


def route_not_found(path: str) -> ApiError:
    """Returns 404 for a path without an endpoint."""
    return ApiError(404, "RouteNotFound", f"There is nothing at {path}")


def method_not_allowed(method: str, allowed: Iterable[str]) -> ApiError:
    """Returns 405, which names the allowed methods."""
    headers = {"Allow": ", ".join(sorted(allowed))}
    return ApiError(405, "MethodNotAllowed", f"{method} is not possible here", headers)


def unauthorized(challenge: str) -> ApiError:
    """Returns 401 with the challenge of the sign-in."""
    return ApiError(401, "Unauthorized", "Sign-in is missing or wrong", {"WWW-Authenticate": challenge})


def invalid_token(realm: str, description: str) -> ApiError:
    """Returns 401 for a bearer token that is missing, expired, unknown or for another audience."""
    challenge = f'Bearer realm="{realm}", error="invalid_token", error_description="{description}"'
    return unauthorized(challenge)


def access_denied() -> ApiError:
    """Returns 403 for what the person's roles do not allow."""
    return ApiError(403, "AccessDenied", "The roles of this account do not allow this")


def insufficient_scope(scope: str) -> ApiError:
    """Returns 403 that names the missing scope (RFC 6750, section 3.1)."""
    headers = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}
    return ApiError(403, "InsufficientScope", f"The token lacks the scope {scope}", headers)


def storage_not_found(file_id: str) -> ApiError:
    """Returns 404 for a file id without an upload. Status and code are assumptions (service.md#upload)."""
    return ApiError(404, "StorageNotFound", f"Storage object not found: cache/{file_id}")


def too_many_requests(retry_after: int) -> ApiError:
    """Returns 429 with the whole seconds until a request is accepted."""
    message = f"Too many requests, try again in {retry_after} seconds"
    return ApiError(429, "TooManyRequests", message, {"Retry-After": str(retry_after)})


def version_ended(status: int, base_url: str) -> ApiError:
    """Returns the answer of a version that has been shut down. Its form is an assumption (service.md#shutdown)."""
    redirect = {"Location": f"{base_url}/api"} if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST else {}
    return ApiError(status, "VersionEnded", "This version of the API has been shut down", redirect)


def bad_request(message: str) -> ApiError:
    """Returns 400 for a body that cannot be parsed."""
    return ApiError(400, "BadRequest", message)


def unprocessable(message: str) -> ApiError:
    """Returns 422 for an invalid body."""
    return ApiError(422, "UnprocessableEntity", message)


def internal_server_error() -> ApiError:
    """Returns 500. The traceback goes to stderr, never into the response."""
    return ApiError(500, "InternalServerError", "Internal server error")
