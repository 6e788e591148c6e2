"""One sandbox for all sign-ins, and a configuration for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import database
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import Home


@pytest.fixture(scope="session")
def running_sandbox() -> Iterator[SandboxProcess]:
    """One sandbox process for all tests; use `sandbox`."""
    options = ("--tenant", "library=real:120", "--requests-per-minute", "0", "--oauth", "registrations_per_day=100000")
    with SandboxProcess(*options) as process:
        yield process


@pytest.fixture
def sandbox(running_sandbox: SandboxProcess) -> SandboxProcess:
    """The sandbox, reset; earlier sign-ins are over."""
    running_sandbox.reset()
    running_sandbox.control("POST", "oauth/grants/end", {"tenant": "library"})
    return running_sandbox


@pytest.fixture
def home(sandbox: SandboxProcess, tmp_path: Path) -> Home:
    """A configuration without a sign-in."""
    return Home.make(tmp_path / "home", sandbox.base_url(), sandbox)


@pytest.fixture
def postgres_database(state_server: str) -> Iterator[str]:
    """Address of a new database."""
    with database(state_server) as address:
        yield address
