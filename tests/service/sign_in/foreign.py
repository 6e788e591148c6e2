"""Another library service, with the liberties that servers take.

It follows the documentation of the API and the RFCs, and shares no code with the product.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

from tests.service.scripted import Answer, Received, ScriptedServer

Token = dict[str, Any]


@dataclass
class Liberties:
    """How this server differs."""

    token: Callable[[Token], Token] = lambda answer: answer
    """Changes a response of the token endpoint."""
    rotates: bool = True
    """Whether a refresh issues a new refresh token and ends the old one."""
    content_type: str = "application/json"
    iss: str | None = None
    """Sent with an authorization response (RFC 9207)."""
    registration: Callable[[Token], Token] = lambda answer: answer
    refusal: tuple[int, bytes] | None = None
    """Status and body of every token response, if the server refuses all token requests."""
    registrations_refused: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    """Status and headers of the responses to the first registrations."""
    secret: str | None = None
    """The secret that a confidential client must send, by `auth`."""
    auth: str = "none"
    challenge: str = 'Bearer error="invalid_token", error_description="expired"'


class Asked(Received):
    """One request."""

    @property
    def path(self) -> str:
        """Below the prefix of the API."""
        return super().path.removeprefix("/lib")

    @property
    def form(self) -> dict[str, str]:
        """The fields of a form; none of JSON."""
        return {} if self.body.startswith(b"{") else dict(parse_qsl(self.body.decode()))


class ForeignService:
    """Listens on 127.0.0.1 while the block runs; its API has a path prefix, as behind a proxy."""

    def __init__(self, liberties: Liberties | None = None) -> None:
        self.liberties = liberties or Liberties()
        self.asked: list[Asked] = []
        self.access: set[str] = set()
        self.refresh: set[str] = set()
        self.challenges: dict[str, str] = {}
        self.scope = "library:read assets:read"
        self.lock = threading.Lock()
        self._server = ScriptedServer(self._answer)
        self.base_url = f"{self._server.url}/lib"

    def _answer(self, request: Received) -> Answer:
        api_request = Asked(request.method, request.target, request.headers, request.body)
        with self.lock:
            self.asked.append(api_request)
            status, headers, content = self.handle(api_request)
        return Answer(content, status, {"content-type": "", **headers})

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *caught: object) -> None:
        self._server.__exit__(*caught)

    def count(self, path: str) -> int:
        """Return the requests to a path."""
        return sum(request.path == path for request in self.asked)

    def tokens_asked(self, grant_type: str) -> list[Asked]:
        """Return the token requests of a grant type."""
        return [request for request in self.asked if request.form.get("grant_type") == grant_type]

    def handle(self, request: Asked) -> tuple[int, dict[str, str], bytes]:
        """Route the request."""
        if request.path == "/oauth/clients":
            return self.register(json.loads(request.body))
        if request.path == "/oauth/token":
            return self.token(request)
        if request.path.startswith("/api/v3/"):
            return self.api(request)
        return 404, {}, b""

    def register(self, metadata: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """Register as requested (RFC 7591)."""
        if self.liberties.registrations_refused:
            return *self.liberties.registrations_refused.pop(0), b""
        answer = {"client_id": "foreign client", **metadata}
        if metadata["token_endpoint_auth_method"] != "none":
            answer["client_secret"] = self.liberties.secret = "se:cret/+ ü&"
            self.liberties.auth = metadata["token_endpoint_auth_method"]
        return 201, {"content-type": "application/json"}, json.dumps(self.liberties.registration(answer)).encode()

    def authorize(self, url: str, **changes: str | None) -> str:
        """Allow the request as a person; return the address that the browser goes to."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["resource"] == f"{self.base_url}/api/v3"
        code = secrets.token_urlsafe(8)
        self.challenges[code] = query.get("code_challenge", "")
        answer = {"code": code, "state": query["state"], "iss": self.liberties.iss, **changes}
        return (
            f"{query['redirect_uri']}?{urlencode({name: value for name, value in answer.items() if value is not None})}"
        )

    def token(self, request: Asked) -> tuple[int, dict[str, str], bytes]:
        """Issue tokens (RFC 6749, 4.1.3 and 6)."""
        kind = {"content-type": self.liberties.content_type}
        if self.liberties.refusal is not None:
            return self.liberties.refusal[0], kind, self.liberties.refusal[1]
        if not self.knows(request):
            return 401, kind, b'{"error": "invalid_client"}'
        if request.form["grant_type"] == "authorization_code":
            hashed = hashlib.sha256(request.form.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
            expected = self.challenges.pop(request.form["code"], None)
            if expected is None or expected not in ("", challenge):
                return 400, kind, b'{"error": "invalid_grant"}'
        elif request.form["refresh_token"] not in self.refresh:
            return 400, kind, b'{"error": "invalid_grant", "error_description": "not yours"}'
        return 200, kind, json.dumps(self.liberties.token(self.mint(request))).encode()

    def knows(self, request: Asked) -> bool:
        """Whether the client authenticates in the registered way."""
        method, secret = self.liberties.auth, self.liberties.secret
        if method == "client_secret_basic":
            pair = base64.b64decode(request.headers.get("authorization", "Basic ")[6:]).decode().split(":")
            return [unquote_plus(part) for part in pair] == ["foreign client", secret]
        if method == "client_secret_post":
            return request.form.get("client_secret") == secret and request.form.get("client_id") == "foreign client"
        return request.form.get("client_id") == "foreign client"

    def mint(self, request: Asked) -> Token:
        """Issue a new pair of tokens."""
        access = secrets.token_urlsafe(16)
        refresh = secrets.token_urlsafe(16) if self.liberties.rotates else request.form.get("refresh_token", "the one")
        self.access.add(access)
        self.refresh.discard(request.form.get("refresh_token", ""))
        self.refresh.add(refresh)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": refresh,
            "scope": self.scope,
        }

    def api(self, request: Asked) -> tuple[int, dict[str, str], bytes]:
        """Return one of 200 pages, for any valid token."""
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.access:
            return (
                401,
                {"WWW-Authenticate": self.liberties.challenge},
                b'{"error": {"code": "Unauthorized", "message": "no"}}',
            )
        page = int(request.query.get("page", "1"))
        url = f"{self.base_url}/api/v3/publications?per_page=50&page="
        links = [f'<{url}{page + 1}>; rel="next"', f'<{url}200>; rel="last"'] if page < 200 else []
        records = [{"id": page * 50 + number, "title": "A title"} for number in range(50)]
        headers = {
            "content-type": "application/json",
            "X-Total": "10000",
            **({"Link": ", ".join(links)} if links else {}),
        }
        return 200, headers, json.dumps({"records": records}).encode()
