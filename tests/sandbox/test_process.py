"""The service as a process behind a socket: ready line, end, state after a kill, and HTTP."""

from __future__ import annotations

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
def test_the_limit_holds_under_threads(sandbox: SandboxProcess) -> None:
    """service.md#errors: too many requests are 429. With threads, too, exactly the limit is accepted."""
    sandbox.change(requests_per_minute=30)
    with client(sandbox) as http, ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: http.get("/publications/1").status_code, range(50)))
    assert sorted(statuses) == [200] * 30 + [429] * 20
    assert sandbox.counts() == {"requests": 50, "largest_window": 50, "throttled": 20}
