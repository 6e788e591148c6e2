"""`migrate`, `restore` and `drill` as people run them: their output, JSON and exit statuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pipelines.scopes import SCOPES
from pipelines.store.snapshots.snapshots import DataFolder
from tests.backup.other_resources.signing import sign_in
from tests.cli.command import Installation
from tests.migration.conftest import REAL, RECORDS, SOURCE
from tests.sandbox.process import SandboxProcess
from tests.store.snapshot_factory import make_snapshot


@pytest.fixture(scope="module")
def service() -> Iterator[SandboxProcess]:
    """A library, and three empty ones."""
    libraries = [f"--tenant=old=real:{REAL}", "--tenant=new=empty", "--tenant=other=empty", "--tenant=third=empty"]
    libraries.append("--tenant=fourth=empty")
    with SandboxProcess(*libraries, "--requests-per-minute", "0") as process:
        process.keep(SOURCE, "old")
        yield process


def installation_into(folder: Path, service: SandboxProcess, target: str) -> Installation:
    installation = Installation.make(folder, service, "old")
    config = installation.add_v3("new", target)
    sign_in(config, "new", service, target, SCOPES)
    return installation


@pytest.mark.long
def test_plan_apply_verify_and_undo(service: SandboxProcess, tmp_path: Path) -> None:
    """Plan with a fresh backup, apply, verify, a second plan, undo."""
    installation = installation_into(tmp_path, service, "new")
    plan = installation.answer("migrate", "plan", "old", "new")
    name, written = plan["plan"], RECORDS + plan["files"]
    counts = {"create": RECORDS, "patch": 0, "unchanged": 0, "conflict": 0, "quarantined": 0}
    assert counts.items() <= plan.items()
    assert {"requests", "minutes", "finishes_at"} <= plan.keys()
    files = {"plan.parquet", "plan.html", "issues.tsv", "conflicts.tsv"}
    assert {path.name for path in Path(plan["path"]).iterdir()} >= files

    part = installation.answer("migrate", "apply", name, "--limit", "10")
    assert (part["created"], part["complete"]) == (10, False)
    applied = installation.answer("migrate", "apply", name)
    assert (applied["created"], applied["complete"]) == (RECORDS - 10, True)
    assert {"patched", "unchanged", "failed", "files_uploaded", "requests"} <= applied.keys()
    lines = installation.printed("migrate", "apply", name)
    assert lines[-1].startswith(f"Complete as planned: {RECORDS} unchanged; 0 requests; not moved: 1 identifier, ")
    status = installation.answer("migrate", "status", name)
    assert (status["complete"], status["requests_left"], status["done"]["create"]) == (True, 0, RECORDS)
    record = installation.answer("migrate", "status", name, "--record", "3")
    assert (record["state"], record["is_there"]) == ("done", True)
    assert all(field["equal"] for field in record["fields"])

    proof = installation.answer("migrate", "verify", name, "--contents", "--evidence", "evidence")
    assert (proof["equal"], proof["compared"], proof["files_checked"]) == (True, RECORDS, plan["files"])
    assert {"missing", "duplicated", "differing"} <= proof.keys()
    assert (tmp_path / "evidence" / "bagit.txt").exists()
    second = installation.answer("migrate", "plan", "old", "new", "--newest")
    assert (second["unchanged"], second["requests"]) == (RECORDS, 0)
    empty = installation.printed("migrate", "status", second["plan"])[-1]
    assert empty.startswith(f"Plan {second['plan']} is empty: it has nothing to write. Not moved: ")

    rehearsed = installation.answer("migrate", "undo", name)
    assert (rehearsed["deleted"], rehearsed["left"]) == (RECORDS, 0)
    assert [row["code"] for row in rehearsed["rows"]] == ["delete"] * RECORDS
    undone = installation.answer("migrate", "undo", name, "--really")
    assert (undone["deleted"], undone["reverted"], undone["left"]) == (RECORDS, 0, 0)
    last = installation.printed("migrate", "status", name)[-1]
    assert last.startswith(f"Plan {name} was undone: {written} writes taken back, nothing left; ")
    assert last.endswith(f"bookferry migrate apply {name}")
    message = f"Nothing to undo: 'new' has nothing that plan {name} wrote."
    assert installation.printed("migrate", "undo", name)[-1] == message
    assert installation.answer("migrate", "verify", name, status=6)["missing"] == RECORDS


def test_files_that_the_snapshot_lacks_are_named_by_every_command(service: SandboxProcess, tmp_path: Path) -> None:
    """Their download failed: apply and status exit with 3, verify with 6, each with the names and the record ids."""
    installation = installation_into(tmp_path, service, "third")
    service.fault("status", "old", path="^/storage/", status=404, times=1000)
    installation.printed("backup", "old", status=3)
    service.reset("faults", tenant="old")
    plan = installation.answer("migrate", "plan", "old", "new", "--newest")
    part = installation.printed("migrate", "apply", plan["plan"], "--limit", "2", status=3)[-1]
    assert part.startswith("PARTIAL: 2 created")
    assert f"; {plan['create'] - 2} records of plan {plan['plan']} left. " in part
    for command, status in (("apply", 3), ("status", 3), ("verify", 6)):
        document = installation.answer("migrate", command, plan["plan"], status=status)
        for answer in (plan, document):
            assert (answer["lacking"]["files"], answer["lacking"]["covers"]) == (3, 2)
        assert not document.get("complete", False)
        assert not document.get("equal", False)
        assert {finding["source_id"] for finding in document["findings"]} == {85, 89, 92}
        printed = installation.printed("migrate", command, plan["plan"], status=status)
        assert "cover.jpg" in "".join(printed)
        assert "3 files, 2 covers" in printed[-1]
    installation.answer("restore", "old", "new", status=3)  # nothing differs but what the snapshot lacks


def test_what_is_lost_is_said_first_and_last(service: SandboxProcess, tmp_path: Path) -> None:
    """Dates, identifiers, fields, undecided records: the plan begins with them; apply, verify and both kinds of status end with them."""
    installation = installation_into(tmp_path, service, "fourth")
    dates = ("1984", "1984-06", "1984-06-08", "c. 1900")
    records = [
        {"id": number, "title": f"Tides {number}", "doi": f"10.1000/{number}", "published_on": date, "shelf": "A"}
        for number, date in enumerate(dates, 1)
    ]
    records.append({"id": 9, "title": "Seas", "doi": "10.1000/9", "isbn": "978-0-306-40615-9"})
    data = DataFolder(tmp_path / "library-data")
    snapshot = make_snapshot(data, [json.dumps(record) for record in records])
    record = {"title": "Other seas", "identifiers": [{"type": "doi", "value": "10.1000/9"}]}
    token = service.control("POST", "tokens", {"tenant": "fourth"})["access_token"]
    address = f"{service.base_url('fourth')}/api/v3/publications"
    httpx.post(address, json=record, headers={"authorization": f"Bearer {token}"}).raise_for_status()

    printed = installation.printed("migrate", "plan", snapshot.name, "new")
    planned = installation.answer("migrate", "plan", snapshot.name, "new")
    counts = {loss["kind"]: loss["count"] for loss in planned["losses"]}
    assert counts == {"dates": 3, "identifiers": 1, "undecided": 1, "fields": 1}
    assert [*planned][:2] == ["plan", "losses"]
    assert printed[0] == "Will not arrive in 'new':"
    assert printed[1].startswith("! 3 dates: 2 are only a year or a month")
    for line, advice in zip(printed[1:4], ("--first-days", "--invalid-identifiers", "conflicts.tsv"), strict=True):
        assert advice in line
    page = Path(planned["path"], "plan.html").read_text(encoding="utf-8")
    assert page.index("3 dates") < page.index("publications will be created")
    decide = page.index("What a person has to decide")
    assert decide < page.index("shall the first day be sent?") < page.index("for a decision; until then")

    words = "not moved: 3 dates, 1 identifier, 1 undecided record, the values of 1 field."
    for command, begins in (("apply", "PARTIAL:"), ("verify", "Equal as planned:"), ("status", "Plan ")):
        last = installation.printed("migrate", command, planned["plan"], status=3)[-1]
        assert (last.startswith(begins), words in last) == (True, True), last
        document = installation.answer("migrate", command, planned["plan"], status=3)
        assert document["losses"] == planned["losses"]
        assert not document.get("complete", False)
    [problem] = [
        problem
        for library in installation.run("status", "--json").document["libraries"]
        for problem in library["problems"]
        if problem["code"] == "migration"
    ]
    assert problem["message"] == f"plan {planned['plan']} waits for 1 decision"


def test_restore_creates_what_is_missing_once(service: SandboxProcess, tmp_path: Path) -> None:
    """`restore` plans, applies and verifies; run twice, it writes nothing."""
    installation = installation_into(tmp_path, service, "other")
    installation.answer("backup", "old")
    restored = installation.answer("restore", "old", "new")
    assert (restored["created"], restored["verification"]["equal"]) == (RECORDS, True)
    repetition = installation.answer("restore", "old", "new")
    assert (repetition["created"], repetition["unchanged"]) == (0, RECORDS)
