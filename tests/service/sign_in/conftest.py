"""One sandbox for all sign-ins, and a configuration for each test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipelines.service import redaction
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import Home


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of this machine, no configuration of a person, and no secret of another test."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or name.startswith("BOOKFERRY_")]:
        if name != "BOOKFERRY_TEST_POSTGRES":
            monkeypatch.delenv(name)
    monkeypatch.setattr(redaction, "_kept", frozenset())


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


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Address of a Postgres server."""
    with ExitStack() as stack:
        try:
            address = stack.enter_context(postgres_server())
        except (subprocess.CalledProcessError, OSError) as error:
            pytest.skip(f"no Postgres can be started here: {error}")
        yield address


@pytest.fixture
def postgres_database(postgres: str) -> Iterator[str]:
    """Address of a new database."""
    with database(postgres) as address:
        yield address
