"""The authorization server of one library: its requests (service.md#oauth). It stores nothing.

The library has three addresses, `/oauth/clients`, `/oauth/authorize` and `/oauth/token`. RFC 6749, 7591, 7636, 8707 and 9207 say the rest,
and this module accepts every liberty that they leave to a server. A request that may have been received is never repeated here: a code is
valid once, and so is a refresh token. token_refresh.py decides about repetitions; oauth_errors.py explains refusals.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx

from pipelines.errors import TemporaryError
from pipelines.service.clock import Clock
from pipelines.service.http.budget import Budget
from pipelines.service.http.failures import describe_request, is_permanent, status_line
from pipelines.service.http.network import CONNECT_SECONDS, NetworkTransport
from pipelines.service.http.responses import unsent_error
from pipelines.service.http.retries import TRIES, RetryTransport
from pipelines.service.http.transport import ON_LEAVE, BudgetTransport, OriginTransport
from pipelines.service.redaction import keep_secret, outside_text
from pipelines.service.sign_in.authorization_code import Challenge
from pipelines.service.sign_in.oauth_errors import (
    OWN_CLIENT,
    LostResponseError,
    registration_refused,
    token_refused,
)
from pipelines.service.sign_in.stored_sign_in import Grant, Registration
from pipelines.service.sign_in.token_response import read_grant, read_object, read_registration
from pipelines.settings.credentials import OAuthClient
from pipelines.version import VERSION

CLIENT_NAME = "Bookferry"
"""The name on the consent page."""


TIMEOUT = httpx.Timeout(30.0, connect=CONNECT_SECONDS)

TRIES_WITHOUT_EFFECT = 5
"""Tries of a request without effect: without a connection, with 1, 2, 4 and 8 seconds between them; after a 429, the budget waits as long
as the server asks. A registration is tried once after that: mostly there are no more of them that day."""


class AuthorizationServer:
    """The `/oauth/` part of a library. Every request passes the budget and the check of the origin (I1, I2). Close it when done."""

    def __init__(
        self,
        base_url: str,
        *,
        budget: Budget,
        clock: Clock,
    ) -> None:
        self.base_url = base_url
        self.resource = f"{base_url}/api/v3"
        self._clock = clock
        network = NetworkTransport(base_url)
        rings = OriginTransport(BudgetTransport(network, budget=budget, clock=clock), base_url=base_url)
        self._rings = RetryTransport(rings, clock=clock)

    def register(self, redirect_uris: Sequence[str], scopes: Iterable[str], auth: str) -> Registration:
        """Register a client (service.md#clients; RFC 7591)."""
        metadata = {
            "client_name": CLIENT_NAME,
            "redirect_uris": list(redirect_uris),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": auth,
            "scope": " ".join(scopes),
        }
        try:
            response = self._send(self._request("clients", json=metadata), throttled=1)
        except LostResponseError:
            raise
        except TemporaryError as error:  # perhaps there are no more registrations today
            raise TemporaryError(f"{error} {OWN_CLIENT}") from None
        if not response.is_success:
            raise registration_refused(response)
        return read_registration(read_object(response), redirect_uris, scopes, auth)

    def authorize_url(self, client: OAuthClient, redirect_uri: str, scopes: Iterable[str], challenge: Challenge) -> str:
        """Return the address for the person's browser (service.md#oauth). It contains no secret."""
        query = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(scopes),
            "state": challenge.state,
            "resource": self.resource,
            "code_challenge": challenge.s256,
            "code_challenge_method": "S256",
        }
        return f"{self.base_url}/oauth/authorize?{urlencode(query)}"

    def exchange(
        self, client: OAuthClient, code: str, redirect_uri: str, challenge: Challenge, scopes: Iterable[str]
    ) -> Grant:
        """Exchange a code for tokens. Never repeated: a lost response costs the person another sign-in and nothing else."""
        keep_secret(code, challenge.verifier)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "resource": self.resource,
            "code_verifier": challenge.verifier,
        }
        requested = Grant(client.client_id, "", None, tuple(scopes), 0.0, 0.0, self._clock.now().timestamp())
        return self._tokens(client, form, requested)

    def refresh(self, client: OAuthClient, grant: Grant, before_sending: Callable[[], None]) -> Grant:
        """Exchange a refresh token for new tokens. `before_sending` is called at the last moment before anything leaves.

        The library does not document this request (service.md#not-shown). It is the one of RFC 6749, section 6, without `scope` and
        `resource`, which are optional and stay as they were.
        """
        form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token or ""}
        return self._tokens(client, form, grant, before_sending)

    def close(self) -> None:
        """Close the connections."""
        self._rings.close()

    def _tokens(
        self,
        client: OAuthClient,
        form: dict[str, str],
        before: Grant,
        before_sending: Callable[[], None] = lambda: None,
    ) -> Grant:
        fields, headers = _authenticated(client, form)
        response = self._send(self._request("token", data=fields, headers=headers), before_sending)
        if response.is_success:
            return read_grant(read_object(response), self._clock.now().timestamp(), before)
        raise token_refused(response)

    def _request(self, path: str, *, headers: Mapping[str, str] | None = None, **body: Any) -> httpx.Request:
        default = {"accept": "application/json", "accept-encoding": "gzip", "user-agent": f"bookferry/{VERSION}"}
        url = f"{self.base_url}/oauth/{path}"
        return httpx.Request("POST", url, headers={**default, **(headers or {})}, **body)

    def _send(
        self,
        request: httpx.Request,
        before_sending: Callable[[], None] = lambda: None,
        *,
        throttled: int = TRIES_WITHOUT_EFFECT,
    ) -> httpx.Response:
        """Send a request that has its effect at most once: a 429 and a server that cannot be reached mean no effect (I8).

        `throttled`: tries that may be answered by a 429.
        """
        tries = TRIES_WITHOUT_EFFECT, throttled
        request.extensions = {"timeout": TIMEOUT.as_dict(), ON_LEAVE: before_sending, TRIES: tries}
        where = describe_request(request)
        try:
            response = self._rings.handle_request(request)
        except httpx.HTTPError as error:
            if is_permanent(error):
                raise unsent_error("POST", request.url, error) from None
            raise LostResponseError(
                f"{where} was sent, and its response did not arrive ({type(error).__name__}: {outside_text(error)})."
            ) from None
        if response.is_server_error:
            raise LostResponseError(f"{where} answered {status_line(response)}.")
        return response


def _authenticated(client: OAuthClient, form: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the form and the headers with the client's credentials (service.md#clients; RFC 6749, 2.3.1)."""
    keep_secret(client.secret or "")
    if client.auth == "client_secret_basic":
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.secret or '')}"
        keep_secret(quote_plus(client.secret or ""), pair)
        return form, {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    if client.auth == "client_secret_post":
        return {**form, "client_id": client.client_id, "client_secret": client.secret or ""}, {}
    return {**form, "client_id": client.client_id}, {}
