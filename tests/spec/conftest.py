"""A library of the sandbox, over a socket.

There is a file for each part of docs/service.md. The docstring of each test cites the fact that it shows. The test sets
the clock: the server runs in a thread of the test process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from sandbox.app import Sandbox
from sandbox.server import Server
from sandbox.settings import Settings
from sandbox.state.database import Database
from sandbox.tenants import Account, Tenant, open_tenant

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@dataclass
class FakeClock:
    """A clock that the test moves. ``slept`` lists the seconds that requests waited."""

    time: float = 1_800_000_000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        """Returns the time of the test."""
        return self.time

    def monotonic(self) -> float:
        """Returns the time of the test."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Moves the time on."""
        self.slept.append(seconds)
        self.time += seconds


def plain_transport() -> httpx.HTTPTransport:
    """Returns a transport for plain http. It loads no certificates, which would take longer than most of these tests."""
    return httpx.HTTPTransport(verify=False)


def links(answer: httpx.Response) -> dict[str, str]:
    """Relation → address of the `Link` header."""
    return {rel: str(link["url"]) for rel, link in answer.links.items() if rel}


@dataclass
class Library:
    """One tenant of a running service, and clients for it. The fixture closes them when the test ends."""

    tenant: Tenant
    origin: str
    clock: FakeClock
    closing: ExitStack = field(default_factory=ExitStack)

    @property
    def base_url(self) -> str:
        """The tenant's address."""
        return f"{self.origin}/{self.tenant.name}"

    def client(self, path: str = "", **options: Any) -> httpx.Client:
        """Returns a client below the tenant that is not signed in and follows no redirects."""
        client = httpx.Client(base_url=f"{self.base_url}{path}", transport=plain_transport(), **options)
        return self.closing.enter_context(client)

    def v2(self, **options: Any) -> httpx.Client:
        """Returns a client for version 2, signed in with HTTP Basic."""
        settings = {"auth": (self.tenant.account.email, self.tenant.account.password), **options}
        return self.client("/api/v2", **settings)

    def v3(self, *scopes: str, **options: Any) -> httpx.Client:
        """Returns a client for version 3 whose token has these scopes; all scopes when none is named."""
        headers = {"Authorization": f"Bearer {self.token(*scopes)}"}
        return self.client("/api/v3", headers=headers, **options)

    def token(self, *scopes: str, **fields: Any) -> str:
        """Returns an access token from the control endpoint."""
        body = {"tenant": self.tenant.name, **({"scopes": list(scopes)} if scopes else {}), **fields}
        token: str = self.control("POST", "tokens", body).json()["access_token"]
        return token

    def control(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Sends a request to the control endpoint; an error status raises `HTTPStatusError`."""
        with httpx.Client(transport=plain_transport()) as client:
            return client.request(method, f"{self.origin}/_control/{path}", json=body).raise_for_status()

    def change(self, **settings: Any) -> None:
        """Changes settings."""
        self.control("PUT", "settings", settings)

    def fault(self, fault: str, *, path: str = "", method: str = "", **details: Any) -> None:
        """Adds a fault."""
        self.control("POST", "faults", {"fault": fault, "match": {"method": method, "path": path}, **details})


@pytest.fixture
def make_library() -> Iterator[Callable[..., Library]]:
    """Creates a library with the first `records` real records (None for all)."""
    with ExitStack() as closing:

        def make(records: int | None = 0, name: str = "library", **settings: Any) -> Library:
            database, clock = Database(), FakeClock()
            closing.callback(database.close)
            chosen = Settings(requests_per_minute=0).with_changes(settings)
            tenants: dict[str, Tenant] = {}
            app = Sandbox(tenants)
            storage_port = urlsplit(closing.enter_context(_ServedApp(app.storage))).port
            tenant = tenants[name] = open_tenant(
                database,
                name,
                records=records,
                account=Account(),
                settings=chosen,
                clock=clock,
                storage_port=storage_port,
            )
            library = Library(tenant, closing.enter_context(_ServedApp(app)), clock)
            closing.enter_context(library.closing)
            return library

        yield make


@pytest.fixture
def library(make_library: Callable[..., Library]) -> Library:
    """A library of this test alone with the first 60 real records."""
    return make_library(60)


@pytest.fixture
def empty(make_library: Callable[..., Library]) -> Library:
    """A library without records."""
    return make_library(0)


class _ServedApp:
    """Serves an application from a thread inside a ``with`` block. Its value is the origin."""

    def __init__(self, app: WSGIApplication) -> None:
        self._server = Server("127.0.0.1", 0, app)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> str:
        self._thread.start()
        return self._server.url

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
