"""A kill during downloads, and another run: stored content is not fetched again, and no blob is damaged (I9)."""

from __future__ import annotations

import hashlib
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


def fetch(config: Path) -> None:
    with Backup.open(config) as library:
        library.fetch_files("old", "run")


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
    asked, second_page, dead = threading.Event(), threading.Event(), threading.Event()
    pages: list[list[dict[str, Any]]] = [file_library.listed()]

    def listed() -> list[dict[str, Any]]:
        if not pages:
            second_page.set()
            dead.wait(120)
        return pages.pop() if pages else list(file_library.publications.values())

    def never(_request: Received) -> Answer:
        asked.set()
        dead.wait(120)
        return Answer(status=503)

    monkeypatch.setattr(file_library, "listed", listed)
    file_library.stored[path] = never
    runner = BackupRunner(tmp_path, file_library.library.url, clock=ManualClock())
    child = start(read, runner.config)
    assert asked.wait(120)
    assert second_page.wait(120)
    child.kill()
    child.join()
    dead.set()
    file_library.stored[path] = b"relative"
    file_library.library.received.clear()
    assert {row["status"] for row in files_of(runner.back_up("run"))} == {"kept"}
    listing = [request.query for request in file_library.library.received if request.path.endswith("/publications/all")]
    assert "1" not in [query.get("page") for query in listing]


@pytest.mark.long
def test_killed_in_the_middle_of_a_transfer(tmp_path: Path, file_library: FileLibrary) -> None:
    """Kill -9 while one file is being downloaded and others are stored: those are not requested again."""
    for number in range(30):
        file_library.add(f"content {number}".encode() * 50)
    runner = BackupRunner(tmp_path, file_library.library.url, clock=ManualClock())
    with runner.library(with_files=False) as library:
        library.read_raw("old", "run", "publications")
        library.stage("old", "run", "publications")
    for publication in file_library.publications.values():
        file_library.refusals[f"/assets/{publication['assets'][0]['id']}"] = Answer(
            file_library._signed(publication["assets"][0])
        )
    reached, dead, content = threading.Event(), threading.Event(), file_library.stored["/file-20"]
    assert isinstance(content, bytes)

    def half(_request: Received) -> Answer:
        reached.set()
        dead.wait(120)
        return Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n" + content[:100])

    file_library.stored["/file-20"] = half
    child = start(fetch, runner.config)
    assert reached.wait(120)
    child.kill()
    child.join()
    dead.set()
    before = runner.blobs()
    assert all(hashlib.sha256(blob).hexdigest() == name for name, blob in before.items() if not name.startswith("."))
    file_library.stored["/file-20"] = content
    file_library.storage.received.clear()
    with runner.library() as library:
        library.fetch_files("old", "run")
        manifest = library.publish("old", "run").manifest
    assert (manifest.complete, manifest.files.kept) == (True, 30)
    kept_before = {name for name in before if not name.startswith(".")}
    sums = {
        f"/file-{number + 1}": hashlib.sha256(f"content {number}".encode() * 50).hexdigest() for number in range(30)
    }
    again = [path for path in file_library.fetched() if sums[path] in kept_before]
    assert len(again) <= 8, "contents that were stored just before the list recorded it"
    assert {hashlib.sha256(blob).hexdigest() for blob in runner.blobs().values()} == set(sums.values())
    assert not (runner.data / "files" / "tmp" / "tenant=old").exists()
