from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backup.files.file_library import FileLibrary
from tests.backup.runner import BackupRunner
from tests.service.conftest import plain_environment
from tests.service.manual_clock import ManualClock

__all__ = ["plain_environment"]


@pytest.fixture(autouse=True)
def made_up_account(plain_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An account of version 2 in an environment without proxies."""
    monkeypatch.setenv("TEST_USER", "somebody")
    monkeypatch.setenv("TEST_PASSWORD", "made-up-for-this-test")


@pytest.fixture
def file_library() -> Iterator[FileLibrary]:
    """An empty library and its storage."""
    with FileLibrary() as file_library:
        yield file_library


@pytest.fixture
def runner(tmp_path: Path, file_library: FileLibrary) -> BackupRunner:
    """Backups of `file_library`, with a clock whose waits end at once."""
    return BackupRunner(tmp_path, file_library.library.url, clock=ManualClock())
