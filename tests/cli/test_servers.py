"""`bookferry sandbox` and `bookferry ui`: they start, answer, and end with all that they started."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import BOOKFERRY, PATIENCE, environment
from tests.cli.conftest import BackedUp

RUNS = "{runsOrError {... on Runs {results {runId status jobName tags {key value}}}}}"


def test_the_sandbox_runs_until_sigterm(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*BOOKFERRY, "sandbox", "--tenant", "old=real:3"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    assert ready["tenants"]["old"]["publications"] == 3
    with urllib.request.urlopen(f"{ready['control']}/tenants", timeout=60) as answer:
        assert answer.status == 200
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(900)
def test_the_web_interface_shows_the_command_lines_runs(library: BackedUp) -> None:
    """One instance for both; SIGTERM ends the interface and every process it started, also where a script's `&` ignores Ctrl-C."""
    port = _free_port()
    process = library.start("ui", "--port", str(port), "--json", start_new_session=True, preexec_fn=_in_the_background)
    try:
        (run,) = [run for run in _runs(port, process) if _tags(run).get("bookferry/tenant") == "library"]
        assert (run["jobName"], run["status"]) == ("nightly_backup", "SUCCESS")
        assert _tags(run)["bookferry/started_by"] == "command line"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert json.loads(out)["url"] == f"http://127.0.0.1:{port}"
        assert "Warning" not in err
        _wait_until_nobody_is_left(process.pid)
    finally:
        _kill_all(process.pid)


def test_a_port_that_is_taken_is_reported_before_anything_starts(library: BackedUp) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = library.run("ui", "--port", str(taken.getsockname()[1]), "--json")
    done.assert_failed(2, "Port", "--port")


def _in_the_background() -> None:
    """As a shell starts a background job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _free_port() -> int:
    """One that stays free until it is used: not one of those that systems choose for a request of any port."""
    for port in random.sample(range(15_000, 30_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    pytest.fail("no port is free")


def _runs(port: int, process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """All runs in the web interface, once it answers."""
    question = json.dumps({"query": RUNS}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/graphql", question, {"content-type": "application/json"})
    while process.poll() is None:
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["runsOrError"]["results"]
                return found
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"the interface ended: {process.stderr.read() if process.stderr else ''}")


def _tags(run: dict[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in run["tags"]}


def _wait_until_nobody_is_left(group: int) -> None:
    """Dagster's code server notices a few seconds later that it is not needed."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.3)
    pytest.fail("a process of the interface is still there")


def _kill_all(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
