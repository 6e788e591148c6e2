"""A kill during downloads, and another run: stored content is not fetched again, and no blob is damaged (I9)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from pipelines.backup.flow import Backup
from tests.backup.files.file_library import PER_PAGE, FileLibrary, files_of
from tests.backup.runner import BackupRunner
from tests.forks import start
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received


def read(config: Path) -> None:
    with Backup.open(config) as library:
        library.read_raw("old", "run", "publications")


@pytest.mark.parametrize(
    ("address", "path"),
    [("relative/a.pdf", "/api/v2/publications/relative/a.pdf"), ("?signed=1", "/api/v2/publications/all")],
)
def test_a_relative_address_counts_from_its_page_after_a_kill(
    tmp_path: Path, file_library: FileLibrary, monkeypatch: pytest.MonkeyPatch, address: str, path: str
) -> None:
    """The page that has it was stored by the process that died, and is not asked for again."""
    file_library.add(b"relative", url=address, file={"metadata": {"size": 8}})
    for number in range(PER_PAGE):
        file_library.add(f"content {number}".encode())
    request_arrived, second_page, dead = threading.Event(), threading.Event(), threading.Event()
    pages: list[list[dict[str, Any]]] = [file_library.listed()]

    def listed() -> list[dict[str, Any]]:
        if not pages:
            second_page.set()
            dead.wait(120)
        return pages.pop() if pages else list(file_library.publications.values())

    def never(_request: Received) -> Answer:
        request_arrived.set()
        dead.wait(120)
        return Answer(status=503)

    monkeypatch.setattr(file_library, "listed", listed)
    file_library.stored[path] = never
    runner = BackupRunner(tmp_path, file_library.library.url, clock=ManualClock())
    child = start(read, runner.config)
    assert request_arrived.wait(120)
    assert second_page.wait(120)
    child.kill()
    child.join()
    dead.set()
    file_library.stored[path] = b"relative"
    file_library.library.received.clear()
    assert {row["status"] for row in files_of(runner.back_up("run"))} == {"kept"}
    listing = [request.query for request in file_library.library.received if request.path.endswith("/publications/all")]
    assert "1" not in [query.get("page") for query in listing]
