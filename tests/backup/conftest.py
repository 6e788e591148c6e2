from __future__ import annotations

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


@pytest.fixture
def sandbox(sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch) -> SandboxProcess:
    """With the account of version 2 in the environment."""
    monkeypatch.setenv("TEST_USER", sandbox.user)
    monkeypatch.setenv("TEST_PASSWORD", sandbox.password)
    return sandbox
