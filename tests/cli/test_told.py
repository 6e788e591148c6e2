"""One call for each run of the command line, on success or on failure; it changes nothing of the result (dead-man's switch)."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from pipelines.store.snapshots.snapshots import DataFolder
from tests.cli.command import PATIENCE, Home
from tests.sandbox.process import SandboxProcess
from tests.store.steps import make_snapshot

NOTIFY = """
[notify]
success = ["sh", "-c", "cat >> good; echo >> good"]
failure = ["sh", "-c", "cat >> bad; echo >> bad"]
"""


@pytest.fixture
def home(sandbox: SandboxProcess, tmp_path: Path) -> Home:
    """Two commands that keep what they are told."""
    sandbox.reset(tenant="small")
    return configured(Home.make(tmp_path, sandbox, "small"), NOTIFY)


def configured(home: Home, more: str) -> Home:
    path = home.folder / "bookferry.toml"
    path.write_text(path.read_text() + more)
    return home


def told(home: Home) -> list[tuple[bool, str]]:
    """Of each call: whether it is the one on success, and its result; the file is empty afterwards."""
    return [(one["ok"], one["result"]) for one in calls(home)]


def calls(home: Home) -> list[dict[str, Any]]:
    found = []
    for name in ("good", "bad"):
        path = home.folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        found += [json.loads(line) for line in lines]
        assert all(one["ok"] is (name == "good") for one in found[-len(lines) :] if lines)
        path.unlink(missing_ok=True)
    return found


def test_a_backup_tells_how_it_ended(home: Home) -> None:
    """Once; only complete is a success; a failure says why; nobody's secret is in it (I10)."""
    done = home.backup("--json")
    (call,) = calls(home)
    assert (done.status, call["ok"], call["job"], call["tenant"]) == (0, True, "backup", "small")
    assert (call["result"], call["snapshot"]) == ("complete", done.document["snapshot"])
    home.sandbox.change("small", variations={"x_total_error": 1})
    assert home.backup("--json").status == 3
    (call,) = calls(home)
    assert (call["ok"], call["result"], call["message"] != "") == (False, "partial", True)
    home.sandbox.reset(tenant="small")
    refused = home.run("backup", "small", variables={**home.sign_in, "TEST_PASSWORD": "a-wrong-password"})
    (call,) = calls(home)
    assert (refused.status, call["ok"], call["result"]) == (4, False, "failed")
    assert call["message"] in refused.err
    assert "a-wrong-password" not in json.dumps(call)
    unset = home.run("backup", "small", variables={"TEST_USER": "somebody"})
    assert (unset.status, told(home)) == (2, [(False, "failed")])
    assert (home.run("backup", "smal").status, told(home)) == (2, []), "nobody was backed up"


def test_a_stop_is_told_and_a_kill_is_silence(home: Home) -> None:
    """A dead-man's switch is for those who cannot tell any more: no call for success comes."""
    home.sandbox.change("small", latency=10_000)
    for number, status, said in ((signal.SIGTERM, 1, [(False, "stopped")]), (signal.SIGKILL, -9, [])):
        home.sandbox.reset("counts", tenant="small")
        process = home.start("backup", "small")
        while home.sandbox.counts("small")["requests"] < 1:
            time.sleep(0.2)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        assert (process.returncode, told(home)) == (status, said)


def test_a_hook_that_fails_is_loud_and_changes_nothing(sandbox: SandboxProcess, tmp_path: Path) -> None:
    """Exit 0 is of the backup; --json stays one document."""
    sandbox.reset(tenant="small")
    home = configured(
        Home.make(tmp_path, sandbox, "small"), '[notify]\nsuccess = ["sh", "-c", "echo no mail; exit 7"]\n'
    )
    done = home.backup("--json")
    assert (done.status, done.document["complete"]) == (0, True)
    assert (
        "warning: The backup of small (complete) could not be reported: the command sh ended with 7: no mail"
        in done.err
    )


def test_damage_and_a_removal_that_fails_are_told(home: Home) -> None:
    """Only failures of these: a success of theirs is no sign that there was a backup."""
    snapshot = home.backup("--json").document
    calls(home)
    configured(home, "\n[retention]\nkeep_daily = 7\n")
    assert home.run("snapshots", "verify").status == 0
    kept = home.run("snapshots", "prune", "--json")
    (stays,) = kept.document["kept"]
    assert (kept.status, stays["why"][1][:5]) == (0, "daily"), "as configured"
    home.run("snapshots", "prune", "--keep-daily", "0").assert_failed(2, "Nothing says what to keep")
    assert told(home) == []
    (Path(snapshot["path"]) / "publication_authors.parquet").unlink()
    assert home.run("snapshots", "verify").status == 6
    (call,) = calls(home)
    assert (call["job"], call["result"], call["tenant"]) == ("verification", "damaged", "small")
    assert "publication_authors.parquet is missing" in call["message"]
    (Path(snapshot["path"]) / "manifest.json").write_text("{")
    assert home.run("snapshots", "prune", "--dry-run").status == 1
    assert told(home) == [], "nothing was to be removed"
    assert home.run("snapshots", "prune").status == 1
    (call,) = calls(home)
    assert (call["job"], call["result"], "is damaged" in call["message"]) == ("retention", "failed", True)


def test_a_library_without_any_complete_snapshot_is_told(home: Home) -> None:
    """There is nothing of it that could be verified, which nobody would notice beside the others."""
    data = DataFolder(home.folder / "library-data")
    make_snapshot(data, tenant="small")
    make_snapshot(data, tenant="other", complete=False)
    assert home.run("snapshots", "verify").status == 6
    (call,) = calls(home)
    assert (call["job"], call["result"], call["tenant"]) == ("verification", "failed", "other")
    assert "no complete one" in call["message"]
