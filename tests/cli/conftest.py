"""One sandbox, and one backup of a real library, for all tests that only read them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cli.command import Installation, Outcome
from tests.sandbox.process import SandboxProcess

LARGE, SMALL = 400, 120


@pytest.fixture(scope="session")
def sandbox() -> Iterator[SandboxProcess]:
    """A library of real records, one of three pages for faults, one of a few records, and an empty one; no limit."""
    tenants = (
        f"--tenant=library=real:{LARGE}",
        f"--tenant=small=real:{SMALL}",
        "--tenant=few=real:12",
        "--tenant=bare=empty",
    )
    with SandboxProcess(*tenants, "--requests-per-minute", "0") as process:
        yield process


@dataclass(frozen=True)
class BackedUp(Installation):
    """An installation with one backup, and the output of that command."""

    first: Outcome


@pytest.fixture(scope="session")
def library(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> BackedUp:
    """The larger library, backed up with --json. Tests only read it."""
    installation = Installation.make(tmp_path_factory.mktemp("library"), sandbox, "library")
    return BackedUp(installation.folder, sandbox, "library", installation.backup("--json"))


@pytest.fixture(scope="session")
def small_installation(sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> BackedUp:
    """Three pages, backed up once. Tests use `small`, which resets the sandbox."""
    installation = Installation.make(tmp_path_factory.mktemp("small"), sandbox, "small")
    return BackedUp(installation.folder, sandbox, "small", installation.backup("--json"))


@pytest.fixture
def small(small_installation: BackedUp) -> Iterator[BackedUp]:
    """Three pages, backed up at least once. The sandbox starts without variations, and is reset afterwards."""
    small_installation.sandbox.reset(tenant="small")
    yield small_installation
    small_installation.sandbox.reset(tenant="small")
    small_installation.configure(base_url=small_installation.sandbox.base_url("small"))


@pytest.fixture(autouse=True)
def signal_mask() -> Iterator[None]:
    """A command that a test runs in its own process leaves stop signals blocked, and later tests' processes would inherit that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
