"""A library in process, for rules of OAuth that only the RFCs state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from sandbox.app import Sandbox
from sandbox.settings import Settings
from sandbox.state.database import Database
from sandbox.tenants import Account, open_tenant
from tests.sandbox.conftest import FakeClock
from tests.spec.conftest import Library


@pytest.fixture
def library() -> Iterator[Library]:
    """A library with one publication."""
    with ExitStack() as closing:
        database, clock = Database(), FakeClock()
        closing.callback(database.close)
        settings = Settings(requests_per_minute=0).with_changes({"oauth": {"registrations_per_day": 10_000}})
        tenant = open_tenant(database, "library", records=1, account=Account(), settings=settings, clock=clock)
        app = Sandbox({"library": tenant})
        library = Library(tenant, "http://service.test", clock, lambda: httpx.WSGITransport(app=app))
        closing.enter_context(library.closing)
        yield library
