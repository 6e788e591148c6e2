"""`bookferry sandbox` and `bookferry ui`: they start, answer, and end with all that they started."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import PATIENCE, Installation
from tests.cli.conftest import BackedUp
from tests.cli.web_interface import WebInterface
from tests.sandbox.process import SandboxProcess

PAGES = """
{assetNodes {
  assetKey {path}
  assetMaterializations(limit: 1) {timestamp}
  assetChecksOrError {... on AssetChecks {checks {name executionForLatestMaterialization {status}}}}
}}
"""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_web_interface_shows_what_the_command_line_made_and_a_library_that_is_added(
    sandbox: SandboxProcess, tmp_path: Path
) -> None:
    """One instance for both. `doctor`, which `init` proposes, and `status` say to restart it; a file that is not valid does not end it.

    SIGTERM ends the interface and every process it started, also where a script's `&` ignores Ctrl-C.
    """
    installation = Installation.make(tmp_path, sandbox, "small")
    added = ("--tenant", "bare", "--base-url", sandbox.base_url("bare"))
    config = tmp_path / "bookferry.toml"
    installation.run("backup", "small")
    with WebInterface(installation, "--json", preexec_fn=_in_the_background) as interface:
        _check_what_it_shows(interface)
        _wait_until(lambda: _ticks(interface) == ["bookferry.toml is as it was loaded."])
        installation.run("init", *added, "--api", "v3")
        doctor = installation.run("doctor", "bare", "--json").document["tenants"][0]["checks"][-1]
        assert (doctor["name"], doctor["status"], doctor["todo"]) == ("nightly", "problem", "Restart `bookferry ui`.")
        status = installation.run("status")
        assert (status.status, status.lines[-1]) == (4, "NEEDS ATTENTION: bare.")  # nobody has signed in
        assert (
            "! bare: changed in bookferry.toml since `bookferry ui` was started. Restart `bookferry ui`." in status.out
        )
        valid = config.read_text()
        _wait_until(lambda: "has changed since it was loaded" in _ticks(interface)[0])
        config.write_text(f"{valid}\nmistake = 1")
        _wait_until(lambda: "unknown key" in _ticks(interface)[0])
        config.write_text(valid)
        out, err = interface.stop()
    assert json.loads(out)["url"] == interface.url
    assert "Warning" not in err
    with WebInterface(installation) as interface:
        _wait_until(lambda: "bare" not in installation.run("status", "--json").document["outdated"])
        assert installation.run("status", "--json").document["outdated"] == []
        interface.stop()


def _check_what_it_shows(interface: WebInterface) -> None:
    pages = interface.ask(PAGES)["assetNodes"]
    shown = {
        (page["assetKey"]["path"][-1], check["name"]): check["executionForLatestMaterialization"]["status"]
        for page in pages
        for check in page["assetChecksOrError"].get("checks", ())
        if check["executionForLatestMaterialization"]
    }
    assets = {page["assetKey"]["path"][-1] for page in pages if page["assetMaterializations"]}
    assert {"raw_publications", "publications", "files", "snapshot", "report"} <= assets
    assert {shown["snapshot", "complete"], shown["raw_publications", "readable"], shown["report", "made"]} == {
        "SUCCEEDED"
    }
    assert interface.runs() == []


TICKS = """{sensorOrError(sensorSelector: {
  repositoryName: "__repository__", repositoryLocationName: "bookferry", sensorName: "configuration"
}) {... on Sensor {sensorState {ticks(limit: 1, statuses: [SKIPPED, FAILURE]) {skipReason error {message cause {message}}}}}}}"""


def _ticks(interface: WebInterface) -> list[str]:
    """What the last evaluation of the sensor said."""
    sensor = interface.ask(TICKS)["sensorOrError"]
    ticks = sensor["sensorState"]["ticks"] if sensor else []
    return [tick["skipReason"] or str(tick["error"]) for tick in ticks] or [""]


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(1)


def _in_the_background() -> None:
    """As a shell starts a background job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("command", ["ui", "sandbox"])
def test_a_port_that_is_taken_is_reported_before_anything_starts(library: BackedUp, command: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        library.run(command, "--port", port, "--json").assert_failed(2, f"ort {port} of 127.0.0.1")
    library.run(command, "--host", "192.0.2.1", "--json").assert_failed(2, "192.0.2.1")
