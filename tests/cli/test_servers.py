"""`bookferry sandbox` and `bookferry ui`: they start, answer, and end with all that they started."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.cli.command import BOOKFERRY, PATIENCE, environment
from tests.cli.conftest import BackedUp
from tests.cli.web_interface import WebInterface


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


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_web_interface_shows_the_command_lines_runs(library: BackedUp) -> None:
    """One instance for both; SIGTERM ends the interface and every process it started, also where a script's `&` ignores Ctrl-C."""
    with WebInterface(library, "--json", preexec_fn=_in_the_background) as interface:
        (run,) = [run for run in interface.runs() if run["tags"].get("bookferry/tenant") == "library"]
        assert (run["jobName"], run["status"]) == ("nightly_backup", "SUCCESS")
        assert run["tags"]["bookferry/started_by"] == "command line"
        out, err = interface.stop()
        assert json.loads(out)["url"] == interface.url
        assert "Warning" not in err


def test_a_port_that_is_taken_is_reported_before_anything_starts(library: BackedUp) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = library.run("ui", "--port", str(taken.getsockname()[1]), "--json")
    done.assert_failed(2, "Port", "--port")


def _in_the_background() -> None:
    """As a shell starts a background job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
