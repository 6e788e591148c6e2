"""The backup flow, from a service on a real socket to a published snapshot: what is stored, and what is proved (I4, I5, I6)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.backup import flow, read
from pipelines.backup.flow import nightly_resources
from pipelines.errors import (
    ProtocolError,
    StorageError,
    TenantBusyError,
)
from pipelines.inventory import RESOURCES
from pipelines.records.tables.registry import STAGED
from pipelines.settings.tenant import TenantSettings
from pipelines.store.catalogue import rebuild_catalogue
from pipelines.store.snapshots.unfinished import open_capture
from tests.backup.conftest import RECORDS
from tests.backup.runner import BackupRunner
from tests.sandbox.process import SandboxProcess
from tests.service.scripted import Answer, Received, ScriptedServer


@pytest.fixture(autouse=True)
def _single_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first walk says; test_walks.py has those after it."""
    monkeypatch.setattr(read, "WALKS", 1)


@pytest.fixture
def runner(tmp_path: Path, sandbox: SandboxProcess) -> BackupRunner:
    """Backups of the sandbox's library."""
    return BackupRunner(tmp_path, sandbox.base_url())


@pytest.fixture
def canned(tmp_path: Path) -> Iterator[Callable[..., BackupRunner]]:
    """Starts services that answer page n with the n-th body and the n-th X-Total, and returns backups of them."""
    with ExitStack() as servers:

        def make(
            *bodies: bytes, totals: Sequence[int | list[str] | None] = (None,), kind: str = "application/json"
        ) -> BackupRunner:
            def answer(request: Received) -> Answer:
                page = int(request.query["page"])
                total = totals[min(page, len(totals)) - 1]
                counted = {} if total is None else {"x-total": total if isinstance(total, list) else str(total)}
                body = bodies[page - 1] if page <= len(bodies) else b'{"records": []}'
                return Answer(body, headers={"content-type": kind, **counted})

            return BackupRunner(tmp_path, servers.enter_context(ScriptedServer(answer)).url)

        yield make


def page_of(*records: object) -> bytes:
    return json.dumps({"records": records}).encode()


@pytest.mark.long
class TestPayloads:
    """The raw payload is stored byte for byte (I6)."""

    def test_odd_bytes(self, canned: Callable[..., BackupRunner]) -> None:
        """Blanks, escapes, long numbers and repeated keys are neither normalised nor rounded."""
        payloads = [
            b'{ "id" :\t1 ,\r\n "title":"caf\\u00e9 \\ud83d\\ude00 \xc3\xa9"\n}',
            b'{"id":2,"x":12345678901234567890123456789.10000000000000000001e-7,"y":1.0,"z":-0}',
            b'{"title":"first","id":3,"title":"second","":null}',
            b'{"id":4,"abstract":"\\u0000\\/ \xe2\x80\xa8 \xef\xbf\xbf \xf0\x9f\x93\x9a"}',
        ]
        body = b' {"records" : [ ' + b" ,\n".join(payloads) + b' ] , "more": [{"id": 5}]}\n'
        runner = canned(body, totals=[4])
        snapshot = runner.back_up()
        assert snapshot.manifest.complete
        rows = runner.raw_rows(snapshot)
        assert [(row["payload"].encode(), row["id"], row["page"]) for row in rows] == [
            (payload, number, 1) for number, payload in enumerate(payloads, 1)
        ]
        staged = pq.read_table(snapshot.path / "publications.parquet").column("sha256").to_pylist()
        assert (
            [row["sha256"] for row in rows] == staged == [hashlib.sha256(payload).hexdigest() for payload in payloads]
        )
        assert snapshot.manifest.residue == {"publications": {"x": 1, "y": 1, "z": 1, "": 1}}


class TestProof:
    """Complete only if distinct ids = X-Total and nothing moved meanwhile; otherwise partial, and never the newest complete one (I4)."""

    @pytest.mark.parametrize(
        ("pages", "totals", "records", "problems"),
        [
            (
                [[1], [2], [3]],
                [3, 4, 3],
                3,
                ["X-Total changed during the listing (3 at first, 3 at last): people added or"],
            ),
            ([[1]], [["1", "2"]], 1, ["The service announced 2 records (X-Total) and sent 1 different one."]),
            ([[1]], [["2, 1"]], 1, ["The service announced 2 records (X-Total) and sent 1 different one."]),
            ([[1]], [["1", "1"]], 1, []),
            (
                [[1, 2], [2]],
                [3],
                2,
                ["1 record listed twice, for example id 2.", "The service announced 3 records"],
            ),
            ([[1, 2], [2]], [None], 2, ["1 record listed twice, for example id 2."]),
            (
                [[None, "x", 4, [1], {}]],
                [5],
                5,
                [
                    "4 records without an id that is a whole number, in the raw table only.",
                    "The service announced 5 records (X-Total) and sent 1 different one.",
                ],
            ),
        ],
    )
    def test_of_scripted_lists(
        self,
        canned: Callable[..., BackupRunner],
        pages: list[list[Any]],
        totals: list[Any],
        records: int,
        problems: list[str],
    ) -> None:
        """Of several X-Totals the largest counts. A record that came twice is there once, as it came last; one without an id, too."""
        bodies = [page_of(*({"id": key, "page": number} for key in keys)) for number, keys in enumerate(pages)]
        runner = canned(*bodies, totals=totals)
        snapshot = runner.back_up()
        manifest, rows = snapshot.manifest, runner.raw_rows(snapshot)
        assert manifest.complete == (problems == [])
        for expected in problems:
            assert any(problem.startswith(f"publications: {expected}") for problem in manifest.problems)
        assert len(rows) == records == manifest.tables["publications"].rows
        newest = {row["id"]: json.loads(row["payload"])["page"] for row in rows}
        assert newest.get(2, 1) == 1


