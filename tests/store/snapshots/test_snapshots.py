"""Snapshots: they are there as a whole or not at all (I5), and are found by name."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from types import FrameType
from typing import NoReturn

import pytest

from pipelines.errors import ConfigurationError, StorageError, TemporaryError
from pipelines.store.objects.objects import MANIFEST
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.manifest import FORMAT
from pipelines.store.snapshots.publishing import publish
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.snapshots.unfinished import open_capture
from tests.store.snapshot_factory import (
    SNAPSHOT_ID,
    STARTED_AT,
    assert_intact,
    files_below,
    finished_capture,
    make_snapshot,
    new_capture,
    publication_payloads,
    write_raw,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """Three snapshots of `old`, the last one partial; one of `other`; only a partial one of `poor`."""
    data = DataFolder(tmp_path_factory.mktemp("data") / "library-data")
    for days, complete in ((0, True), (1, True), (2, False)):
        make_snapshot(data, now=STARTED_AT + timedelta(days=days), complete=complete)
    make_snapshot(data, tenant="other")
    make_snapshot(data, tenant="poor", now=STARTED_AT + timedelta(days=5), complete=False)
    return data


class TestPublication:
    """A reader sees a complete snapshot or none (I5)."""

    @pytest.mark.long
    def test_a_reader_at_any_instant_sees_all_or_nothing(self, data: DataFolder) -> None:
        """A listing between any two calls of `publish` has the last snapshot, and the new one only when it is complete."""
        make_snapshot(data, now=STARTED_AT - timedelta(days=1))
        capture = finished_capture(data)
        counts = []

        def look(frame: FrameType, event: str, _argument: object) -> None:
            if event in ("call", "c_call", "return", "c_return") and "/pipelines/store/" in frame.f_code.co_filename:
                sys.setprofile(None)
                snapshots = data.snapshots()
                counts.append(len(snapshots))
                if len(snapshots) != counts[-2:][0]:
                    assert_intact(snapshots[-1])
                sys.setprofile(look)

        sys.setprofile(look)
        try:
            published = publish(data, capture, STARTED_AT)
        finally:
            sys.setprofile(None)
        assert_intact(published)
        assert sorted(counts) == counts
        assert {1, 2} == set(counts)
        assert len(counts) > 100, "the listings happen during publish"

    @pytest.mark.long
    def test_two_captures_in_one_second_get_names_of_their_own(self, data: DataFolder) -> None:
        """A snapshot is never replaced, even by one that began in the same second."""
        names = [make_snapshot(data).manifest.snapshot for _ in range(3)]
        assert names == [SNAPSHOT_ID, "20261120T020001Z", "20261120T020002Z"]

    @pytest.mark.parametrize("missing", ["raw_publications", "publication_authors", None])
    def test_an_unfinished_capture_is_not_published(self, data: DataFolder, missing: str | None) -> None:
        """Steps can be repeated one by one, but a capture without a table, or without any resource, is never published."""
        capture = new_capture(data) if missing is None else finished_capture(data)
        capture.facts.tables.pop(missing, None)
        with pytest.raises(StorageError, match=rf"not published, because {missing or 'every table'} is still missing"):
            publish(data, capture, STARTED_AT)
        assert data.snapshots() == []

    def test_a_file_that_vanished_is_not_published(self, data: DataFolder) -> None:
        """Checksums are computed from the files on the disk."""
        capture = finished_capture(data)
        capture.raw_path("publications").unlink()
        with pytest.raises(StorageError, match="The last good snapshot is untouched"):
            publish(data, capture, STARTED_AT)
        assert data.snapshots() == []


class TestCaptures:
    """A capture grows in a work folder of its own. The next run removes an unfinished one."""

    def test_the_next_run_removes_unfinished_captures(self, data: DataFolder) -> None:
        """Those of the same resources; those of other resources and tenants stay."""
        for tenant, run in (("old", "killed"), ("other", "working")):
            write_raw(new_capture(data, tenant=tenant, run=run), publication_payloads(1))
        new_capture(data, tenant="old", run="users", resources=["users"])
        new_capture(data, tenant="old", run="next")
        assert files_below(data.work_path) == [
            "tenant=old/next/capture.json",
            "tenant=old/users/capture.json",
            "tenant=other/working/capture.json",
            "tenant=other/working/raw/publications.parquet",
        ]

    def test_a_damaged_capture(self, data: DataFolder) -> None:
        """An unreadable capture.json is reported."""
        (new_capture(data).path / Capture.FACTS).write_bytes(b'{"tenant": ')
        with pytest.raises(StorageError, match=r"no capture in progress that can be read \(.*truncated"):
            open_capture(data, "old", "run")


def unreachable(*_: object) -> NoReturn:
    """What a bucket's service says that cannot be reached."""
    raise TemporaryError("the service cannot be reached")


