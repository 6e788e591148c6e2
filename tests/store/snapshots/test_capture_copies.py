"""Copies of unfinished captures in a bucket, from which another machine continues (I9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipelines.errors import StorageError
from pipelines.state.local import LocalState
from pipelines.store.encryption import PersonalKeys
from pipelines.store.objects.buckets import Bucket
from pipelines.store.objects.objects import MANIFEST
from pipelines.store.snapshots.capture_copies import (
    CAPTURES,
    CaptureCopy,
    copies_key,
    fetch_copy,
    newest_copies,
)
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import CaptureFacts
from pipelines.store.snapshots.file_list import FILE_LIST, FileList
from pipelines.store.snapshots.snapshots import DataFolder, snapshot_key
from pipelines.store.snapshots.unfinished import continue_capture
from tests.store.snapshot_factory import KEY, STARTED_AT

COPIES = copies_key("old", "20261122T020000Z")
NEVER = 10_000.0
"""Seconds between copies: a test says when."""


class Shared(LocalState):
    """A state that several machines share."""

    is_own = False


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    facts = CaptureFacts(
        tenant="old",
        snapshot="20261122T020000Z",
        base_url="https://library.example.org",
        api="v3",
        started_at=STARTED_AT.isoformat(timespec="seconds"),
        tool="0.1.0",
        wanted=["publications", "users"],
    )
    return Capture.create(tmp_path / "here" / "run", facts, KEY)


@contextmanager
def copying(bucket: Bucket, capture: Capture, fence: Callable[[], int] = lambda: 1) -> Iterator[CaptureCopy]:
    copy = CaptureCopy(bucket, capture.path, COPIES, fence=fence, seconds=NEVER)
    try:
        yield copy
    finally:
        copy.close()


def fetched(bucket: Bucket, folder: Path) -> Capture:
    """The capture that another machine makes from the only copy."""
    [copy] = newest_copies(DataFolder(folder, objects=bucket)).values()
    fetch_copy(bucket, copy, folder)
    return Capture.open(folder, PersonalKeys([KEY]))


def pieces(bucket: Bucket) -> int:
    return sum(not entry.key.endswith(".json") for entry in bucket.below(COPIES))


def pages(capture: Capture, resource: str) -> list[tuple[bytes, bytes]]:
    with capture.page_log(resource) as log:
        return [*log.replay()]


def test_people_are_sealed_in_a_copy(bucket: Bucket, capture: Capture, tmp_path: Path) -> None:
    with copying(bucket, capture) as copy, capture.page_log("users") as log:
        log.append(b"mark", b"ada@library.example")
        copy.copy()
    assert not [entry for entry in bucket.below(CAPTURES) if b"ada@" in bucket.read(entry.key)]
    assert pages(fetched(bucket, tmp_path / "there"), "users") == [(b"mark", b"ada@library.example")]


def test_tables_and_the_list_of_files_come_along(bucket: Bucket, capture: Capture, tmp_path: Path) -> None:
    """The pages of a resource are no part of the copy any more once its table is."""
    with capture.page_log("publications") as log:
        log.append(b"mark", b"body")
    FileList(capture.path).add_known([])
    with copying(bucket, capture) as copy:
        copy.copy()
        raw = capture.raw_path("publications")
        raw.write_bytes(b"records")
        capture.add_table("raw_publications", raw, 1)
        capture.save()
        capture.delete_pages("publications")
        copy.copy()
        fetched_capture = fetched(bucket, tmp_path / "there")
    assert not fetched_capture.has_pages("publications")
    assert fetched_capture.raw_path("publications").read_bytes() == b"records"
    assert not FileList(fetched_capture.path).is_new
    assert (fetched_capture.path / FILE_LIST).exists()


def test_a_run_that_lost_its_lease_copies_nothing(bucket: Bucket, capture: Capture) -> None:
    """Not even at its end: another machine may be writing that copy."""
    lost = False

    def fence() -> int:
        if lost:
            raise StorageError("lost")
        return 1

    with copying(bucket, capture, fence) as copy, capture.page_log("publications") as log:
        log.append(b"mark", b"body")
        copy.copy()
        before = [*bucket.below(CAPTURES)]
        lost = True
        log.append(b"mark", b"another body")
        with pytest.raises(StorageError):
            copy.copy()
    assert [*bucket.below(CAPTURES)] == before


def test_what_a_run_uploads_after_the_loss_of_its_lease_changes_nothing(
    bucket: Bucket, capture: Capture, tmp_path: Path
) -> None:
    """It was stopped between the check and the upload, and its successor, which began from its copy, has gone on."""
    with capture.page_log("publications") as log:
        log.append(b"mark", b"first")
    with copying(bucket, capture, lambda: 9) as stopped:
        stopped.copy()
        fetched_capture = fetched(bucket, tmp_path / "there")
        with copying(bucket, fetched_capture, lambda: 10) as successor, fetched_capture.page_log("publications") as log:
            assert len([*log.replay()]) == 1
            log.append(b"mark", b"of the successor")
            fetched_capture.facts.announced["paging"] = "2026-12-31"
            fetched_capture.save()
            successor.copy()
        with capture.page_log("publications") as log:
            assert len([*log.replay()]) == 1
            log.append(b"mark", b"late")
        stopped.copy()
    last_capture = fetched(bucket, tmp_path / "third")
    assert [body for _mark, body in pages(last_capture, "publications")] == [b"first", b"of the successor"]
    assert last_capture.facts.announced == {"paging": "2026-12-31"}


def test_what_is_there_is_not_copied_again(bucket: Bucket, capture: Capture, tmp_path: Path) -> None:
    """Neither by the same run nor by the one on another machine that goes on: a page adds a piece, and changed facts do."""
    raw = capture.raw_path("users")
    raw.write_bytes(b"records")
    capture.add_table("raw_users", raw, 1)
    capture.save()
    with copying(bucket, capture) as copy, capture.page_log("publications") as log:
        log.append(b"mark", b"first")
        copy.copy()
        assert pieces(bucket) == 3
        copy.copy()
        log.append(b"mark", b"second")
        copy.copy()
        assert pieces(bucket) == 4
    fetched_capture = fetched(bucket, tmp_path / "there")
    with copying(bucket, fetched_capture, lambda: 2) as copy, fetched_capture.page_log("publications") as log:
        assert [body for _mark, body in log.replay()] == [b"first", b"second"]
        copy.copy()
    assert pieces(bucket) <= 5, "the log as one piece"


def test_a_copy_that_was_stopped_is_none(bucket: Bucket, capture: Capture, tmp_path: Path) -> None:
    """The one before counts, whole, until the list of the next one is there."""
    with copying(bucket, capture) as copy, capture.page_log("publications") as log:
        log.append(b"mark", b"first")
        copy.copy()
        [listed] = newest_copies(DataFolder(tmp_path / "there", objects=bucket)).values()
        before = bucket.read(listed)
        log.append(b"mark", b"second")
        copy.copy()
        bucket.replace(listed, before)
        fetched_capture = fetched(bucket, tmp_path / "there")
    assert [body for _mark, body in pages(fetched_capture, "publications")] == [b"first"]


def test_what_killed_processes_left_of_copies_is_removed(bucket: Bucket, capture: Capture, tmp_path: Path) -> None:
    """A copy of a snapshot that is published, and the rest of a copy whose removal was stopped; another one stays."""
    data = DataFolder(tmp_path / "there", PersonalKeys([KEY]), bucket, Shared(tmp_path / "state.db"))

    def begin() -> None:
        continue_capture(data, "old", "run", ["tasks"], base_url="https://other.example", api="v3", now=STARTED_AT)

    with copying(bucket, capture) as copy:
        copy.copy()
    bucket.put(f"{CAPTURES}/tenant=old/snapshot=20261101T020000Z/pages/users/0", b"there")
    begin()
    assert [*newest_copies(data)] == [COPIES]
    assert {entry.key.rpartition("/")[0] for entry in bucket.below(CAPTURES)} == {COPIES, f"{COPIES}/{Capture.FACTS}"}
    bucket.put(f"{snapshot_key('old', capture.facts.snapshot)}/{MANIFEST}", b"{}")
    begin()
    assert [*bucket.below(CAPTURES)] == []
    assert [path.name for path in data.work_path.glob("*/*")] == ["run"], (
        "what is published elsewhere is not there, either"
    )
