"""The backup flow, from a service on a real socket to a published snapshot: what is kept, and what is proved (I4, I5, I6)."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from pipelines.backup import read, staging
from pipelines.backup.flow import Backup, checked_resources
from pipelines.backup.read import Progress
from pipelines.errors import (
    BookferryError,
    ConfigurationError,
    ForeignOriginError,
    PagingLoopError,
    ProtocolError,
    RefusedError,
    SignInError,
    StorageError,
    TenantBusyError,
)
from pipelines.inventory import RESOURCES
from pipelines.records.tables.registry import STAGED, TABLES
from pipelines.settings.tenant import TenantSettings
from pipelines.store.catalogue import open_catalogue
from pipelines.store.snapshots.snapshots import Snapshot
from tests.sandbox.process import SandboxProcess

RECORDS = 120

CONFIG = """
data = "library-data"
[tenants.old]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000
walks = 1
"""


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[SandboxProcess]:
    """One sandbox for all tests of the module: some of the real records, the same for a test that changes them, and an empty library."""
    tenants = (f"library=real:{RECORDS}", f"moving=real:{RECORDS}", "bare=empty")
    with SandboxProcess(*(f"--tenant={tenant}" for tenant in tenants), "--requests-per-minute", "0") as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(shared_sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch) -> SandboxProcess:
    """The sandbox without liberties, faults and counts; its sign-in is in the environment."""
    shared_sandbox.reset()
    shared_sandbox.change(requests_per_minute=0)
    monkeypatch.setenv("TEST_USER", shared_sandbox.user)
    monkeypatch.setenv("TEST_PASSWORD", shared_sandbox.password)
    return shared_sandbox


@dataclass
class Desk:
    """A configuration in a folder of its own, and backups with it."""

    config: Path
    progress: list[Progress] = field(default_factory=list)

    def library(self) -> Backup:
        """A library of its own, as each run has one."""
        return Backup(Backup.open(self.config).settings, on_progress=self.progress.append)

    def back_up(self, run: str = "run") -> Snapshot:
        """The three steps of a backup."""
        with self.library() as library:
            library.read_raw("old", run, "publications")
            library.stage("old", run, "publications")
            library.fetch_files("old", run)
            return library.publish("old", run)

    def raw(self, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Rows of the raw table."""
        rows: list[dict[str, Any]] = pq.read_table(snapshot.path / "raw" / "publications.parquet").to_pylist()
        return rows

    def shown(self) -> list[tuple[str, int]]:
        """Snapshot and number of records that an analyst sees."""
        with self.library() as library, open_catalogue(library.data) as database:
            rows: list[tuple[str, int]] = database.execute(
                "SELECT snapshot, count(*) FROM publications GROUP BY ALL"
            ).fetchall()
        return rows


def desk_for(folder: Path, base_url: str) -> Desk:
    config = folder / "bookferry.toml"
    config.write_text(CONFIG.format(base_url=base_url))
    return Desk(config)


@pytest.fixture
def desk(tmp_path: Path, sandbox: SandboxProcess) -> Desk:
    """A desk at the sandbox's library."""
    return desk_for(tmp_path, sandbox.base_url())


@dataclass
class Canned:
    """A service that answers page n with the n-th body given, and X-Total as given for that page."""

    bodies: Sequence[bytes]
    totals: Sequence[int | None]

    def page(self, number: int) -> tuple[bytes, int | None]:
        """Body and X-Total of a page; an empty one beyond the last."""
        inside = number <= len(self.bodies)
        total = self.totals[min(number, len(self.totals)) - 1]
        return (self.bodies[number - 1] if inside else b'{"records": []}'), total


@pytest.fixture
def canned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Desk]]:
    """Makes a desk at a service that says exactly what the test says."""
    monkeypatch.setenv("TEST_USER", "somebody")
    monkeypatch.setenv("TEST_PASSWORD", "made-up")
    servers: list[ThreadingHTTPServer] = []

    def make(*bodies: bytes, totals: Sequence[int | None] = (None,), kind: str = "application/json") -> Desk:
        service = Canned(bodies, totals)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body, total = service.page(int(parse_qs(urlsplit(self.path).query)["page"][0]))
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                if total is not None:
                    self.send_header("X-Total", str(total))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return desk_for(tmp_path, f"http://127.0.0.1:{server.server_port}")

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


def page_of(*records: object) -> bytes:
    return json.dumps({"records": records}).encode()


