"""The service in process, on a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from sandbox.app import Sandbox
from sandbox.settings import Settings
from sandbox.state.database import Database
from sandbox.tenants import Account, open_tenant

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


@pytest.fixture
def v3() -> Iterator[httpx.Client]:
    """A client for version 3, with every scope, of sixty real records in other shapes."""
    database, clock = Database(), FakeClock()
    shapes = Path(__file__).with_name("other_shapes.json").read_text("utf-8")
    settings = Settings(requests_per_minute=0).with_changes({"shapes": shapes})
    tenant = open_tenant(
        database, "library", records=60, account=Account(), settings=settings, clock=clock, storage_port=0
    )
    transport = httpx.WSGITransport(app=Sandbox({"library": tenant}))
    with httpx.Client(base_url=f"{ORIGIN}/library/api/v3", transport=transport) as client:
        token = client.post(f"{ORIGIN}/_control/tokens", json={}).json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        yield client
    database.close()
