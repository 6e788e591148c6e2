"""The service as a process behind a socket: ready line, end, state after a kill, and HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.sandbox.process import SandboxProcess

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


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_although_requests_hang(signum: signal.Signals) -> None:
    """It exits with 0 long before the hanging request would be answered."""
    with SandboxProcess(*SMALL) as sandbox:
        sandbox.fault("hang", seconds=10_000)
        with socket.create_connection(("127.0.0.1", sandbox.port)) as hanging:
            hanging.sendall(b"GET /library/api/v2/publications HTTP/1.1\r\nHost: x\r\n\r\n")
            while sandbox.counts()["requests"] == 0:
                pass
            sandbox.process.send_signal(signum)
            assert sandbox.process.wait(200) == 0


@pytest.mark.long
def test_it_ends_with_its_parent() -> None:
    """``--stop-at-eof``: the service ends when the process that started it is killed."""
    with SandboxProcess(*SMALL) as sandbox:
        assert sandbox.process.stdin
        sandbox.process.stdin.close()
        assert sandbox.process.wait(200) == 0


@pytest.mark.long
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


@pytest.mark.long
def test_tenants_are_libraries_of_their_own(sandbox: SandboxProcess) -> None:
    """service.md#overview: each tenant has its own {base_url}."""
    with client(sandbox) as one, client(sandbox, "other") as other:
        assert one.get("/publications").headers["X-Total"] == "120"
        assert other.get("/publications").json() == {"records": []}
        assert other.get("/publications/1").status_code == 404
        assert other.get("/publications?query=the").json() == {"records": []}
    assert sandbox.counts() == {"requests": 1, "largest_window": 1, "throttled": 0}
    assert sandbox.counts("other")["requests"] == 3


def test_what_is_not_http_gets_the_error_body(sandbox: SandboxProcess) -> None:
    with socket.create_connection(("127.0.0.1", sandbox.port)) as connection, connection.makefile("rb") as stream:
        connection.sendall(b"GET / HTTP/1.1 nonsense\r\n\r\n")
        head, _, body = stream.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "BadRequest"


@pytest.mark.long
def test_the_limit_holds_under_threads(sandbox: SandboxProcess) -> None:
    """service.md#errors: too many requests are 429. With threads, too, exactly the limit is accepted."""
    sandbox.change(requests_per_minute=30)
    with client(sandbox) as http, ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: http.get("/publications/1").status_code, range(50)))
    assert sorted(statuses) == [200] * 30 + [429] * 20
    assert sandbox.counts() == {"requests": 50, "largest_window": 50, "throttled": 20}


@pytest.mark.long
def test_a_body_that_breaks_off_is_shorter_than_it_said(sandbox: SandboxProcess) -> None:
    sandbox.fault("cut")
    with client(sandbox) as http:
        with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
            http.get("/publications")
        assert http.get("/publications").status_code == 200
