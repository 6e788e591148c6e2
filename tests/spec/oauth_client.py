"""An OAuth client and a person at a browser: one method for each step of OAuth. Every parameter can be replaced."""

from __future__ import annotations

import hashlib
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.spec.conftest import Library

CALLBACK = "http://127.0.0.1:8123/callback"
EVERYTHING = "library:read library:write assets:read assets:write users:read users:write tasks:read tasks:write"


def challenge_of(verifier: str) -> str:
    """Returns the S256 code challenge of a verifier."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def answer_in(response: httpx.Response) -> dict[str, str]:
    """Returns the parameters that a redirect hands to the client's redirect address."""
    assert response.status_code == 303, response.text
    query = parse_qs(urlsplit(response.headers["Location"]).query, keep_blank_values=True)
    return {name: values[0] for name, values in query.items() if len(values) == 1}


def register(library: Library, **metadata: Any) -> httpx.Response:
    """Registers a client. None leaves a field out."""
    body = {"client_name": "Backup", "redirect_uris": [CALLBACK], "scope": EVERYTHING, **metadata}
    return library.client().post(
        "/oauth/clients", json={name: value for name, value in body.items() if value is not None}
    )


@dataclass
class OAuthClient:
    """A registered client. ``browser`` holds the cookies of the person."""

    library: Library
    id: str
    secret: str | None = None
    method: str = "client_secret_basic"
    redirect_uri: str = CALLBACK
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))
    browser: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.browser = self.library.client()

    def request(self, **changes: Any) -> dict[str, Any]:
        """Returns the parameters of an authorization request. None leaves one out."""
        parameters = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": self.redirect_uri,
            "state": "a state & more",
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
            "resource": f"{self.library.base_url}/api/v3",
            **changes,
        }
        return {name: value for name, value in parameters.items() if value is not None}

    def page(self, **changes: Any) -> httpx.Response:
        """Opens the consent page."""
        return self.browser.get("/oauth/authorize", params=self.request(**changes))

    def post(self, page: httpx.Response, **form: Any) -> httpx.Response:
        """Posts the form of a page. ``scope`` is what the person ticks; by default, what was ticked already."""
        token = re.search(r'name="form_token" value="(\w+)"', page.text)
        ticked = re.findall(r'name="scope" value="([a-z:]+)" checked', page.text)
        account = self.library.tenant.account
        filled = {
            "form_token": token[1] if token else "",
            "email": account.email,
            "password": account.password,
            "scope": ticked,
            "decision": "allow",
            **form,
        }
        return self.browser.post(str(page.url), data=filled)

    def consent(self, *, form: Mapping[str, Any] | None = None, **changes: Any) -> httpx.Response:
        """Opens the page and allows what it asks for."""
        return self.post(self.page(**changes), **(form or {}))

    def code(self, **changes: Any) -> str:
        """Returns a code that can be redeemed."""
        return answer_in(self.consent(**changes))["code"]

    def ask(self, form: Mapping[str, Any], **options: Any) -> httpx.Response:
        """Sends a token request, authenticated as the client is registered. None leaves a field out."""
        body = dict(form)
        if self.method == "client_secret_basic":
            options.setdefault("auth", (self.id, self.secret))
        else:
            body = {"client_id": self.id, **({"client_secret": self.secret} if self.secret else {}), **body}
        body = {name: value for name, value in body.items() if value is not None}
        return self.library.client().post("/oauth/token", data=body, **options)

    def redeem(self, code: str | None, **changes: Any) -> httpx.Response:
        """Exchanges a code for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            **changes,
        }
        return self.ask(form)

    def refresh(self, token: str, **changes: Any) -> httpx.Response:
        """Refreshes the tokens."""
        return self.ask({"grant_type": "refresh_token", "refresh_token": token, **changes})

    def sign_in(self, **changes: Any) -> dict[str, Any]:
        """Runs the whole sign-in and returns the tokens."""
        answer = self.redeem(self.code(**changes))
        assert answer.status_code == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    def call(self, access_token: str, path: str = "/publications") -> httpx.Response:
        """Sends a GET to version 3 with a token."""
        return self.library.client("/api/v3").get(path, headers={"Authorization": f"Bearer {access_token}"})


def registered_client(library: Library, method: str = "client_secret_basic", **metadata: Any) -> OAuthClient:
    """Returns a client that registered itself."""
    answer = register(library, token_endpoint_auth_method=method, **metadata)
    assert answer.status_code == 201, answer.text
    return _client_from(library, answer.json())


def issued_client(library: Library, redirect_uris: Sequence[str] = (CALLBACK,), **choices: Any) -> OAuthClient:
    """Returns a client that an administrator issued."""
    body = {"client_name": "Connector", "redirect_uris": list(redirect_uris), "scope": EVERYTHING, **choices}
    return _client_from(library, library.control("POST", "oauth/clients", body).json())


def _client_from(library: Library, answer: Mapping[str, Any]) -> OAuthClient:
    return OAuthClient(
        library,
        answer["client_id"],
        answer.get("client_secret"),
        answer["token_endpoint_auth_method"],
        answer["redirect_uris"][0],
    )
