"""Clients of real servers and of scripted ones, each with its own budget."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipelines.service import redaction
from pipelines.service.client import LibraryClient
from pipelines.service.http.budget import Budget
from pipelines.state.local import LocalState
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Script, ScriptedServer

Serve = Callable[[Script], ScriptedServer]
"""Starts a scripted server."""
ClientFor = Callable[..., LibraryClient]
"""Creates a client of a base_url."""

USER, PASSWORD = "backup@library.example", "sandbox-password"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of this machine, and no secret of another test."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(redaction, "_kept", frozenset())


@pytest.fixture
def clock() -> ManualClock:
    """Time that passes at once."""
    return ManualClock()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts scripted servers; they end with the test."""
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(ScriptedServer(script))


@pytest.fixture
def client_for(tmp_path: Path, clock: ManualClock) -> Iterator[ClientFor]:
    """Creates clients of a base_url, on the test's clock by default; they are closed with the test."""
    with ExitStack() as stack:

        def make(base_url: str, **options: Any) -> LibraryClient:
            used = {"clock": clock, "requests_per_minute": 100_000, "auth": httpx.BasicAuth(USER, PASSWORD), **options}
            budget = Budget(LocalState(tmp_path / "state.db"), base_url, used["requests_per_minute"], used["clock"])
            return stack.enter_context(LibraryClient(base_url=base_url, api="v2", budget=budget, **used))

        yield make
