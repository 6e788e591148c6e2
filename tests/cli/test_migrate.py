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
from tests.sandbox.process import SandboxProcess
from tests.store.snapshot_factory import make_snapshot

RECORDS = 95
"""The first of the real records; three of them have files, two covers."""


@pytest.fixture(scope="module")
def service() -> Iterator[SandboxProcess]:
    """A library, and three empty ones."""
    libraries = [f"--tenant=old=real:{RECORDS}", "--tenant=new=empty", "--tenant=other=empty", "--tenant=third=empty"]
    libraries.append("--tenant=fourth=empty")
    with SandboxProcess(*libraries, "--requests-per-minute", "0") as process:
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
    planned = installation.run("migrate", "plan", "old", "new", "--json")
    assert planned.status == 0, planned.err
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
        "plan.html",
        "issues.tsv",
        "conflicts.tsv",
    }

    few = installation.run("migrate", "apply", plan["plan"], "--limit", "10", "--json")
    assert (few.status, few.document["created"], few.document["complete"]) == (0, 10, False), few.err
    applied = installation.run("migrate", "apply", plan["plan"], "--json")
    assert applied.status == 0, applied.err
    keys = {"created", "patched", "unchanged", "failed", "files_uploaded", "requests", "complete"}
    assert keys <= applied.document.keys()
    assert applied.document["created"] == RECORDS - 10
    again = installation.run("migrate", "apply", plan["plan"])
    assert again.lines[-1].startswith(
        f"Complete as planned: {RECORDS} unchanged; 0 requests; not moved: 1 identifier, "
    )

    status = installation.run("migrate", "status", plan["plan"], "--json").document
    assert (status["complete"], status["requests_left"], status["done"]["create"]) == (True, 0, RECORDS)
    record = installation.run("migrate", "status", plan["plan"], "--record", "3", "--json").document
    assert (record["state"], record["is_there"], all(field["equal"] for field in record["fields"])) == (
        "done",
        True,
        True,
    )

    proved = installation.run("migrate", "verify", plan["plan"], "--contents", "--evidence", "evidence", "--json")
    assert proved.status == 0, proved.err
    proof = proved.document
    assert {"equal", "compared", "missing", "duplicated", "differing", "files_checked"} <= proof.keys()
    assert (proof["equal"], proof["compared"], proof["files_checked"]) == (True, RECORDS, plan["files"])
    assert (tmp_path / "evidence" / "bagit.txt").exists()

    second = installation.run("migrate", "plan", "old", "new", "--newest", "--json")
    assert (second.status, second.document["unchanged"], second.document["requests"]) == (0, RECORDS, 0), second.err

    rehearsed = installation.run("migrate", "undo", plan["plan"], "--json")
    assert (rehearsed.status, rehearsed.document["deleted"], rehearsed.document["left"]) == (0, RECORDS, 0), (
        rehearsed.err
    )
    assert [row["code"] for row in rehearsed.document["rows"]] == ["delete"] * RECORDS
    undone = installation.run("migrate", "undo", plan["plan"], "--really", "--json")
    assert {"deleted", "reverted", "left"} <= undone.document.keys()
    assert (undone.status, undone.document["deleted"]) == (0, RECORDS), undone.err
    status = installation.run("migrate", "status", plan["plan"])
    files = plan["files"]
    assert status.lines[-1].startswith(
        f"Plan {plan['plan']} was undone: {RECORDS + files} writes taken back, nothing left; "
    )
    assert status.lines[-1].endswith(f"bookferry migrate apply {plan['plan']}")
    again = installation.run("migrate", "undo", plan["plan"])
    assert again.lines[-1] == f"Nothing to undo: 'new' has nothing that plan {plan['plan']} wrote."
    empty = installation.run("migrate", "status", second.document["plan"])
    assert empty.lines[-1].startswith(f"Plan {second.document['plan']} is empty: it has nothing to write. Not moved: ")
    missing = installation.run("migrate", "verify", plan["plan"], "--json")
    assert (missing.status, missing.document["missing"]) == (6, RECORDS), missing.err


