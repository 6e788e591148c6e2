"""The content of files in a backup, from services on real sockets to blobs: kept once, asked for once, and told where it is missing."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.backup import fetching
from pipelines.store.maintenance.verification import Part, verify_named
from pipelines.store.snapshots.file_list import FILE_LIST
from tests.backup.files.shelf import SIGNATURE, Desk, Shelf, cut, everything_but_payloads, files_of, stored_file
from tests.service.manual_clock import MIDNIGHT, ManualClock
from tests.service.scripted import Answer, Received

CONTENT = b"the content of a file\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class TestNights:
    """What is kept once is never fetched again, and costs no request (I12)."""

    def test_five_hundred_files_cost_the_second_night_nothing(self, desk: Desk, shelf: Shelf) -> None:
        """Neither a byte nor a request: ceil(N/50) for the records and not one more."""
        for number in range(500):
            shelf.add(f"content {number}".encode())
        first = desk.back_up("first")
        assert (first.manifest.complete, first.manifest.problems, first.manifest.notes) == (True, [], [])
        files = first.manifest.files
        size = sum(len(f"content {number}") for number in range(500))
        assert (files.count, files.kept, files.new, files.bytes, files.failed) == (500, 500, 500, size, 0)
        assert sorted(shelf.fetched()) == sorted(f"/file-{number}" for number in range(1, 501))
        shelf.forget()
        second = desk.back_up("second")
        assert (shelf.fetched(), len(shelf.library.received)) == ([], 10)
        assert (second.manifest.requests, second.manifest.files.new, second.manifest.files.bytes) == (10, 0, size)
        assert [(row["sha256"], row["status"]) for row in files_of(second)] == [
            (row["sha256"], "kept") for row in files_of(first)
        ]

    def test_only_what_changed_is_fetched(self, desk: Desk, shelf: Shelf) -> None:
        """A file that was replaced has another id; a new one was never seen."""
        for number in range(5):
            shelf.add(f"content {number}".encode())
        desk.back_up("first")
        shelf.forget()
        shelf.publications[3]["assets"][0] |= {"file": stored_file("other", 5), "url": "other"}
        shelf.stored["/other"] = b"other"
        shelf.add(b"new")
        second = desk.back_up("second")
        assert sorted(shelf.fetched()) == ["/file-6", "/other"]
        assert second.manifest.files.new == 2
        assert files_of(second)[2]["sha256"] == sha256(b"other")

    def test_what_a_partial_night_kept_is_not_fetched_again(self, desk: Desk, shelf: Shelf) -> None:
        """And what failed is tried again."""
        shelf.add(CONTENT)
        shelf.add(b"later")
        later = shelf.stored.pop("/file-2")
        assert not desk.back_up("first").manifest.complete
        shelf.forget()
        shelf.stored["/file-2"] = later
        assert desk.back_up("second").manifest.complete
        assert shelf.fetched() == ["/file-2"]

    def test_a_blob_that_went_missing_is_fetched_again(self, desk: Desk, shelf: Shelf) -> None:
        """Also one that lost some of its bytes."""
        shelf.add(CONTENT)
        shelf.add(b"another")
        desk.back_up("first")
        folder = desk.data / "files" / "sha256"
        (folder / sha256(CONTENT)[:2] / sha256(CONTENT)).unlink()
        (folder / sha256(b"another")[:2] / sha256(b"another")).write_bytes(b"anoth")
        shelf.forget()
        assert desk.back_up("second").manifest.files.new == 2
        assert desk.blobs() == {sha256(CONTENT): CONTENT, sha256(b"another"): b"another"}

    def test_what_no_record_tells_the_storage_is_asked(self, desk: Desk, shelf: Shelf) -> None:
        """Neither an id nor a size: a request that the storage may answer with 304."""
        shelf.add(CONTENT, file=None)

        def conditional(request: Received) -> Answer:
            known = request.headers.get("if-none-match") == '"v1"'
            return Answer(b"" if known else CONTENT, status=304 if known else 200, headers={"etag": '"v1"'})

        shelf.stored["/file-1"] = conditional
        assert desk.back_up("first").manifest.files.new == 1
        shelf.forget()
        second = desk.back_up("second")
        assert (second.manifest.complete, second.manifest.files.new, shelf.fetched()) == (True, 0, ["/file-1"])
        [row] = files_of(second)
        assert (row["status"], row["sha256"], row["bytes"], row["etag"]) == ("kept", sha256(CONTENT), 22, '"v1"')

    @pytest.mark.parametrize("more", ["files = false", ""])
    def test_without_files(self, tmp_path: Path, shelf: Shelf, more: str) -> None:
        """Nothing is fetched, the snapshot is complete, and says so; the next night with files fetches them."""
        desk = Desk(tmp_path, shelf.library.url, more)
        shelf.add(CONTENT)
        snapshot = desk.back_up(with_files=bool(more))
        assert (snapshot.manifest.complete, shelf.fetched()) == (True, [])
        assert "was not fetched" in snapshot.manifest.notes[0]
        assert (snapshot.manifest.files.count, snapshot.manifest.files.not_fetched) == (1, 1)
        assert [(row["status"], row["sha256"]) for row in files_of(snapshot)] == [("not_fetched", None)]
        assert Desk(tmp_path, shelf.library.url).back_up("second").manifest.files.new == 1


class TestContents:
    """Each content once, whatever it is called (I12, I13)."""

    def test_two_records_of_one_file_are_one_transfer(self, desk: Desk, shelf: Shelf) -> None:
        """And two files of one content are one blob."""
        shelf.add(CONTENT)
        shelf.add(CONTENT, name="file-1")
        shelf.add(CONTENT)
        manifest = desk.back_up().manifest
        assert sorted(shelf.fetched()) == ["/file-1", "/file-3"]
        assert (manifest.files.count, manifest.files.kept, manifest.files.bytes) == (3, 3, len(CONTENT))
        assert desk.blobs() == {sha256(CONTENT): CONTENT}

    def test_covers_are_files_too(self, desk: Desk, shelf: Shelf) -> None:
        """Fetched by the address in their publication."""
        shelf.add(CONTENT)
        shelf.publications[1]["cover"] = {**stored_file("cover", 5), "url": "cover"}
        shelf.stored["/cover"] = b"cover"
        snapshot = desk.back_up()
        assert {row["kind"]: row["sha256"] for row in files_of(snapshot)} == {
            "asset": sha256(CONTENT),
            "cover": sha256(b"cover"),
        }

    def test_names_from_outside_are_no_paths(self, desk: Desk, shelf: Shelf) -> None:
        """Below the data folder there are blobs under their SHA-256, and nothing beside it (I13)."""
        shelf.add(CONTENT, file=stored_file("../../outside", len(CONTENT)))
        desk.back_up()
        assert list(desk.blobs()) == [sha256(CONTENT)]
        assert sorted(path.name for path in desk.config.parent.iterdir()) == ["bookferry.toml", "library-data"]

    def test_no_sign_in_and_no_signature_anywhere(self, desk: Desk, shelf: Shelf) -> None:
        """Storage sees no credentials (I2); a signed address is in payloads only (I10)."""
        shelf.add(CONTENT)
        shelf.add(b"gone")
        del shelf.stored["/file-2"]
        desk.back_up()
        assert shelf.storage.received
        for request in shelf.storage.received:
            assert not {"authorization", "cookie"} & set(request.headers)
        assert SIGNATURE not in everything_but_payloads(desk.data)
        assert not list(desk.data.rglob(f"{FILE_LIST}*"))

    def test_verify_proves_them(self, desk: Desk, shelf: Shelf) -> None:
        """A flipped bit in a blob is found and named; their size is that of what came, whatever the record says."""
        shelf.add(CONTENT, file=stored_file("file-1", None))
        snapshot = desk.back_up()
        with desk.library() as library:
            [result] = verify_named(library.data, snapshot.name, Part(), now=MIDNIGHT)
            assert (result.ok, result.blobs, result.blobs_read) == (True, 1, 1)
            path = library.data.blob_path(sha256(CONTENT))
            path.write_bytes(b"T" + CONTENT[1:])
            [result] = verify_named(library.data, snapshot.name, Part(), now=MIDNIGHT)
        assert str(path) in result.problems[0]


class TestWhatCannotBeHad:
    """A file that cannot be had makes the snapshot partial, and is listed."""

    @pytest.mark.parametrize(
        ("answer", "declared", "words"),
        [
            (b"short", 22, "has 5 bytes; the library says 22"),
            (CONTENT, 5, "has 22 bytes; the library says 5"),
            (lambda _: Answer(raw=b"HTTP/1.1 200 OK\r\n\r\n" + CONTENT), 5, "sends more bytes than there should be"),
            (lambda _: Answer(raw=b"HTTP/1.1 200 OK\r\n\r\nshort"), 22, "sent 5 bytes; the library says 22"),
            (cut, 100, "the connection broke"),
            (lambda _: Answer(b"no", status=500), 2, "answered 500"),
            (lambda _: Answer(b"no", status=403), 2, "answered 403"),
            (None, 2, "answered 404 Not Found (NoSuchKey)"),
            (lambda _: Answer(status=302, headers={"location": "http://storage.example/x"}), 2, "is not https"),
            (
                lambda _: Answer(status=302, headers={"location": "/file-2?X-Amz-Signature=9"}),
                2,
                "redirects more than 5 times",
            ),
        ],
    )
    def test_it_is_listed_with_its_reason(
        self, desk: Desk, shelf: Shelf, answer: Any, declared: int, words: str
    ) -> None:
        """The other files are kept; nothing of this one is."""
        shelf.add(CONTENT)
        shelf.add(b"", file=stored_file("file-2", declared))
        shelf.stored["/file-2"] = answer
        if answer is None:
            del shelf.stored["/file-2"]
        manifest = desk.back_up().manifest
        assert not manifest.complete
        [problem] = manifest.problems
        assert problem.startswith("files: 1 of 2 could not be had, so the snapshot lacks their content. The first: ")
        assert words in problem
        [failure] = manifest.files.failures
        assert (failure.publication_id, failure.kind, failure.asset_id, failure.name) == (2, "asset", 1002, "File 2")
        assert words in failure.problem
        assert (manifest.files.kept, manifest.files.failed) == (1, 1)
        assert list(desk.blobs()) == [sha256(CONTENT)]

    def test_an_expired_address_is_asked_for_again(self, desk: Desk, shelf: Shelf) -> None:
        """One request for a fresh one, charged to the budget and counted."""
        shelf.add(CONTENT)
        shelf.publications[1]["cover"] = {**stored_file("cover", 5), "url": "cover"}
        shelf.stored["/cover"] = b"cover"
        shelf.expired, shelf.issue = 1, 1
        shelf.refusals = _Renewing(shelf)
        manifest = desk.back_up().manifest
        assert (manifest.complete, manifest.files.kept) == (True, 2)
        assert sorted(shelf.asked()) == ["/assets/1001", "/publications/1"]
        assert manifest.requests == 3

    def test_at_most_two_fresh_addresses(self, desk: Desk, shelf: Shelf) -> None:
        """Of a file that the storage refuses for ever."""
        shelf.add(CONTENT)
        shelf.expired = 99
        manifest = desk.back_up().manifest
        assert (shelf.asked(), len(shelf.fetched())) == (["/assets/1001"] * 2, 3)
        assert "AccessDenied: Request has expired" in manifest.files.failures[0].problem

    def test_a_record_that_is_gone_meanwhile(self, desk: Desk, shelf: Shelf) -> None:
        """It says so."""
        shelf.add(CONTENT)
        shelf.expired = 99
        shelf.refusals["/assets/1001"] = Answer({"error": {"code": "RecordNotFound", "message": "Gone"}}, status=404)
        assert "gone from the library since it was listed" in desk.back_up().manifest.problems[0]

    def test_a_record_without_an_address_is_asked_for_once(self, desk: Desk, shelf: Shelf) -> None:
        """A missing url is an error, not "no file" (service.md#scopes); one 403 is enough for all of them."""
        for _ in range(20):
            shelf.add(CONTENT, url=None)
        for number in range(1001, 1021):
            shelf.refusals[f"/assets/{number}"] = Answer(status=403)
        manifest = desk.back_up().manifest
        assert (len(shelf.asked()), shelf.fetched()) == (1, [])
        assert (manifest.files.failed, manifest.complete) == (20, False)
        assert "answered 403" in manifest.problems[0]

    def test_an_address_that_only_the_asset_itself_has(self, desk: Desk, shelf: Shelf) -> None:
        """Then it is fetched."""
        shelf.add(CONTENT, url=None)
        asset = {**shelf.publications[1]["assets"][0], "url": f"{shelf.storage.url}/file-1?{SIGNATURE}=9"}
        shelf.refusals["/assets/1001"] = Answer(asset)
        assert desk.back_up().manifest.complete

    def test_a_storage_that_is_down_is_not_tried_for_every_file(
        self, desk: Desk, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After some in a row the rest is only named; the next night tries them again."""
        monkeypatch.setattr(fetching, "MOST_IN_A_ROW", 5)
        for number in range(100):
            shelf.add(f"content {number}".encode())
        contents, shelf.stored = shelf.stored, _Down()
        manifest = desk.back_up("first").manifest
        assert (manifest.files.failed, len(manifest.files.failures)) == (100, 100)
        assert len(shelf.fetched()) < 200
        assert any("not tried, after 5 in a row that failed" in one.problem for one in manifest.files.failures)
        shelf.stored = contents
        assert desk.back_up("second").manifest.complete


class _Renewing(dict[str, Answer]):
    """A library whose addresses are good as soon as somebody asks for a record again."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self._shelf = shelf

    def __contains__(self, path: object) -> bool:
        self._shelf.issue = 1 if path == "/publications/all" else 2
        return False


class _Down(dict[str, bytes | Callable[[Received], Answer]]):
    """A storage that answers 503 to everything."""

    def get(self, _path: str, _default: object = None) -> Any:
        return lambda _request: Answer(status=503)


class TestTheLibrarysOwnHost:
    """An address there is charged to the budget; below /api/ it goes signed in (I1, I2)."""

    def test_below_the_api(self, desk: Desk, shelf: Shelf) -> None:
        """As the API asks for a sign-in, it gets one."""
        shelf.add(CONTENT, url=f"{shelf.library.url}/api/v2/content/1")
        shelf.stored["/api/v2/content/1"] = CONTENT
        manifest = desk.back_up().manifest
        [request] = [one for one in shelf.library.received if one.path.endswith("/content/1")]
        assert "authorization" in request.headers
        assert (manifest.complete, manifest.requests, shelf.fetched()) == (True, 2, [])

    def test_beside_the_api(self, desk: Desk, shelf: Shelf) -> None:
        """Without a sign-in, and charged all the same."""
        shelf.add(CONTENT, url=f"{shelf.library.url}/downloads/1")
        shelf.stored["/downloads/1"] = CONTENT
        manifest = desk.back_up().manifest
        [request] = [one for one in shelf.library.received if one.path == "/downloads/1"]
        assert "authorization" not in request.headers
        assert (manifest.complete, manifest.requests) == (True, 2)

    def test_a_redirect_to_it_is_not_signed_in(self, desk: Desk, shelf: Shelf) -> None:
        """A storage cannot make us ask the library for what it likes."""
        shelf.add(CONTENT)
        target = f"{shelf.library.url}/api/v2/content/1"
        shelf.stored |= {
            "/file-1": lambda _: Answer(status=307, headers={"location": target}),
            "/api/v2/content/1": CONTENT,
        }
        desk.back_up()
        [request] = [one for one in shelf.library.received if one.path.endswith("/content/1")]
        assert "authorization" not in request.headers


def test_the_listing_waits_for_files_that_have_waited_long(tmp_path: Path, shelf: Shelf) -> None:
    """Addresses that expire cost a request each: the next page is not read while files of an earlier one have waited for minutes."""
    clock = ManualClock()
    desk = Desk(tmp_path, shelf.library.url, clock=clock)
    for number in range(120):
        shelf.add(f"content {number}".encode())
    first = shelf.stored["/file-1"]
    assert isinstance(first, bytes)

    def late(_request: Received) -> Answer:
        clock.sleep(fetching.PATIENCE + 1)
        return Answer(first)

    shelf.stored["/file-1"] = late
    assert desk.back_up().manifest.files.new == 120


def test_a_stop_waits_for_no_storage(desk: Desk, shelf: Shelf) -> None:
    """Ctrl-C while a file is under way: it is left for the next run, which has it."""
    shelf.add(CONTENT)
    asked, release, answered = threading.Event(), threading.Event(), []

    def hanging(_request: Received) -> Answer:
        asked.set()
        release.wait(60)
        answered.append(True)
        return Answer(CONTENT)

    def stop(_progress: object) -> None:
        assert asked.wait(60)
        raise KeyboardInterrupt

    shelf.stored["/file-1"] = hanging
    with pytest.raises(KeyboardInterrupt), desk.library(on_progress=stop) as library:
        library.read_raw("old", "run", "publications")
    assert answered == []
    release.set()
    assert desk.back_up("run").manifest.files.kept == 1