class TestFailure:
    """A failed run publishes nothing, reports the cause, and leaves the last good snapshot current (I5)."""

    def test_bytes_that_are_no_text(self, canned: Callable[..., BackupRunner]) -> None:
        """JSON is UTF-8; a list in which nothing else can be read stops the run before any of it is stored."""
        runner = canned(b'{"records": [{"id": 1}, {"id": 2, "title": "caf\xe9"}]}', totals=[2], kind="text/plain")
        with pytest.raises(ProtocolError, match=r"not a listing .*utf-8"):
            runner.back_up()

    def test_a_snapshot_that_the_catalogue_cannot_show(
        self, runner: BackupRunner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If only the views fail, the message says that the snapshot is published."""
        monkeypatch.setattr(flow, "rebuild_catalogue", rebuild_catalogue)
        with runner.library() as library:
            library.data.catalogue_path.mkdir(parents=True)
            library.read_raw("old", "run", "publications")
            library.stage("old", "run", "publications")
            library.fetch_files("old", "run")
            with pytest.raises(
                StorageError, match=r"^Snapshot old/\d+T\d+Z is whole and published, but library\.duckdb does not"
            ):
                library.publish("old", "run")
            assert library.data.find_snapshot("old").manifest.complete

    def test_no_listing(self, runner: BackupRunner) -> None:
        """Staging and publishing need a listing of the same run."""
        with runner.library() as library:
            for step in (lambda: library.stage("old", "run", "publications"), lambda: library.publish("old", "run")):
                with pytest.raises(
                    StorageError,
                    match=r"no capture in progress.*raw table together with them, or run `bookferry backup`",
                ):
                    step()


class TestSteps:
    """Steps of one run work on one capture, under one lease."""

    @pytest.mark.long
    def test_a_second_run_is_refused_until_the_first_has_ended(
        self, runner: BackupRunner, sandbox: SandboxProcess
    ) -> None:
        """A run has the tenant alone from its first step to its last; the second run sends no request."""
        with runner.library() as first, runner.library() as second:
            first.read_raw("old", "first", "publications")
            for step in ("read_raw", "stage"):
                with pytest.raises(TenantBusyError):
                    getattr(second, step)("old", "second", "publications")
            assert sandbox.counts()["requests"] == 3
            first.stage("old", "first", "publications")
            first.fetch_files("old", "first")
            first.publish("old", "first")
            with pytest.raises(TenantBusyError):
                second.publish("old", "first")
            first.close()
            second.read_raw("old", "second", "publications")


@pytest.mark.long
class TestStaging:
    """Publications are staged while they are read, and can be staged again from their raw table."""

    def test_both_make_the_same_tables(self, runner: BackupRunner, monkeypatch: pytest.MonkeyPatch) -> None:
        """The tables exist when the listing ends; made again from the raw file they are the same. Both use the configured types."""
        monkeypatch.setattr(read, "BATCH_BYTES", 1)  # each page is a batch
        with runner.config.open("a") as config:
            config.write('[identifiers.state]\npattern = "[a-z]+"\nfields = ["import_state"]\n')
        with runner.library() as library:
            capture, _facts = library.read_raw("old", "run", "publications")
            names = [table.name for table in STAGED["publications"]]
            assert set(capture.facts.tables) == {"raw_publications", *names}
            tables = {name: pq.read_table(capture.path / capture.facts.tables[name].path) for name in names}
            residue = capture.facts.residue
            for name in names:
                del capture.facts.tables[name]
            capture.save()
            library.stage("old", "run", "publications")
            reopened_capture = open_capture(library.data, "old", "run")
            for name in names:
                assert pq.read_table(reopened_capture.path / reopened_capture.facts.tables[name].path).equals(
                    tables[name]
                ), name
            assert reopened_capture.facts.residue == residue
        types = tables["publication_identifiers"].column("type").to_pylist()
        assert types.count("state") == RECORDS


@pytest.mark.parametrize(
    ("api", "settings", "expected"),
    [
        ("v3", {}, list(RESOURCES)),
        ("v2", {"resources": ["tasks", "publications"]}, ["publications", "tasks"]),
    ],
)
def test_the_resources_of_a_night(api: str, settings: dict[str, Any], expected: list[str]) -> None:
    """Those of the settings, else all of the version; always in reading order."""
    tenant = TenantSettings.model_validate({"base_url": "https://library.example.org", "api": api, **settings})
    assert [*nightly_resources(tenant)] == expected
