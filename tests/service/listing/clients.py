"""A client of a service that a test plays in memory, and the budget of many such clients."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.state.local import LocalState

BASE = "https://library.example.org"


@pytest.fixture(scope="module")
def unlimited_budget(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Budget]:
    """A budget without a limit for many clients: creating one takes longer than a walk."""
    budget = Budget(LocalState(tmp_path_factory.mktemp("budget") / "state.db"), BASE, 10_000_000, SystemClock())
    yield budget
    budget.close()


def client_of(service: httpx.BaseTransport, budget: Budget, clock: Clock | None = None) -> LibraryClient:
    """A client of version 2 that asks `service`; without `clock` it waits in earnest."""
    return LibraryClient(
        base_url=BASE,
        api="v2",
        auth=httpx.BasicAuth("me", "secret"),
        budget=budget,
        requests_per_minute=100_000,
        clock=clock or SystemClock(),
        transport=service,
    )
