"""The service in process, on a clock that the test sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox.app import Sandbox
from sandbox.settings import Settings
from sandbox.state.database import Database
from sandbox.tenants import Account, Tenant, open_tenant

ORIGIN = "http://service.test"


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


@dataclass
class Service:
    """A tenant, and clients that reach it without a socket."""

    tenant: Tenant
    app: Sandbox
    clock: FakeClock

    @property
    def base_url(self) -> str:
        """The tenant's address."""
        return f"{ORIGIN}/{self.tenant.name}"

    def client(self, **options: Any) -> httpx.Client:
        """Returns a client for version 2, signed in; ``auth=None`` for one that is not."""
        settings = {"auth": (self.tenant.account.email, self.tenant.account.password), **options}
        transport = httpx.WSGITransport(app=self.app)
        return httpx.Client(base_url=f"{self.base_url}/api/v2", transport=transport, **settings)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Sends a GET, signed in."""
        with self.client() as client:
            return client.get(path, **options)

    def vary(self, **variations: Any) -> None:
        """Sets variations."""
        self.tenant.settings = self.tenant.settings.with_changes({"variations": variations})

    def change(self, **settings: Any) -> None:
        """Changes settings."""
        self.tenant.settings = self.tenant.settings.with_changes(settings)


@pytest.fixture(scope="session")
def real_library() -> Iterator[Database]:
    """The whole real library, loaded once. Tests must not change it."""
    database = Database()
    yield database
    database.close()


def open_service(database: Database, records: int | None, clock: FakeClock, name: str = "library") -> Service:
    settings = Settings(requests_per_minute=0)
    tenant = open_tenant(database, name, records=records, account=Account(), settings=settings, clock=clock)
    return Service(tenant, Sandbox({name: tenant}), clock)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def library(real_library: Database, clock: FakeClock) -> Service:
    """The real library without a request limit. It is shared, so tests only read it."""
    return open_service(real_library, None, clock)


@pytest.fixture
def make_service(clock: FakeClock) -> Iterator[Callable[[int], Service]]:
    """Creates a service of the test's own with the first `records` real records."""
    databases: list[Database] = []

    def make(records: int) -> Service:
        databases.append(Database())
        return open_service(databases[-1], records, clock)

    yield make
    for database in databases:
        database.close()


@pytest.fixture
def open_v3() -> Iterator[Callable[[Service], httpx.Client]]:
    """Opens clients for version 3 with every scope."""
    with ExitStack() as closing:

        def make(service: Service) -> httpx.Client:
            transport = httpx.WSGITransport(app=service.app)
            client = closing.enter_context(httpx.Client(base_url=f"{service.base_url}/api/v3", transport=transport))
            token = client.post(f"{ORIGIN}/_control/tokens", json={}).json()["access_token"]
            client.headers["Authorization"] = f"Bearer {token}"
            return client

        yield make


@pytest.fixture
def shaped(make_service: Callable[[int], Service]) -> Service:
    """Sixty real records in other shapes."""
    service = make_service(60)
    service.change(shapes=Path(__file__).with_name("other_shapes.json").read_text("utf-8"))
    return service


@pytest.fixture
def v3(shaped: Service, open_v3: Callable[[Service], httpx.Client]) -> httpx.Client:
    """A client for these shapes."""
    return open_v3(shaped)
