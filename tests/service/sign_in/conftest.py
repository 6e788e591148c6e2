"""A configuration and a database for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres import database
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import Home


@pytest.fixture
def home(sandbox: SandboxProcess, tmp_path: Path) -> Home:
    """A configuration without a sign-in."""
    return Home.make(tmp_path / "home", sandbox.base_url(), sandbox)


@pytest.fixture
def postgres_database(state_server: str) -> Iterator[str]:
    """Address of a new database."""
    with database(state_server) as address:
        yield address
