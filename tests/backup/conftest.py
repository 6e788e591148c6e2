from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipelines.backup import flow
from tests.backup.files.conftest import file_library, made_up_account, plain_environment
from tests.sandbox.process import SandboxProcess

RECORDS = 120

__all__ = ["file_library", "made_up_account", "plain_environment"]


@pytest.fixture(autouse=True)
def without_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the catalogue makes it: after each small backup it takes three times as long as the backup."""
    monkeypatch.setattr(flow, "rebuild_catalogue", lambda data: data.catalogue_path)


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[SandboxProcess]:
    """One process with some of the real records, for all tests that change none; they use `sandbox`."""
    with SandboxProcess(f"--tenant=library=real:{RECORDS}", "--requests-per-minute", "0") as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch) -> SandboxProcess:
    """The `shared_sandbox` in its initial state, with the account of version 2 in the environment."""
    shared_sandbox.reset()
    shared_sandbox.change(requests_per_minute=0)
    monkeypatch.setenv("TEST_USER", shared_sandbox.user)
    monkeypatch.setenv("TEST_PASSWORD", shared_sandbox.password)
    return shared_sandbox
