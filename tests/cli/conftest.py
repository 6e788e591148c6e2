"""One sandbox, and one backup of the whole real library, for all tests that only look at them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cli.command import Home, Outcome
from tests.sandbox.process import SandboxProcess

SMALL = 120


@pytest.fixture(scope="session")
def sandbox() -> Iterator[SandboxProcess]:
    """The real library, one of three pages to make trouble with, and an empty one; no limit."""
    tenants = ("--tenant=library=real", f"--tenant=small=real:{SMALL}", "--tenant=bare=empty")
    with SandboxProcess(*tenants, "--requests-per-minute", "0") as process:
        yield process


@dataclass(frozen=True)
class BackedUp(Home):
    """A home with one backup in it, and what the command said."""

    first: Outcome


@pytest.fixture(scope="session")
def library(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> BackedUp:
    """The whole real library, backed up with --json. Only look at it."""
    home = Home.make(tmp_path_factory.mktemp("library"), sandbox, "library")
    return BackedUp(home.folder, sandbox, "library", home.backup("--json"))


@pytest.fixture(scope="session")
def small_home(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> BackedUp:
    """Three pages, backed up once. Tests take `small`, which tidies up."""
    home = Home.make(tmp_path_factory.mktemp("small"), sandbox, "small")
    return BackedUp(home.folder, sandbox, "small", home.backup("--json"))


@pytest.fixture
def small(small_home: BackedUp) -> Iterator[BackedUp]:
    """Three pages, backed up at least once, from a service without liberties; the service forgets what the test ordered."""
    small_home.sandbox.reset(tenant="small")
    yield small_home
    small_home.sandbox.reset(tenant="small")
    small_home.configure(base_url=small_home.sandbox.base_url("small"))
