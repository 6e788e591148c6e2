"""Authorizes the requests of v3 tenants: the newest token when a request leaves, and a new token after a 401 (I3).

A 403 for a missing scope names it (service.md#scopes).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import httpx

from pipelines.errors import BookferryError, InsufficientScopeError, SignInError
from pipelines.service.clock import Clock
from pipelines.service.http.budget import Budget
from pipelines.service.http.failures import describe_request, error_and_description
from pipelines.service.http.responses import REFUSAL
from pipelines.service.redaction import outside_text
from pipelines.service.sign_in.authorization_server import AuthorizationServer
from pipelines.service.sign_in.token_refresh import TokenRefresher
from pipelines.settings.settings import Settings

TRIES = 10
"""Sends of one request, each with another token: other processes may refresh the token, or it may expire, while the request is on its
way."""


class BearerAuth(httpx.Auth):
    """`Authorization: Bearer <ACCESS_TOKEN>` (service.md#oauth).

    After a 401 it first checks whether another process refreshed the token, then refreshes it. If new tokens are refused as well, the 401
    is the response, with the error that explains it in the extension `refusal`.
    """

    def __init__(self, refresher: TokenRefresher) -> None:
        self._refresher = refresher

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Send the request with a token, and again if another token may help. A 401 had no effect, so a POST may be repeated, too."""
        sign(request, self._refresher.access_token())
        response = yield request
        for _ in range(1, TRIES):
            if response.status_code != httpx.codes.UNAUTHORIZED:
                self._refresher.accepted()
                break
            if _is_for_another_target(response):
                break
            used = bearer_token(request)
            newer = self._refresher.replacement_for(used)
            if newer == used:
                break
            sign(request, newer)
            response = yield request
        response.extensions[REFUSAL] = _refusal(response, self._refresher.tenant)


class TokenTransport(httpx.BaseTransport):
    """The innermost layer: a request may wait for the budget longer than its token lives, so it gets the newest token as it leaves."""

    def __init__(self, inner: httpx.BaseTransport, refresher: TokenRefresher) -> None:
        self._inner = inner
        self._refresher = refresher

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request with a valid token. A request without a sign-in stays without."""
        if "authorization" in request.headers:
            sign(request, self._refresher.access_token())
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Close the inner transport."""
        self._inner.close()


@contextmanager
def open_refresher(settings: Settings, tenant: str, *, budget: Budget, clock: Clock) -> Iterator[TokenRefresher]:
    """Yields the token refresher of a v3 tenant. It sends nothing until a token is needed."""
    server = AuthorizationServer(settings.tenant(tenant).base_url, budget=budget, clock=clock)
    refresher = TokenRefresher(settings, tenant, server=server, clock=clock)
    try:
        yield refresher
    finally:
        refresher.close()


def sign(request: httpx.Request, token: str) -> None:
    """Put the token into the request."""
    request.headers["authorization"] = f"Bearer {token}"


def bearer_token(request: httpx.Request) -> str:
    """Returns the token of a request."""
    return str(request.headers.get("authorization", "")).removeprefix("Bearer ")


def _is_for_another_target(response: httpx.Response) -> bool:
    """Whether the token belongs to another resource: "audience mismatch" (service.md#errors). No refresh changes that."""
    return "audience mismatch" in response.headers.get("www-authenticate", "").lower()


def _refusal(response: httpx.Response, tenant: str) -> BookferryError | None:
    asked = describe_request(response.request)
    challenge = response.headers.get("www-authenticate", "")
    if response.status_code == httpx.codes.UNAUTHORIZED and _is_for_another_target(response):
        return SignInError(
            f"{asked} answered 401, audience mismatch: the sign-in of '{tenant}' was given for something else than the library's REST API. "
            f"Run `bookferry login {tenant}`, which asks for the right target. A client that an administrator issued must be one for the "
            "REST API."
        )
    if response.status_code == httpx.codes.UNAUTHORIZED:
        reason = f" ({outside_text(challenge)})" if challenge else ""
        return SignInError(
            f"{asked} answered 401, with a token that is new, too{reason}: the sign-in of '{tenant}' was revoked, or base_url is not the "
            f"address it was given for. Run `bookferry login {tenant}`."
        )
    if response.status_code == httpx.codes.FORBIDDEN and _lacks_scope(response, challenge):
        return _insufficient_scope_error(asked, _missing_scopes(challenge), tenant)
    return None


def _insufficient_scope_error(asked: str, scopes: tuple[str, ...], tenant: str) -> InsufficientScopeError:
    """Returns the error for a request that needs these scopes, with the command that asks for them."""
    lacking = f"the scope {' '.join(scopes)}" if scopes else "a scope that the service does not name"
    return InsufficientScopeError(
        f"{asked} answered 403: the sign-in of '{tenant}' lacks {lacking}. Run `bookferry login {tenant}` and allow it on the consent "
        "page. A client that an administrator issued must have the scope, too.",
        scopes=scopes,
    )


def _missing_scopes(challenge: str) -> tuple[str, ...]:
    """Returns the scopes that a `WWW-Authenticate` header names (RFC 6750, 3)."""
    scope = re.search(r"""(?i)\bscope\s*=\s*(?:"([^"]*)"|([^\s,"]+))""", challenge)
    named = (scope[1] if scope[1] is not None else scope[2]) if scope else ""
    return tuple(outside_text(name, 60) for name in named.split()[:20])


def _lacks_scope(response: httpx.Response, challenge: str) -> bool:
    """Whether a 403 says that the token lacks a scope: by the code `InsufficientScope`, or in `WWW-Authenticate` (service.md#scopes)."""
    if "insufficient_scope" in challenge.lower():
        return True
    code, _ = error_and_description(response)
    return code.lower().replace("_", "") == "insufficientscope"
