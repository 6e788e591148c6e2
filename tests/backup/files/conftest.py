from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipelines.service import redaction
from tests.backup.files.shelf import Desk, Shelf
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Script, ScriptedServer


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the machine that runs the tests; somebody's sign-in; no secret that another test has kept."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TEST_USER", "somebody")
    monkeypatch.setenv("TEST_PASSWORD", "made-up-for-this-test")
    monkeypatch.setattr(redaction, "_kept", frozenset())


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    """An empty library and its storage."""
    with Shelf() as shelf:
        yield shelf


@pytest.fixture
def desk(tmp_path: Path, shelf: Shelf) -> Desk:
    """A desk at the shelf, with a clock whose waits are over at once."""
    return Desk(tmp_path, shelf.library.url, clock=ManualClock())


@pytest.fixture
def serve() -> Iterator[Callable[[Script], ScriptedServer]]:
    """Starts servers that answer by script; they end with the test."""
    with ExitStack() as stack:
        yield lambda script: stack.enter_context(ScriptedServer(script))
