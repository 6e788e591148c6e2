"""50,000 publications: time to start, time of a page, memory below 1 GiB; a kill loses nothing."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.sandbox.process import SandboxProcess

GIB = 1 << 30


def resident_bytes(process_id: int) -> int:
    """Returns the most memory that a process had, in bytes."""
    status = Path(f"/proc/{process_id}/status").read_text("ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def busy_seconds(process_id: int) -> float:
    """Returns the CPU time of a process in seconds."""
    fields = Path(f"/proc/{process_id}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client_for(sandbox: SandboxProcess) -> httpx.Client:
    """Returns a client for version 3."""
    token = sandbox.control("POST", "tokens", {"tenant": "library"})["access_token"]
    return httpx.Client(base_url=f"{sandbox.base_url()}/api/v3", headers={"Authorization": f"Bearer {token}"})


def seconds(client: httpx.Client, path: str) -> float:
    """Returns the seconds that a page takes: the best of several, because the machine may be busy."""
    times = []
    for _ in range(15):
        begun = time.perf_counter()
        assert client.get(path).status_code == 200
        times.append(time.perf_counter() - begun)
    return min(times)


@pytest.mark.long
def test_fifty_thousand_publications_are_served_in_time() -> None:
    begun = time.perf_counter()
    with SandboxProcess("--tenant", "library=real:50000", "--requests-per-minute", "0") as sandbox:
        elapsed = time.perf_counter() - begun
        assert (busy_seconds(sandbox.process.pid) if sys.platform == "linux" else elapsed) < 100
        with client_for(sandbox) as client:
            assert client.get("/publications").headers["X-Total"] == "50000"
            paths = ("?per_page=50", "?per_page=50&page=500", "?per_page=50&page=1000", "/all?per_page=50&page=777")
            searches = (
                "?doi=10.1186/s12874-018-0482-1",
                "?year=2016&per_page=50&page=9",
                "?author=smith&per_page=50",
                "?query=learning",
            )
            taken = {path: seconds(client, f"/publications{path}") for path in paths + searches}
        assert {path: each for path, each in taken.items() if each >= 1} == {}
        if sys.platform == "linux":
            assert resident_bytes(sandbox.process.pid) < GIB


def test_what_was_written_survives_a_kill(tmp_path: Path) -> None:
    options = ("--tenant", "library=empty", "--state", str(tmp_path / "state.db"), "--requests-per-minute", "0")
    with SandboxProcess(*options) as sandbox, client_for(sandbox) as client:
        for number in range(1, 21):
            assert client.post("/publications", json={"title": f"Number {number}"}).json()["id"] == number
        client.patch("/publications/7", json={"title": "Changed"})
        client.delete("/publications/8")
        sandbox.kill()
    with SandboxProcess(*options) as sandbox, client_for(sandbox) as client:
        records = client.get("/publications?per_page=50").json()["records"]
        titles = {record["id"]: record["title"] for record in records}
        assert titles == {number: f"Number {number}" for number in range(1, 21) if number != 8} | {7: "Changed"}
        assert client.get("/publications?query=changed").headers["X-Total"] == "1"
        assert client.post("/publications", json={"title": "Next"}).json()["id"] == 21
