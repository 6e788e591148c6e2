"""The content of files in a backup, from services on real sockets to blobs: fetched once, stored once, and reported where it is missing."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.backup import fetching
from pipelines.errors import StorageError
from pipelines.store.snapshots.file_list import FILE_LIST
from tests.backup.files.file_library import (
    SIGNATURE,
    FileLibrary,
    cut,
    files_of,
    stored_file,
)
from tests.backup.runner import BackupRunner, notes_on_reading
from tests.kept_texts import texts_below
from tests.service.scripted import Answer, Received

CONTENT = b"the content of a file\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class TestFurtherBackups:
    """Stored content is never fetched again, and costs no request (I12)."""

    def test_only_what_is_lacking_is_fetched(self, runner: BackupRunner, file_library: FileLibrary) -> None:
        """A replaced file has another id, a new one is unknown; failed files are tried again, and blobs that went missing or are cut."""
        for number in range(1, 61):
            file_library.add(f"content {number}".encode())
        failed = file_library.stored.pop("/file-2")
        first = runner.back_up("first")
        files = first.manifest.files
        assert (files.count, files.kept, files.new, files.failed, first.manifest.complete) == (60, 59, 59, 1, False)
        assert sorted(file_library.fetched()) == sorted([*(f"/file-{n}" for n in range(1, 61)), *["/file-2"] * 2])
        file_library.start_over()
        file_library.stored["/file-2"] = failed
        file_library.publications[3]["assets"][0] |= {"file": stored_file("other", 5), "url": "other"}
        file_library.stored["/other"] = b"other"
        file_library.add(b"new")
        for number, content in ((4, None), (5, b"cont")):
            name = sha256(f"content {number}".encode())
            path = runner.data / "files" / "sha256" / name[:2] / name
            path.unlink()
            if content:
                path.write_bytes(content)
        second = runner.back_up("second")
        assert sorted(file_library.fetched()) == ["/file-2", "/file-4", "/file-5", "/file-61", "/other"]
        assert (second.manifest.complete, second.manifest.files.new) == (True, 5)
        assert files_of(second)[2]["sha256"] == sha256(b"other")
        file_library.start_over()
        third = runner.back_up("third")
        assert (file_library.fetched(), len(file_library.library.received), third.manifest.requests) == ([], 2, 2)
        size = sum(len(content) for content in runner.blobs().values()) - len("content 3")
        assert (third.manifest.files.new, third.manifest.files.bytes) == (0, size)
        assert [(row["sha256"], row["status"]) for row in files_of(third)] == [
            (row["sha256"], "kept") for row in files_of(second)
        ]

    @pytest.mark.long
    def test_a_file_without_id_and_size_is_checked_with_the_storage(
        self, runner: BackupRunner, file_library: FileLibrary
    ) -> None:
        """One conditional request, which the storage may answer with 304."""
        file_library.add(CONTENT, file=None)

        def conditional(request: Received) -> Answer:
            is_unchanged = request.headers.get("if-none-match") == '"v1"'
            return Answer(
                b"" if is_unchanged else CONTENT, status=304 if is_unchanged else 200, headers={"etag": '"v1"'}
            )

        file_library.stored["/file-1"] = conditional
        assert runner.back_up("first").manifest.files.new == 1
        file_library.start_over()
        second = runner.back_up("second")
        assert (second.manifest.complete, second.manifest.files.new, file_library.fetched()) == (True, 0, ["/file-1"])
        [row] = files_of(second)
        assert (row["status"], row["sha256"], row["bytes"], row["etag"]) == ("kept", sha256(CONTENT), 22, '"v1"')

    @pytest.mark.long
    def test_without_files(self, tmp_path: Path, file_library: FileLibrary) -> None:
        """Nothing is fetched, the snapshot is complete and says so; the next backup with files fetches them."""
        runner = BackupRunner(tmp_path, file_library.library.url, "files = false")
        file_library.add(CONTENT)
        snapshot = runner.back_up()
        assert (snapshot.manifest.complete, file_library.fetched()) == (True, [])
        assert "was not fetched" in notes_on_reading(snapshot.manifest)[0]
        assert (snapshot.manifest.files.count, snapshot.manifest.files.not_fetched) == (1, 1)
        assert [(row["status"], row["sha256"]) for row in files_of(snapshot)] == [("not_fetched", None)]
        assert BackupRunner(tmp_path, file_library.library.url).back_up("second").manifest.files.new == 1


class TestContents:
    """Each content is stored once, whatever its name (I12, I13)."""

    def test_a_packed_file_is_kept_and_said(self, runner: BackupRunner, file_library: FileLibrary) -> None:
        """The library's size is that of the packed file. Each later snapshot says so, too, without another download."""
        packed = gzip.compress(CONTENT)
        file_library.add(packed)
        file_library.stored["/file-1"] = lambda _request: Answer(packed, headers={"content-encoding": "gzip"})
        for run in ("first", "second"):
            manifest = (snapshot := runner.back_up(run)).manifest
            assert (manifest.complete, manifest.files.kept, manifest.files.packed) == (True, 1, 1)
            assert any(note.startswith("files: 1 of 1 are kept packed") for note in manifest.notes)
            [row] = files_of(snapshot)
            assert (row["sha256"], row["status"]) == (sha256(packed), "kept")
            assert row["problem"].endswith("packed (gzip).")
        assert file_library.fetched() == ["/file-1"]

    def test_one_blob_for_one_content(self, runner: BackupRunner, file_library: FileLibrary) -> None:
        """Whatever its name (I13): two records of one file are one transfer. Storage sees no sign-in (I2), and no signature stays (I10)."""
        file_library.add(CONTENT)
        file_library.add(CONTENT, name="file-1")
        file_library.add(CONTENT, file=stored_file("../../outside", len(CONTENT)))
        file_library.add(CONTENT, file=stored_file("file-4", None))
        file_library.add(b"gone")
        del file_library.stored["/file-5"]
        snapshot = runner.back_up()
        files = snapshot.manifest.files
        assert sorted(file_library.fetched()) == ["/file-1", "/file-3", "/file-4", *["/file-5"] * 3]
        assert (files.count, files.kept, files.bytes) == (5, 4, len(CONTENT))
        assert runner.blobs() == {sha256(CONTENT): CONTENT}
        assert sorted(path.name for path in runner.config.parent.iterdir()) == ["bookferry.toml", "library-data"]
        assert not any({"authorization", "cookie"} & set(request.headers) for request in file_library.storage.received)
        assert not [path for path, text in texts_below(runner.data) if SIGNATURE in text]
        assert not list(runner.data.rglob(f"{FILE_LIST}*"))


