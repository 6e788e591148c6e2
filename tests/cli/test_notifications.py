"""Each run of the command line makes one call, on success or on failure. The call does not change the result (dead-man's switch)."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import PATIENCE, Installation
from tests.sandbox.process import SandboxProcess

NOTIFY = """
[notify]
success = ["sh", "-c", "cat >> good; echo >> good"]
failure = ["sh", "-c", "cat >> bad; echo >> bad"]
"""


@pytest.fixture
def installation(sandbox: SandboxProcess, tmp_path: Path) -> Installation:
    """An installation whose notification commands write into files."""
    sandbox.reset(tenant="small")
    return add_config(Installation.make(tmp_path, sandbox, "small"), NOTIFY)


def add_config(installation: Installation, more: str) -> Installation:
    path = installation.folder / "bookferry.toml"
    path.write_text(path.read_text() + more)
    return installation


def results(installation: Installation) -> list[tuple[bool, str]]:
    """Of each call: whether it is the one for success, and its result. Empties the files."""
    return [(one["ok"], one["result"]) for one in calls(installation)]


def calls(installation: Installation) -> list[dict[str, Any]]:
    found = []
    for name in ("good", "bad"):
        path = installation.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        found += [json.loads(line) for line in lines]
        assert all(one["ok"] is (name == "good") for one in found[-len(lines) :] if lines)
        path.unlink(missing_ok=True)
    return found


@pytest.mark.long
def test_a_backup_reports_its_result(installation: Installation) -> None:
    """Once. Only a complete backup is a success. A failure has its reason, and no secret (I10)."""
    done = installation.backup("--json")
    (call,) = calls(installation)
    assert (done.status, call["ok"], call["job"], call["tenant"]) == (0, True, "backup", "small")
    assert (call["result"], call["snapshot"]) == ("complete", done.document["snapshot"])
    installation.sandbox.change("small", variations={"x_total_error": 1})
    assert installation.backup("--json").status == 3
    (call,) = calls(installation)
    assert (call["ok"], call["result"], call["message"] != "") == (False, "partial", True)
    installation.sandbox.reset(tenant="small")
    refused = installation.run(
        "backup", "small", variables={**installation.sign_in, "TEST_PASSWORD": "a-wrong-password"}
    )
    (call,) = calls(installation)
    assert (refused.status, call["ok"], call["result"]) == (4, False, "failed")
    assert call["message"] in refused.err
    assert "a-wrong-password" not in json.dumps(call)
    unset = installation.run("backup", "small", variables={"TEST_USER": "somebody"})
    assert (unset.status, results(installation)) == (2, [(False, "failed")])
    assert (installation.run("backup", "smal").status, results(installation)) == (2, []), "no tenant was backed up"


@pytest.mark.long
def test_a_stop_is_reported_and_a_kill_is_not(installation: Installation) -> None:
    """After a kill no call arrives, and the dead-man's switch raises the alarm."""
    installation.sandbox.change("small", latency=10_000)
    for number, status, messages in ((signal.SIGTERM, 143, [(False, "stopped")]), (signal.SIGKILL, -9, [])):
        installation.sandbox.reset("counts", tenant="small")
        process = installation.start("backup", "small")
        while installation.sandbox.counts("small")["requests"] < 1:
            time.sleep(0.2)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        assert (process.returncode, results(installation)) == (status, messages)


def test_damage_and_a_failed_removal_are_reported(installation: Installation) -> None:
    """Only failures: a successful verification is no sign that there was a backup."""
    snapshot = installation.backup("--json").document
    calls(installation)
    installation.run("snapshots", "prune").assert_failed(2, "nothing says what to keep")
    add_config(installation, "\n[retention]\nkeep_daily = 7\n")
    assert installation.run("snapshots", "verify").status == 0
    pruning = installation.run("snapshots", "prune", "--json")
    (stays,) = pruning.document["kept"]
    assert (pruning.status, stays["why"][1][:5]) == (0, "daily"), "as configured"
    assert results(installation) == []
    (Path(snapshot["path"]) / "publication_authors.parquet").unlink()
    assert installation.run("snapshots", "verify").status == 6
    (call,) = calls(installation)
    assert (call["job"], call["result"], call["tenant"]) == ("verification", "damaged", "small")
    assert "publication_authors.parquet is missing" in call["message"]
    (Path(snapshot["path"]) / "publication_files.parquet").write_bytes(b"")
    assert installation.run("snapshots", "prune", "--dry-run").status == 1
    assert results(installation) == [], "nothing was to be removed"
    assert installation.run("snapshots", "prune").status == 1
    (call,) = calls(installation)
    assert (call["job"], call["result"]) == ("retention", "failed")
    assert "says what else is damaged there" in call["message"]
