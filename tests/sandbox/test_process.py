"""The service as a process behind a socket: ready line, end, state after a kill, and HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.sandbox.process import SandboxProcess
from tests.sandbox.test_paging import links

SMALL = ("--tenant", "library=real:120", "--requests-per-minute", "0")


@pytest.fixture(scope="module")
def process() -> Iterator[SandboxProcess]:
    with SandboxProcess(*SMALL, "--tenant", "other=empty") as running:
        yield running


@pytest.fixture
def sandbox(process: SandboxProcess) -> SandboxProcess:
    process.reset()
    return process


def client(sandbox: SandboxProcess, tenant: str = "library") -> httpx.Client:
    return httpx.Client(base_url=f"{sandbox.base_url(tenant)}/api/v2", auth=(sandbox.user, sandbox.password))


def test_it_starts_with_every_real_record_in_seconds_and_ends_when_asked() -> None:
    """The ready line is the only line on stdout. CPU time is measured, so that a busy machine does not matter."""
    before = os.times()
    with SandboxProcess() as sandbox:
        assert sandbox.publications() == 5445
        assert set(sandbox.ready) == {"ready", "url", "tenants", "control", "storage"}
        with client(sandbox) as http:
            answer = http.get("/publications/all")
        assert answer.headers["X-Total"] == "5445"
        assert sandbox.counts() == {"requests": 1, "largest_window": 1, "throttled": 0}
        assert sandbox.terminate() == 0
        assert sandbox.process.stdout
        assert sandbox.process.stdout.read() == ""
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < 20


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_although_requests_hang(signum: signal.Signals) -> None:
    """It exits with 0 long before the hanging request would be answered."""
    with SandboxProcess(*SMALL) as sandbox:
        sandbox.fault("hang", seconds=10_000)
        with socket.create_connection(("127.0.0.1", sandbox.port)) as hanging:
            hanging.sendall(b"GET /library/api/v2/publications HTTP/1.1\r\nHost: x\r\n\r\n")
            while sandbox.counts()["requests"] == 0:
                pass
            started = time.monotonic()
            sandbox.process.send_signal(signum)
            assert sandbox.process.wait(200) == 0
            assert time.monotonic() - started < 200


def test_it_ends_with_its_parent() -> None:
    """``--stop-at-eof``: the service ends when the process that started it is killed."""
    with SandboxProcess(*SMALL) as sandbox:
        assert sandbox.process.stdin
        sandbox.process.stdin.close()
        assert sandbox.process.wait(200) == 0


def test_a_state_file_survives_a_kill_and_is_not_seeded_again(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state.db"))
    with SandboxProcess(*SMALL, *state) as sandbox:
        sandbox.fault("edit", remove=[3], add=2)
        with client(sandbox) as http:
            assert http.get("/publications").headers["X-Total"] == "121"
        cookie = sandbox.session_cookie()
        sandbox.kill()
    with SandboxProcess(*SMALL, *state) as sandbox:
        assert sandbox.publications() == 121
        assert sandbox.session_cookie() == cookie
        with client(sandbox) as http:
            assert http.get("/publications/3").status_code == 404
            assert http.get("/publications/122").json()["title"] == "Added 2"
    with SandboxProcess(*state) as sandbox:  # without --tenant it serves the tenants of the file
        assert list(sandbox.ready["tenants"]) == ["library"]
        assert sandbox.publications() == 121


def test_a_kill_while_it_fills_the_state_leaves_no_half_library(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    command = [sys.executable, "-m", "sandbox", "--state", str(state), "--tenant", "library=real:50000"]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE) as filling:
        deadline = time.monotonic() + 100
        while not (tmp_path / "state.db-wal").exists() and time.monotonic() < deadline:
            pass
        filling.kill()
    with sqlite3.connect(state) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'publications'").fetchone()[0] in {
            0,
            1,
        }
    connection.close()
    with SandboxProcess("--state", str(state), "--tenant", "library=real:10") as sandbox:
        assert sandbox.publications() == 10


def test_a_file_that_is_no_state_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database, but somebody's notes\n" * 40)
    before = (tmp_path / "notes.txt").read_bytes()
    with pytest.raises(RuntimeError, match="exit 2"), SandboxProcess("--state", str(tmp_path / "notes.txt")):
        pass
    assert (tmp_path / "notes.txt").read_bytes() == before


@pytest.mark.parametrize(
    "wrong",
    [
        ["--tenant", "UPPER"], ["--tenant", "x=full"], ["--tenant", "x=empty:3"], ["--tenant", "_control"],
        ["--latency", "-1"], ["--requests-per-minute", "-1"], ["--variation", "link=sideways"], ["--variation", "x"],
        ["--state", "/dev/null/x"], ["--port", "x"],
    ],
)  # fmt: skip
def test_wrong_options_are_refused(wrong: list[str]) -> None:
    """Exit 2, an error line on stderr, nothing on stdout."""
    done = subprocess.run(
        [sys.executable, "-m", "sandbox", *wrong],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "error:" in done.stderr.splitlines()[-1]


def test_tenants_are_libraries_of_their_own(sandbox: SandboxProcess) -> None:
    """service.md#overview: each tenant has its own {base_url}."""
    with client(sandbox) as one, client(sandbox, "other") as other:
        assert one.get("/publications").headers["X-Total"] == "120"
        assert other.get("/publications").json() == {"records": []}
        assert other.get("/publications/1").status_code == 404
        assert other.get("/publications?query=the").json() == {"records": []}
    assert sandbox.counts() == {"requests": 1, "largest_window": 1, "throttled": 0}
    assert sandbox.counts("other")["requests"] == 3