def test_files_that_the_snapshot_lacks_are_named_by_every_command(service: SandboxProcess, tmp_path: Path) -> None:
    """Their download failed: apply and status exit with 3, verify with 6, each with the names and the record ids."""
    installation = installation_into(tmp_path, service, "third")
    service.fault("status", "old", path="^/storage/", status=404, times=1000)
    assert installation.backup().status == 3
    service.reset("faults", tenant="old")
    plan = installation.run("migrate", "plan", "old", "new", "--newest", "--json").document
    assert (plan["lacking"]["files"], plan["lacking"]["covers"]) == (3, 2)
    part = installation.run("migrate", "apply", plan["plan"], "--limit", "2").lines[-1]
    assert part.startswith("PARTIAL: 2 created")
    assert f"; {plan['create'] - 2} records of plan {plan['plan']} remain. " in part
    for command, status in (("apply", 3), ("status", 3), ("verify", 6)):
        found = installation.run("migrate", command, plan["plan"], "--json")
        assert found.status == status, found.err
        document = found.document
        assert (document["lacking"]["files"], document["lacking"]["covers"]) == (3, 2)
        assert (document.get("complete", False), document.get("equal", False)) == (False, False)
        named = document["findings"]
        assert {one["source_id"] for one in named} == {85, 89, 92}
        printed = installation.run("migrate", command, plan["plan"])
        assert printed.status == status
        assert "cover.jpg" in printed.out
        assert "3 files, 2 covers" in printed.lines[-1]
    restored = installation.run("restore", "old", "new", "--json")
    assert restored.status == 3, "nothing differs but what the snapshot lacks"


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

    printed = installation.run("migrate", "plan", snapshot.name, "new")
    planned = installation.run("migrate", "plan", snapshot.name, "new", "--json").document
    found = {loss["kind"]: loss["count"] for loss in planned["losses"]}
    assert found == {"dates": 3, "identifiers": 1, "undecided": 1, "fields": 1}
    assert [*planned][:2] == ["plan", "losses"]
    assert printed.lines[0] == "Will not arrive in 'new':"
    assert printed.lines[1].startswith("! 3 dates: 2 are only a year or a month")
    assert "--first-days" in printed.lines[1]
    assert "--invalid-identifiers" in printed.lines[2]
    assert "conflicts.tsv" in printed.lines[3]
    page = Path(planned["path"], "plan.html").read_text(encoding="utf-8")
    assert page.index("3 dates") < page.index("publications will be created")
    decide = page.index("What a person has to decide")
    assert decide < page.index("shall the first day be sent?") < page.index("for a decision; until then")

    words = "not moved: 3 dates, 1 identifier, 1 undecided record, the values of 1 field."
    statuses = {"apply": 3, "verify": 3, "status": 3}
    for command, status in statuses.items():
        done = installation.run("migrate", command, planned["plan"])
        assert done.status == status, done.err
        assert words in done.lines[-1]
        assert done.lines[-1].startswith({"apply": "PARTIAL:", "verify": "Equal as planned:"}.get(command, "Plan "))
        document = installation.run("migrate", command, planned["plan"], "--json").document
        assert document["losses"] == planned["losses"]
        assert not document.get("complete", False)
    overview = installation.run("status", "--json").document
    [problem] = [one for library in overview["libraries"] for one in library["problems"] if one["code"] == "migration"]
    assert problem["message"] == f"plan {planned['plan']} waits for 1 decision"


@pytest.mark.long
def test_restore_creates_what_is_missing_once(service: SandboxProcess, tmp_path: Path) -> None:
    """`restore` plans, applies and verifies; run twice, it writes nothing."""
    installation = installation_into(tmp_path, service, "other")
    assert installation.backup().status == 0
    restored = installation.run("restore", "old", "new", "--json")
    assert restored.status == 0, restored.err
    assert (restored.document["created"], restored.document["verification"]["equal"]) == (RECORDS, True)
    again = installation.run("restore", "old", "new", "--json")
    assert (again.status, again.document["created"], again.document["unchanged"]) == (0, 0, RECORDS), again.err


def test_decide_takes_a_file_over_or_says_why_not(service: SandboxProcess, tmp_path: Path) -> None:
    """What is printed ends with the next command; a mistake is exit 2, and a file without decisions is told."""
    installation = installation_into(tmp_path, service, "other")
    planned = installation.run("migrate", "plan", "old", "new", "--json")
    plan, table = planned.document["plan"], Path(planned.document["path"]) / "conflicts.tsv"
    (tmp_path / "copy.tsv").write_bytes(table.read_bytes())
    taken = installation.run("migrate", "decide", plan, "copy.tsv")
    assert taken.status == 0, taken.err
    assert taken.lines[0] == "! The file decides nothing."
    assert taken.lines[-1].startswith("No conflict is left to decide. Next, a plan that follows the decisions:")
    assert taken.lines[-1].endswith("bookferry migrate plan old new --newest")
    document = installation.run("migrate", "decide", plan, "copy.tsv", "--json").document
    assert {"plan", "path", "decisions", "decided", "new", "changed", "withdrawn", "left"} <= document.keys()
    (tmp_path / "copy.tsv").write_text(table.read_text() + "publications\t1\t\t\t\t\tskip\n")
    failed = installation.run("migrate", "decide", plan, "copy.tsv", "--json")
    failed.assert_failed(2, "about which plan", "publications 1", "Nothing was taken over")
    installation.run("migrate", "decide", plan, "nowhere.tsv").assert_failed(2, "There is no file nowhere.tsv")
