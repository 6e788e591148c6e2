"""`migrate`, `restore` and `drill` as people run them: what they say, their JSON, their exit statuses (design 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.settings.tenant import SCOPES
from tests.backup.other_resources.signing import sign_in
from tests.cli.command import Home
from tests.sandbox.process import SandboxProcess

RECORDS = 95
"""The first of the real records; three of them have files, two covers."""

MORE = """
tokens = "sign-ins"

[tenants.new]
base_url = "{base_url}"
api = "v3"
client_id = "test"
client_auth = "none"
requests_per_minute = 100000
"""


@pytest.fixture(scope="module")
def service() -> Iterator[SandboxProcess]:
    """A library, and two empty ones."""
    libraries = [f"--tenant=old=real:{RECORDS}", "--tenant=new=empty", "--tenant=other=empty"]
    with SandboxProcess(*libraries, "--requests-per-minute", "0") as process:
        yield process


def home_into(folder: Path, service: SandboxProcess, target: str) -> Home:
    home = Home.make(folder, service, "old")
    config = folder / "bookferry.toml"
    top, _, tenants = config.read_text().partition("\n")
    more = MORE.format(base_url=service.base_url(target))
    config.write_text(f"{top}\n{more}\n{tenants}")
    sign_in(config, "new", service, target, SCOPES)
    return home


def test_the_whole_way(service: SandboxProcess, tmp_path: Path) -> None:
    """Plan with a fresh backup, apply, verify, a second plan, undo."""
    home = home_into(tmp_path, service, "new")
    planned = home.run("migrate", "plan", "old", "new", "--json", "--detailed-exitcode")
    assert planned.status == 6, planned.err
    plan = planned.document
    wanted = {
        "plan",
        "create",
        "patch",
        "unchanged",
        "conflict",
        "quarantined",
        "files",
        "requests",
        "minutes",
        "finishes_at",
    }
    assert wanted <= plan.keys()
    assert (plan["create"], plan["patch"], plan["unchanged"], plan["conflict"]) == (RECORDS, 0, 0, 0)
    assert {path.name for path in Path(plan["path"]).iterdir()} >= {
        "plan.parquet",
        "plan.md",
        "plan.html",
        "issues.tsv",
        "conflicts.tsv",
    }

    few = home.run("migrate", "apply", plan["plan"], "--limit", "10", "--json")
    assert (few.status, few.document["created"], few.document["complete"]) == (0, 10, False), few.err
    applied = home.run("migrate", "apply", plan["plan"], "--json")
    assert applied.status == 0, applied.err
    keys = {"created", "patched", "unchanged", "failed", "files_uploaded", "requests", "complete"}
    assert keys <= applied.document.keys()
    assert applied.document["created"] == RECORDS - 10
    again = home.run("migrate", "apply", plan["plan"])
    assert again.lines[-1].startswith(
        f"Complete: 0 created, 0 patched, {RECORDS} unchanged, 0 files uploaded; 0 requests"
    )

    told = home.run("migrate", "status", plan["plan"], "--json").document
    assert (told["complete"], told["requests_left"], told["done"]["create"]) == (True, 0, RECORDS)
    one = home.run("migrate", "status", plan["plan"], "--record", "3", "--json").document
    assert (one["state"], one["is_there"], all(field["equal"] for field in one["fields"])) == ("done", True, True)

    proved = home.run("migrate", "verify", plan["plan"], "--contents", "--evidence", "evidence", "--json")
    assert proved.status == 0, proved.err
    proof = proved.document
    assert {"equal", "compared", "missing", "duplicated", "differing", "files_checked"} <= proof.keys()
    assert (proof["equal"], proof["compared"], proof["files_checked"]) == (True, RECORDS, plan["files"])
    assert (tmp_path / "evidence" / "bagit.txt").exists()

    second = home.run("migrate", "plan", "old", "new", "--newest", "--detailed-exitcode", "--json")
    assert (second.status, second.document["unchanged"], second.document["requests"]) == (0, RECORDS, 0), second.err

    rehearsed = home.run("migrate", "undo", plan["plan"], "--json")
    assert (rehearsed.status, rehearsed.document["deleted"], rehearsed.document["left"]) == (0, RECORDS, 0), (
        rehearsed.err
    )
    undone = home.run("migrate", "undo", plan["plan"], "--really", "--json")
    assert {"deleted", "reverted", "left"} <= undone.document.keys()
    assert (undone.status, undone.document["deleted"]) == (0, RECORDS), undone.err
    missing = home.run("migrate", "verify", plan["plan"], "--json")
    assert (missing.status, missing.document["missing"]) == (6, RECORDS), missing.err


def test_a_snapshot_is_put_back(service: SandboxProcess, tmp_path: Path) -> None:
    """`restore` plans, applies and verifies; run twice, it writes nothing."""
    home = home_into(tmp_path, service, "other")
    assert home.backup().status == 0
    restored = home.run("restore", "old", "new", "--json")
    assert restored.status == 0, restored.err
    assert (restored.document["created"], restored.document["verification"]["equal"]) == (RECORDS, True)
    again = home.run("restore", "old", "new", "--json")
    assert (again.status, again.document["created"], again.document["unchanged"]) == (0, 0, RECORDS), again.err


def test_mistakes_are_told(service: SandboxProcess, tmp_path: Path) -> None:
    """What was tried, what came back, what to do (exit 2)."""
    home = home_into(tmp_path, service, "other")
    home.run("migrate", "plan", "new", "old", "--newest").assert_failed(2, "shut down at the end of 2026")
    home.run("migrate", "plan", "new", "new").assert_failed(2, "source and target at once")
    home.run("migrate", "apply", "nothing").assert_failed(2, "There is no plan 'nothing'", "there is none yet")
    home.run("migrate", "plan", "old", "new", "--newest").assert_failed(2, "There is no snapshot 'old'")
    home.run("drill", "old").assert_failed(2, "There is no snapshot 'old'")