def write_manifest(data: DataFolder, key: str, content: bytes) -> None:
    """Overwrite a manifest in a store of any kind."""
    data.objects.replace(f"{key}/{MANIFEST}", content)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda content: content[: len(content) // 2],
    "empty": lambda _content: b"",
    "not UTF-8": lambda _content: b"\xff\xfe",
    "deep": lambda _content: b"[" * 100_000,
    "other form": lambda _content: b'{"format": 1, "tool": "bookferry"}',
    "type": lambda content: content.replace(b'"requests": 1', b'"requests": "one"'),
    "too large": lambda content: content.replace(b'"requests": 1', b'"requests": 1' + b"0" * 30),
    "instant": lambda content: content.replace(b'"started_at": "2026', b'"started_at": "soon'),
    "no tables": lambda content: content.replace(b'"tables"', b'"tables": {}, "tables_of_before"'),
    "one table less": lambda content: content.replace(b'"raw_publications": {', b'"other": {'),
    "without a zone": lambda content: content.replace(b"+00:00", b""),
}


class TestManifests:
    """A damaged manifest concerns its own snapshot alone, which is named with a remedy; those who ask for it by name are refused."""

    def test_a_damaged_manifest(self, data: DataFolder, caplog: pytest.LogCaptureFixture) -> None:
        """The others are read, the next one can be made; whoever lists them, and whoever asks for it, learns the file's name."""
        damaged, sound = make_snapshot(data), [make_snapshot(data, now=STARTED_AT + timedelta(days=1)).name]
        content = data.objects.read(f"{damaged.key}/{MANIFEST}")
        address = re.escape(data.objects.address_of(damaged.key))
        message = rf"{address}/manifest\.json is damaged .*Put it back from a copy"
        for kind, damage in DAMAGES.items():
            caplog.clear()
            write_manifest(data, damaged.key, damage(content))
            assert [snapshot.name for snapshot in data.snapshots()] == sound, kind
            assert re.search(rf"The snapshot {damaged.name} is left out: {message}", caplog.text), kind
            for name in (damaged.name, SNAPSHOT_ID):
                with pytest.raises(StorageError, match=message):
                    data.find_snapshot(name)
            assert data.find_snapshot("old").name == sound[-1]
            assert [snapshot.name for snapshot in data.complete_snapshots("old")] == sound
            sound.append(make_snapshot(data, now=STARTED_AT + timedelta(days=1 + len(sound))).name)
            assert [snapshot.name for snapshot in data.snapshots()] == sound, kind

    @pytest.mark.parametrize("is_folder", [True, False])
    def test_a_manifest_that_is_no_readable_file(self, data: DataFolder, *, is_folder: bool) -> None:
        """The file system's own refusal concerns one snapshot, too, and so does a file that is not there."""
        damaged, sound = make_snapshot(data), make_snapshot(data, now=STARTED_AT + timedelta(days=1))
        manifest = damaged.path / MANIFEST
        manifest.unlink()
        if is_folder:
            manifest.mkdir()
        assert [snapshot.name for snapshot in data.snapshots()] == [sound.name]
        with pytest.raises(StorageError, match=re.escape(str(manifest))):
            data.find_snapshot(damaged.name)

    def test_a_bucket_that_fails_is_no_damage(self, stored: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing is known of a snapshot whose manifest a service does not send now."""
        snapshot = make_snapshot(stored)
        monkeypatch.setattr(type(stored.objects), "read", unreachable)
        with pytest.raises(TemporaryError):
            stored.find_snapshot(snapshot.name)

    @pytest.mark.long
    def test_a_newer_manifest(self, data: DataFolder) -> None:
        """A newer format is refused by its number, whatever else is in the file."""
        snapshot = make_snapshot(data)
        (snapshot.path / MANIFEST).write_text(
            json.dumps({"format": FORMAT + 1, "tool": "bookferry 9.0", "shape": "unheard of"})
        )
        with pytest.raises(StorageError, match=r"written by a newer version \(bookferry 9\.0\)\. Update Bookferry"):
            data.find_snapshot(snapshot.name)

    def test_a_description_is_read_when_it_is_asked_for(self, data: DataFolder) -> None:
        """One that is none leaves the snapshot usable, as if the service had none; so does a key that a later version added."""
        snapshot = make_snapshot(data)
        content = json.loads((snapshot.path / MANIFEST).read_bytes())
        for description, address in (({"address": "/api", "learned_at": "today"}, "/api"), ({"resources": 7}, None)):
            later = {**content, "description": description, "verified_at": "of a later version"}
            (snapshot.path / MANIFEST).write_text(json.dumps(later))
            [read] = data.snapshots()
            assert (read.manifest.description and read.manifest.description.address) == address

    def test_a_copied_folder(self, data: DataFolder) -> None:
        """A copied snapshot would be counted twice."""
        snapshot = make_snapshot(data)
        shutil.copytree(snapshot.path, snapshot.path.with_name("snapshot=copy"))
        assert [snapshot.name for snapshot in data.snapshots()] == [snapshot.name]
        with pytest.raises(StorageError, match=f"belongs in a folder tenant=old/snapshot={SNAPSHOT_ID}"):
            data.find_snapshot("old/copy")

    @pytest.mark.long
    def test_a_snapshot_that_is_removed_while_others_are_listed(
        self, data: DataFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Pruning during a listing is no damage."""
        gone = make_snapshot(data)
        make_snapshot(data, now=STARTED_AT + timedelta(days=1))
        listed = data.snapshot_keys()
        shutil.rmtree(gone.path)
        monkeypatch.setattr(DataFolder, "snapshot_keys", lambda *_: listed)
        assert [snapshot.manifest.snapshot for snapshot in data.snapshots()] == ["20261121T020000Z"]


class TestFinding:
    """`tenant/id`, the id alone, or a tenant for its newest complete snapshot."""

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("old", "old/20261121T020000Z"),
            ("old/20261120T020000Z", "old/20261120T020000Z"),
            ("other/20261120T020000Z", "other/20261120T020000Z"),
            ("20261121T020000Z", "old/20261121T020000Z"),
            ("20261122T020000Z", "old/20261122T020000Z"),
            ("old/20261122T020000Z", "old/20261122T020000Z"),
            ("20261125T020000Z", "poor/20261125T020000Z"),
        ],
    )
    def test_found(self, filled: DataFolder, name: str, expected: str) -> None:
        """Each form names exactly one snapshot; a partial one is found by its own name only (I4)."""
        assert filled.find_snapshot(name).name == expected

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("20261120T020000Z", "names snapshots of several tenants: old/20261120T020000Z, other/20261120T020000Z"),
            ("poor", "has no complete snapshot .* the newest partial one is poor/20261125T020000Z"),
            ("new", "There is no snapshot 'new'"),
            ("new/20261120T020000Z", "There is no snapshot"),
            ("old/", "There is no snapshot"),
            ("", "There is no snapshot"),
            ("../old", "There is no snapshot"),
        ],
    )
    def test_not_found(self, filled: DataFolder, name: str, message: str) -> None:
        """A name that matches no snapshot, or several, is an error that lists the candidates."""
        with pytest.raises(ConfigurationError, match=message):
            filled.find_snapshot(name)