def test_addresses_are_those_of_the_caller(sandbox: SandboxProcess) -> None:
    """Links are absolute, on the host of the request."""
    answer = httpx.get(
        f"http://localhost:{sandbox.port}/library/api/v2/publications", auth=(sandbox.user, sandbox.password)
    )
    assert links(answer)["next"] == f"http://localhost:{sandbox.port}/library/api/v2/publications?page=2"


def test_a_connection_stays_open(sandbox: SandboxProcess) -> None:
    """HTTP/1.1: one connection serves many requests, also after an unread body and after a refusal."""
    body = b'{"title": "x"}'
    refused = b"PUT /library/api/v2/publications HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )
    asked = b"HEAD /library/api/v2/swagger.yaml HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /library/api/v2/publications/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", sandbox.port)) as connection, connection.makefile("rb") as stream:
        connection.sendall(refused + asked + last)
        answers = stream.read()
    assert re.findall(rb"HTTP/1.1 (\d+) ", answers) == [b"405", b"200", b"401"]


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(sandbox: SandboxProcess) -> None:
    head = b"POST /library/api/v2/publications HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    with socket.create_connection(("127.0.0.1", sandbox.port)) as connection, connection.makefile("rb") as stream:
        connection.sendall(head)
        assert stream.readline() == b"HTTP/1.1 100 Continue\r\n"


def test_what_is_not_http_gets_the_error_body(sandbox: SandboxProcess) -> None:
    with socket.create_connection(("127.0.0.1", sandbox.port)) as connection, connection.makefile("rb") as stream:
        connection.sendall(b"GET / HTTP/1.1 nonsense\r\n\r\n")
        head, _, body = stream.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "BadRequest"


def test_slow_answers_do_not_wait_for_each_other(sandbox: SandboxProcess) -> None:
    """Twenty requests of two seconds each take about two seconds, and all are counted."""
    sandbox.change(latency=2)
    with client(sandbox) as http, ThreadPoolExecutor(20) as pool:
        started = time.monotonic()
        statuses = list(pool.map(lambda page: http.get(f"/publications/{page}").status_code, range(1, 21)))
        elapsed = time.monotonic() - started
    assert statuses == [200] * 20
    assert 2 <= elapsed < 35
    assert sandbox.counts() == {"requests": 20, "largest_window": 20, "throttled": 0}


def test_the_limit_holds_under_threads(sandbox: SandboxProcess) -> None:
    """service.md#errors: too many requests are 429. With threads, too, exactly the limit is accepted."""
    sandbox.change(requests_per_minute=30)
    with client(sandbox) as http, ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: http.get("/publications/1").status_code, range(50)))
    assert sorted(statuses) == [200] * 30 + [429] * 20
    assert sandbox.counts() == {"requests": 50, "largest_window": 50, "throttled": 20}


def test_readers_and_a_writer_share_a_state_file(tmp_path: Path) -> None:
    """Reads continue while records change; no response is an error."""
    with SandboxProcess(*SMALL, "--state", str(tmp_path / "state.db")) as sandbox:
        sandbox.fault("edit", add=1, times=40, path="page=1$")
        with client(sandbox) as http, ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda number: http.get(f"/publications?page={number % 2}"), range(80)))
        assert {answer.status_code for answer in answers} == {200}
        assert max(int(answer.headers["X-Total"]) for answer in answers) == 160


def test_a_reset_is_a_reset(sandbox: SandboxProcess) -> None:
    """The kernel sends RST, so the client gets ECONNRESET."""
    sandbox.fault("reset")
    with socket.create_connection(("127.0.0.1", sandbox.port)) as connection:
        connection.sendall(b"GET /library/api/v2/publications HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


def test_a_body_that_breaks_off_is_shorter_than_it_said(sandbox: SandboxProcess) -> None:
    sandbox.fault("cut")
    with client(sandbox) as http:
        with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
            http.get("/publications")
        assert http.get("/publications").status_code == 200


def test_a_hanging_request_does_not_hold_up_others(sandbox: SandboxProcess) -> None:
    sandbox.fault("hang", seconds=10_000, path="page=1$")
    with client(sandbox) as http:
        with pytest.raises(httpx.ReadTimeout):
            http.get("/publications?page=1", timeout=0.2)
        assert http.get("/publications?page=2").status_code == 200


def test_files_are_downloaded_over_the_socket(sandbox: SandboxProcess) -> None:
    """Downloads are complete and do not count for the rate."""
    with client(sandbox) as http:
        records = [
            record
            for page in (1, 2, 3)
            for record in http.get(f"/publications?per_page=50&page={page}").json()["records"]
        ]
    assets = [asset for record in records for asset in record["assets"]]
    assert assets
    for asset in assets:
        assert len(httpx.get(asset["url"]).content) == asset["file"]["metadata"]["size"]
    assert sandbox.counts()["requests"] == 3
