from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.service import redaction
from tests.backup.files.file_library import FileLibrary
from tests.backup.runner import BackupRunner
from tests.service.manual_clock import ManualClock


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy from the environment, made-up credentials, and no secrets registered by other tests."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TEST_USER", "somebody")
    monkeypatch.setenv("TEST_PASSWORD", "made-up-for-this-test")
    monkeypatch.setattr(redaction, "_kept", frozenset())


@pytest.fixture
def file_library() -> Iterator[FileLibrary]:
    """An empty library and its storage."""
    with FileLibrary() as file_library:
        yield file_library


@pytest.fixture
def runner(tmp_path: Path, file_library: FileLibrary) -> BackupRunner:
    """Backups of `file_library`, with a clock whose waits end at once."""
    return BackupRunner(tmp_path, file_library.library.url, clock=ManualClock())