class TestFailedFiles:
    """A file that cannot be fetched makes the snapshot partial, and is listed."""

    def test_each_is_listed_with_its_reason(self, runner: BackupRunner, file_library: FileLibrary) -> None:
        """The other files are stored; nothing of these is."""
        troubles: list[tuple[Any, int, str]] = [
            (lambda _: Answer(raw=b"HTTP/1.1 200 OK\r\n\r\nshort"), 22, "sent 5 bytes; the library says 22"),
            (cut, 100, "the connection broke"),
            (lambda _: Answer(b"no", status=500), 2, "answered 500"),
            (lambda _: Answer(status=302, headers={"location": "http://storage.example/x"}), 2, "is not https"),
        ]
        file_library.add(CONTENT)
        for number, (answer, declared, _words) in enumerate(troubles, 2):
            file_library.add(b"", file=stored_file(f"file-{number}", declared))
            file_library.stored[f"/file-{number}"] = answer
        manifest = runner.back_up().manifest
        assert not manifest.complete
        [problem] = manifest.problems
        assert problem.startswith(
            "files: 4 of 5 could not be fetched, so the snapshot lacks their content. The first: "
        )
        failures = {failure.publication_id: failure for failure in manifest.files.failures}
        for number, (_answer, _declared, words) in enumerate(troubles, 2):
            failure = failures.pop(number)
            assert (failure.kind, failure.asset_id, failure.name) == ("asset", 1000 + number, f"File {number}")
            assert words in failure.problem
        assert failures == {}
        assert (manifest.files.kept, manifest.files.failed) == (1, 4)
        assert list(runner.blobs()) == [sha256(CONTENT)]

    @pytest.mark.long
    def test_at_most_two_fresh_addresses(self, runner: BackupRunner, file_library: FileLibrary) -> None:
        """For a file that the storage always refuses; none for one whose record is gone meanwhile."""
        file_library.add(CONTENT)
        file_library.add(b"of a record that is gone")
        file_library.expired = 99
        error = {"error": {"code": "RecordNotFound", "message": "Gone"}}
        file_library.refusals["/assets/1002"] = Answer(error, status=404)
        refused, gone = runner.back_up().manifest.files.failures
        assert sorted(file_library.asked()) == [*["/assets/1001"] * 2, "/assets/1002"]
        assert sorted(file_library.fetched()) == [*["/file-1"] * 3, "/file-2"]
        assert "AccessDenied: Request has expired" in refused.problem
        assert "gone from the library since it was listed" in gone.problem

    def test_a_storage_that_is_down_is_not_tried_for_every_file(
        self, runner: BackupRunner, file_library: FileLibrary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After some failures in a row the rest is only listed; the next backup tries again."""
        monkeypatch.setattr(fetching, "MOST_FAILURES_IN_A_ROW", 5)
        for number in range(100):
            file_library.add(f"content {number}".encode())
        contents, file_library.stored = file_library.stored, _Down()
        manifest = runner.back_up("first").manifest
        assert (manifest.files.failed, len(manifest.files.failures)) == (100, 100)
        assert len(file_library.fetched()) < 200
        assert any("not tried, after 5 failures in a row" in failure.problem for failure in manifest.files.failures)
        file_library.stored = contents
        assert runner.back_up("second").manifest.complete


class _Down(dict[str, bytes | Callable[[Received], Answer]]):
    """A storage that answers every request with 503."""

    def get(self, _path: str, _default: object = None) -> Any:
        return lambda _request: Answer(status=503)


@pytest.mark.long
def test_files_on_the_librarys_own_host(runner: BackupRunner, file_library: FileLibrary) -> None:
    """They are charged to the budget (I1). Below /api/ the request is signed in, but not where a storage redirects to (I2)."""
    file_library.add(CONTENT, url=f"{file_library.library.url}/api/v2/content/1")
    file_library.add(CONTENT, url=f"{file_library.library.url}/downloads/1")
    file_library.add(CONTENT)
    target = f"{file_library.library.url}/api/v2/content/2"
    file_library.stored |= {
        "/api/v2/content/1": CONTENT,
        "/downloads/1": CONTENT,
        "/file-3": lambda _: Answer(status=307, headers={"location": target}),
        "/api/v2/content/2": CONTENT,
    }
    manifest = runner.back_up().manifest
    signed_in = {request.path: "authorization" in request.headers for request in file_library.library.received}
    assert [signed_in[path] for path in ("/api/v2/content/1", "/downloads/1", "/api/v2/content/2")] == [
        True,
        False,
        False,
    ]
    assert (manifest.complete, manifest.requests) == (True, len(file_library.library.received))


class TestRelativeAddresses:
    """An address counts from the answer that has it (RFC 3986, 5)."""

    def test_in_a_list_or_a_record(self, runner: BackupRunner, file_library: FileLibrary) -> None:
        """The list is at /publications/all; what it does not lead to is asked for, and counts from there. No address fails alone."""
        paths = {
            "/store/a.pdf?sig=1": "/store/a.pdf",
            "relative/a.pdf": "/api/v2/publications/relative/a.pdf",
            "../x.pdf": "/api/v2/x.pdf",
            "./x.pdf": "/api/v2/publications/x.pdf",
            "?signed=1": "/api/v2/publications/all",
        }
        for address, path in paths.items():
            file_library.stored[path] = CONTENT
            file_library.add(CONTENT, url=address)
        file_library.stored["/api/v2/assets/relative/b.pdf"] = CONTENT
        file_library.add(CONTENT, url="relative/b.pdf")
        file_library.add(CONTENT, url="../assets/relative/b.pdf", file={"metadata": {"size": len(CONTENT)}})
        storage = file_library.storage.url.partition("//")[2]
        file_library.add(CONTENT, url=f"//{storage}/file-8?{SIGNATURE}=1")
        number = file_library.add(CONTENT, url=None)
        [asset] = file_library.publications[number]["assets"]
        record = {**asset, "url": f"{file_library.storage.url}/file-{number}?{SIGNATURE}=9"}
        file_library.refusals[f"/assets/{1000 + number}"] = Answer(record)
        addresses = ("javascript:alert(1)", "data:text/plain,x", "file:///etc/passwd", "//[/x")
        for address in addresses:
            number = file_library.add(CONTENT, name=f"other {address}")
            [asset] = file_library.publications[number]["assets"]
            asset["url"] = f"{address}#://" if "://" not in address else address
        statuses = [row["status"] for row in files_of(runner.back_up())]
        assert statuses == [*["kept"] * 9, *["failed"] * len(addresses)]
        assert {*paths.values()} <= {request.path for request in file_library.library.received}
        assert not any("authorization" in request.headers for request in file_library.storage.received)


@pytest.mark.long
def test_the_listing_waits_while_many_files_do(
    runner: BackupRunner, file_library: FileLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of a file that waits may expire, and a fresh one costs a request: so only a few may wait at once. None is left out."""
    monkeypatch.setattr(fetching, "MOST_WAITING", 5)
    for number in range(120):
        file_library.add(f"content {number}".encode())
    assert runner.back_up().manifest.files.new == 120


@pytest.mark.parametrize("step", ["listing", "files"])
def test_a_disk_that_takes_no_file_ends_the_run(runner: BackupRunner, file_library: FileLibrary, step: str) -> None:
    """Whether it fails after the last page or afterwards: the error is not about one file, and nothing is published."""
    file_library.add(CONTENT)
    listed = threading.Event()

    def once_listed(_request: Received) -> Answer:
        listed.wait(60)
        return Answer(CONTENT)

    def break_the_disk(_progress: object) -> None:
        (runner.data / "files" / "sha256").write_bytes(b"no folder")
        listed.set()

    file_library.stored["/file-1"] = once_listed if step == "listing" else lambda _: Answer(status=503)
    with runner.library(on_progress=break_the_disk) as library:
        if step == "files":
            library.read_raw("old", "run", "publications")
            library.stage("old", "run", "publications")
            file_library.stored["/file-1"] = CONTENT
        with pytest.raises(StorageError, match="sha256"):
            library.read_raw("old", "run", "publications") if step == "listing" else library.fetch_files("old", "run")


def test_a_stop_does_not_wait_for_a_storage(runner: BackupRunner, file_library: FileLibrary) -> None:
    """Ctrl-C during a download leaves the file to the next run."""
    file_library.add(CONTENT)
    request_arrived, release, answered = threading.Event(), threading.Event(), []

    def hanging(_request: Received) -> Answer:
        request_arrived.set()
        release.wait(60)
        answered.append(True)
        return Answer(CONTENT)

    def stop(_progress: object) -> None:
        assert request_arrived.wait(60)
        raise KeyboardInterrupt

    file_library.stored["/file-1"] = hanging
    with pytest.raises(KeyboardInterrupt), runner.library(on_progress=stop) as library:
        library.read_raw("old", "run", "publications")
    assert answered == []
    release.set()
    assert runner.back_up("run").manifest.files.kept == 1
