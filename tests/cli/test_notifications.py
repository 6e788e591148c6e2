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
success = ["sh", "-c", "cat >> told-good; echo >> told-good"]
failure = ["sh", "-c", "cat >> told-bad; echo >> told-bad"]
"""


@pytest.fixture
def installation(sandbox: SandboxProcess, tmp_path: Path) -> Installation:
    """An installation whose notification commands write into files."""
    sandbox.reset(tenant="small")
    return add_config(Installation.make(tmp_path, sandbox, "small"), NOTIFY)


def add_config(installation: Installation, lines: str) -> Installation:
    path = installation.folder / "bookferry.toml"
    path.write_text(path.read_text() + lines)
    return installation


def results(installation: Installation) -> list[tuple[bool, str]]:
    """Of each call: whether it is the one for success, and its result. Empties the files."""
    return [(call["ok"], call["result"]) for call in calls(installation)]


def calls(installation: Installation) -> list[dict[str, Any]]:
    """What the commands were told. Empties the files."""
    messages = []
    for path in installation.folder.glob("told-*"):
        messages += [json.loads(line) for line in path.read_text().splitlines()]
        assert {call["ok"] for call in messages} == {path.name == "told-good"}
        path.unlink()
    return messages


@pytest.mark.long
def test_a_backup_reports_its_result(installation: Installation) -> None:
    """Once. Only a complete backup is a success. A failure has its reason, and no secret (I10)."""
    outcome = installation.backup("--json")
    (call,) = calls(installation)
    assert (outcome.status, call["ok"], call["job"], call["tenant"]) == (0, True, "backup", "small")
    assert (call["result"], call["snapshot"]) == ("complete", outcome.document["snapshot"])
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
    snapshot = Path(installation.backup("--json").document["path"])
    calls(installation)
    add_config(installation, "\n[retention]\nkeep_daily = 7\n")
    installation.printed("snapshots", "verify")
    (stays,) = installation.answer("snapshots", "prune")["kept"]
    assert (stays["why"][1][:5], results(installation)) == ("daily", [])
    (snapshot / "publication_authors.parquet").unlink()
    installation.printed("snapshots", "verify", status=6)
    (call,) = calls(installation)
    assert (call["job"], call["result"], call["tenant"]) == ("verification", "damaged", "small")
    assert "publication_authors.parquet is missing" in call["message"]
    (snapshot / "publication_files.parquet").write_bytes(b"")
    installation.printed("snapshots", "prune", "--dry-run", status=1)
    assert results(installation) == [], "nothing was to be removed"
    installation.printed("snapshots", "prune", status=1)
    (call,) = calls(installation)
    assert (call["job"], call["result"]) == ("retention", "failed")
    assert "says what else is damaged there" in call["message"]