class TestWhatIsKept:
    """The raw payload is kept byte for byte (I6)."""

    def test_every_record_as_it_was_sent(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """Of the real records each byte, its hash, its id and its page; and the staged tables show the same hashes."""
        snapshot = desk.back_up()
        with httpx.Client(base_url=sandbox.base_url(), auth=(sandbox.user, sandbox.password)) as client:
            pages = [client.get("/api/v2/publications/all", params={"per_page": 50, "page": n}).text for n in (1, 2, 3)]
        rows = desk.raw(snapshot)
        assert len(rows) == RECORDS
        for row in rows:
            assert json.loads(row["payload"])["id"] == row["id"]
            assert row["sha256"] == hashlib.sha256(row["payload"].encode()).hexdigest()
            unsigned = row["payload"].partition('"url":')[0]  # each answer signs the addresses anew
            assert unsigned in pages[row["page"] - 1]
        staged = pq.read_table(snapshot.path / "publications.parquet", columns=["id", "sha256"]).to_pylist()
        assert staged == [{"id": row["id"], "sha256": row["sha256"]} for row in rows]

    def test_odd_bytes(self, canned: Callable[..., Desk]) -> None:
        """Blanks, escapes, numbers of any length and repeated keys are neither tidied up nor rounded."""
        payloads = [
            b'{ "id" :\t1 ,\r\n "title":"caf\\u00e9 \\ud83d\\ude00 \xc3\xa9"\n}',
            b'{"id":2,"x":12345678901234567890123456789.10000000000000000001e-7,"y":1.0,"z":-0}',
            b'{"title":"first","id":3,"title":"second","":null}',
            b'{"id":4,"abstract":"\\u0000\\/ \xe2\x80\xa8 \xef\xbf\xbf \xf0\x9f\x93\x9a"}',
        ]
        body = b' {"records" : [ ' + b" ,\n".join(payloads) + b' ] , "more": [{"id": 5}]}\n'
        desk = canned(body, totals=[4])
        snapshot = desk.back_up()
        assert snapshot.manifest.complete
        assert [row["payload"].encode() for row in desk.raw(snapshot)] == payloads
        assert [row["sha256"] for row in desk.raw(snapshot)] == [hashlib.sha256(one).hexdigest() for one in payloads]
        assert snapshot.manifest.residue == {"publications": {"x": 1, "y": 1, "z": 1, "": 1}}
        assert desk.shown() == [(snapshot.manifest.snapshot, 4)]

    def test_requests(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """A listing costs ceil(N/50) requests, and the manifest says so (issue: "+1 at most")."""
        snapshot = desk.back_up()
        assert snapshot.manifest.requests == 3 == sandbox.counts()["requests"]
        facts = snapshot.manifest.resources["publications"]
        assert (facts.endpoint, facts.pages, facts.x_total, facts.records) == ("publications/all", 3, RECORDS, RECORDS)
        assert [(one.records, one.expected) for one in desk.progress] == [(50, 120), (100, 120), (120, 120)]
        assert desk.progress[-1].seconds_left == 0

    def test_residue_is_counted(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """Keys of which the document says nothing are in the manifest with the number of their records."""
        sandbox.change(variations={"extra_fields": True})
        residue = desk.back_up().manifest.residue["publications"]
        assert residue.pop("import_state") == RECORDS
        assert residue
        assert set(residue.values()) == {RECORDS}


class TestProof:
    """Complete only if distinct ids = X-Total and nothing moved meanwhile; else partial, and never the newest complete one (I4)."""

    @pytest.mark.parametrize(("error", "announced"), [(1, "121"), (-1, "119"), (-120, "0")])
    def test_x_total_disagrees(self, desk: Desk, sandbox: SandboxProcess, error: int, announced: str) -> None:
        """More or fewer than announced is partial; the last complete snapshot stays what people see."""
        good = desk.back_up()
        sandbox.change(variations={"x_total_error": error})
        partial = desk.back_up("second")
        assert not partial.manifest.complete
        assert partial.manifest.problems == [
            f"publications: The service announced {announced} records (X-Total) and sent 120 different ones."
        ]
        assert partial.counts == {"publications": RECORDS}, "what could be read is kept"
        assert desk.shown() == [(good.manifest.snapshot, RECORDS)]
        assert desk.library().data.find_snapshot("old").name == good.name

    def test_x_total_changes(self, tmp_path: Path, sandbox: SandboxProcess) -> None:
        """Somebody added records before the last page was read."""
        sandbox.fault("edit", "moving", path=r"page=3(&|$)", add=3)
        manifest = desk_for(tmp_path, sandbox.base_url("moving")).back_up().manifest
        assert not manifest.complete
        assert manifest.problems[0] == (
            "publications: X-Total changed while the listing ran (120 at first, 123 at last): people added or deleted records. "
            "What moved was not found out: run it again at a quieter hour."
        )

    def test_x_total_returns_to_what_it_was(self, canned: Callable[..., Desk]) -> None:
        """A total that moved and came back has moved; the sentence does not claim that it changed from 3 to 3."""
        manifest = (
            canned(page_of({"id": 1}), page_of({"id": 2}), page_of({"id": 3}), totals=[3, 4, 3]).back_up().manifest
        )
        assert manifest.problems == [
            (
                "publications: X-Total changed while the listing ran (3 at first, 3 at last): people added or deleted records. "
                "What moved was not found out: run it again at a quieter hour."
            )
        ]

    def test_no_x_total(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """I4 says "where the service sends it": without X-Total the other rules decide, and the manifest says that it was missing."""
        sandbox.change(variations={"x_total": "absent"})
        manifest = desk.back_up().manifest
        assert (manifest.complete, manifest.problems) == (True, [])
        assert manifest.notes == [
            "publications: The service sent no X-Total: nothing but the end of the listing says how many records there are."
        ]
        assert manifest.resources["publications"].x_total is None

    def test_with_x_total_there_is_nothing_to_note(self, desk: Desk) -> None:
        """A proof that needs no explanation has none."""
        assert desk.back_up().manifest.notes == []

    def test_x_total_on_some_pages_only(self, canned: Callable[..., Desk]) -> None:
        """One page that tells the total is enough to hold the listing against it."""
        pages = [page_of({"id": 1}), page_of({"id": 2})]
        manifest = canned(*pages, totals=[3, None]).back_up().manifest
        assert manifest.problems == [
            "publications: The service announced 3 records (X-Total) and sent 2 different ones."
        ]

    @pytest.mark.parametrize("totals", [[3], [None]])
    def test_an_id_twice(self, canned: Callable[..., Desk], totals: list[int | None]) -> None:
        """A record that moved to a later page is seen twice, and another one perhaps never: with and without X-Total partial."""
        pages = [page_of({"id": 1}, {"id": 2}), page_of({"id": 2, "title": "again"})]
        manifest = canned(*pages, totals=totals).back_up().manifest
        assert not manifest.complete
        assert manifest.problems[0] == "publications: 1 records were listed twice, for example id 2."
        facts = manifest.resources["publications"]
        assert (facts.records, facts.distinct_ids, facts.without_id) == (3, 2, 0)

    def test_records_without_an_id(self, canned: Callable[..., Desk]) -> None:
        """What has no id cannot be proved to be there once; it is kept all the same."""
        desk = canned(page_of({"title": "none"}, {"id": None}, {"id": "x"}, {"id": 4}, [1], "text"), totals=[6])
        snapshot = desk.back_up()
        assert snapshot.manifest.problems == [
            "publications: 5 records have no id that is a whole number; they are kept in the raw table.",
            "publications: The service announced 6 records (X-Total) and sent 1 different ones.",
        ]
        assert [row["id"] for row in desk.raw(snapshot)] == [None, None, None, 4, None, None]
        assert snapshot.manifest.tables["publications"].rows == 6

    def test_no_records(self, tmp_path: Path, sandbox: SandboxProcess) -> None:
        """An empty library is a complete snapshot with every table in it."""
        desk = desk_for(tmp_path, sandbox.base_url("bare"))
        snapshot = desk.back_up()
        assert (snapshot.manifest.complete, snapshot.counts) == (True, {"publications": 0})
        assert {facts.rows for facts in snapshot.manifest.tables.values()} == {0}
        assert snapshot.manifest.resources["publications"].x_total == 0

    def test_no_records_and_no_x_total(self, canned: Callable[..., Desk]) -> None:
        """As complete as any listing without X-Total, with the same note."""
        manifest = canned(b'{"records": []}').back_up().manifest
        assert (manifest.complete, len(manifest.notes), manifest.requests) == (True, 1, 1)

    def test_without_the_backup_endpoint(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """service-api.md does not say which version has /publications/all: without it the list does."""
        sandbox.change(variations={"all_endpoint": "missing"})
        manifest = desk.back_up().manifest
        assert (manifest.complete, manifest.resources["publications"].endpoint) == (True, "publications")
        assert manifest.requests == 4


class TestFailure:
    """A failed run publishes nothing, says what happened, and leaves the last good snapshot current (I5)."""

    @pytest.mark.parametrize(
        ("arrange", "error"),
        [
            (lambda sandbox: sandbox.fault("status", status=404, path="page=2"), RefusedError),
            (lambda sandbox: sandbox.fault("status", status=401, path="page=3"), SignInError),
            (lambda sandbox: sandbox.change(variations={"link": "loop"}), PagingLoopError),
            (lambda sandbox: sandbox.change(variations={"link": "foreign"}), ForeignOriginError),
        ],
        ids=["refused", "signed out", "loop", "foreign"],
    )
    def test_in_the_middle_of_a_listing(
        self,
        desk: Desk,
        sandbox: SandboxProcess,
        arrange: Callable[[SandboxProcess], None],
        error: type[BookferryError],
    ) -> None:
        """Whatever ends the listing; the next run works as if nothing had been."""
        good = desk.back_up()
        arrange(sandbox)
        with pytest.raises(error):
            desk.back_up("second")
        assert [one.name for one in desk.library().data.snapshots()] == [good.name]
        assert desk.shown() == [(good.manifest.snapshot, RECORDS)]
        sandbox.reset()
        assert desk.back_up("third").manifest.complete
        assert not list(desk.library().data.work_path.rglob("*.parquet"))

    def test_bytes_that_are_no_text(self, canned: Callable[..., Desk]) -> None:
        """JSON is UTF-8; a record that is not stops the run before anything of it is kept as if it were."""
        desk = canned(b'{"records": [{"id": 1}, {"id": 2, "title": "caf\xe9"}]}', totals=[2], kind="text/plain")
        with pytest.raises(ProtocolError, match=r"page 1 \(id 2\) is not valid UTF-8"):
            desk.back_up()

    def test_a_snapshot_that_the_catalogue_cannot_show(self, desk: Desk) -> None:
        """When only the views fail, the message does not hide that the snapshot is there."""
        with desk.library() as library:
            library.data.catalogue_path.mkdir(parents=True)
            library.read_raw("old", "run", "publications")
            library.stage("old", "run", "publications")
            library.fetch_files("old", "run")
            with pytest.raises(
                StorageError, match=r"^Snapshot old/\d+T\d+Z is whole and published, but library\.duckdb does not"
            ):
                library.publish("old", "run")
            assert library.data.find_snapshot("old").manifest.complete

    def test_no_listing(self, desk: Desk) -> None:
        """Staging and publishing need what the same run has read."""
        with desk.library() as library:
            for step in (lambda: library.stage("old", "run", "publications"), lambda: library.publish("old", "run")):
                with pytest.raises(StorageError, match="no capture in progress"):
                    step()


class TestSteps:
    """Steps with one run's name work on one capture, under one lease."""

    def test_a_second_run_is_refused_until_the_first_has_ended(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """From its first step to its last a run has the tenant for itself; the second sends no request."""
        with desk.library() as first, desk.library() as second:
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

    def test_a_step_can_be_taken_by_another_process(self, desk: Desk) -> None:
        """What a capture knows is on disk: each step may have a library of its own."""
        for step in (
            lambda library: library.read_raw("old", "run", "publications"),
            lambda library: library.stage("old", "run", "publications"),
            lambda library: library.stage("old", "run", "publications"),
            lambda library: library.fetch_files("old", "run"),
            lambda library: library.publish("old", "run"),
        ):
            with desk.library() as library:
                step(library)
        assert desk.shown()[0][1] == RECORDS

    def test_what_a_run_has_read_it_does_not_read_again(self, desk: Desk, sandbox: SandboxProcess) -> None:
        """I9: a step that is repeated, by the same run or by one that goes on with it, costs nothing."""
        with desk.library() as library:
            _capture, first = library.read_raw("old", "run", "publications")
            library.stage("old", "run", "publications")
            spent = sandbox.counts()["requests"]
            for run in ("run", "next"):
                capture, facts = library.read_raw("old", run, "publications")
                assert facts == first
                assert "publications" in capture.facts.tables
            assert sandbox.counts()["requests"] == spent
            assert capture.path.name == "next"

    def test_resources_of_one_run_share_a_capture(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        """The second resource joins the first; a run that reads other ones does not go on with them."""
        monkeypatch.setitem(read.ENDPOINTS, "more", ("publications",))
        with desk.library() as library:
            library.read_raw("old", "run", "publications", ("publications", "more"))
            capture, _facts = library.read_raw("old", "run", "more")
            assert set(capture.facts.resources) == {"publications", "more"}
            other, _facts = library.read_raw("old", "other", "more")
            assert set(other.facts.resources) == {"more"}
            assert capture.path.exists()
            third, _facts = library.read_raw("old", "third", "more", ("more", "publications"))
            assert set(third.facts.resources) == {"publications", "more"}


class TestStagingProcess:
    """A large listing is staged by a process of its own while it is read; that is a help, never a condition."""

    @pytest.fixture(autouse=True)
    def every_listing_is_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The machine has cores to spare, and a batch is sent for every page."""
        monkeypatch.setattr(staging, "LARGE", 1)
        monkeypatch.setattr(staging, "_cores", lambda: 2)
        monkeypatch.setattr(read, "BATCH_BYTES", 1)

    def test_it_makes_the_same_tables(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        """With it the tables are there when the listing ends; without it they are the same; both know the types of the settings."""
        with desk.config.open("a") as config:
            config.write('[identifiers.state]\npattern = "[a-z]+"\nfields = ["import_state"]\n')
        with desk.library() as library:
            capture, _facts = library.read_raw("old", "run", "publications")
            assert set(capture.facts.tables) == {"raw_publications", *(table.name for table in STAGED["publications"])}
            library.stage("old", "run", "publications")
            library.fetch_files("old", "run")
            helped = library.publish("old", "run")
        monkeypatch.setattr(staging, "LARGE", 10**9)
        alone = desk.back_up("second")
        assert helped.manifest.complete
        for name, facts in helped.manifest.tables.items():
            if name != "raw_publications":  # where addresses are signed anew
                columns = [column for column in TABLES[name].schema.names if column != "sha256"]
                one, other = (pq.read_table(one.path / facts.path, columns=columns) for one in (helped, alone))
                assert one.equals(other), name
        assert helped.manifest.residue == alone.manifest.residue
        types = pq.read_table(helped.path / "publication_identifiers.parquet").column("type").to_pylist()
        assert types.count("state") == RECORDS

    def test_the_backup_does_not_need_it(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        """When it ends at once, with nothing done, staging happens afterwards."""
        monkeypatch.setattr(sys, "executable", "/bin/false")
        with desk.library() as library:
            capture, _facts = library.read_raw("old", "run", "publications")
            assert set(capture.facts.tables) == {"raw_publications"}
            library.stage("old", "run", "publications")
            library.fetch_files("old", "run")
            assert library.publish("old", "run").manifest.tables["publications"].rows == RECORDS

    def test_a_listing_that_fails_ends_it(
        self, desk: Desk, sandbox: SandboxProcess, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No process outlives the run that started it."""
        started: list[subprocess.Popen[bytes]] = []
        start = subprocess.Popen.__init__

        def noting(self: subprocess.Popen[bytes], *args: Any, **options: Any) -> None:
            start(self, *args, **options)
            started.append(self)

        monkeypatch.setattr(subprocess.Popen, "__init__", noting)
        sandbox.fault("status", status=404, path="page=2")
        with pytest.raises(RefusedError):
            desk.back_up()
        [process] = started
        assert process.returncode is not None


@pytest.mark.parametrize(
    ("api", "settings", "wanted", "expected"),
    [
        ("v2", {}, [], ["publications"]),
        ("v3", {}, [], list(RESOURCES)),
        ("v2", {}, ["hard_copies", "publications"], ["publications", "hard_copies"]),
        ("v2", {"resources": ["tasks", "publications"]}, [], ["publications", "tasks"]),
        ("v3", {"resources": ["tasks"]}, ["users"], ["users"]),
    ],
)
def test_resources_by_name(api: str, settings: dict[str, Any], wanted: list[str], expected: list[str]) -> None:
    """None named are those of the settings, else all that the version lists; always in the order in which they are read."""
    tenant = TenantSettings.model_validate({"base_url": "https://library.example.org", "api": api, **settings})
    assert checked_resources(tenant, wanted) == expected


@pytest.mark.parametrize(
    ("api", "wanted", "message"),
    [
        ("v3", ["films"], r"films: not a resource; those are publications, users, hard_copies,"),
        (
            "v2",
            ["publications", "users"],
            r'users: version 2 of the API has no list of users\. Read them with .* api = "v3"',
        ),
    ],
)
def test_resources_that_cannot_be(api: str, wanted: list[str], message: str) -> None:
    """service-api.md, Users (v2): there is no GET. By option or by configuration, the reason is the same."""
    tenant = {"base_url": "https://library.example.org", "api": api}
    with pytest.raises(ConfigurationError, match=f"--resources: {message}"):
        checked_resources(TenantSettings.model_validate(tenant), wanted)
    with pytest.raises(ValidationError, match=f"has resources with {message}"):
        TenantSettings.model_validate({**tenant, "resources": wanted})


def test_no_resources_at_all() -> None:
    """A night that backs nothing up is a mistake."""
    with pytest.raises(ValidationError, match="nothing would be backed up"):
        TenantSettings.model_validate({"base_url": "https://library.example.org", "api": "v3", "resources": []})
