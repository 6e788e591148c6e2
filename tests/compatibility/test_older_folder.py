"""A data folder that an earlier Bookferry made goes on working: nothing is read twice, written twice or lost.

`folder-0.1.0.tar.xz` was made by `make_folder.py` with version 0.1.0 before its modules were moved: a complete backup, a backup that was
killed in the middle of the listing, a plan with a person's decision that was applied in part, its sign-in, and Dagster's history.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import environment, run
from tests.compatibility.make_folder import HOST, PORT, RECORDS, STORAGE_PORT
from tests.sandbox.process import SandboxProcess

ARCHIVE = Path(__file__).with_name("folder-0.1.0.tar.xz")
ACCOUNT = {"TEST_USER": "backup@library.example", "TEST_PASSWORD": "sandbox-password"}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no loopback address but 127.0.0.1")


@dataclass(frozen=True)
class OlderFolder:
    """The folder, and the service that it was made from, as both were then."""

    path: Path
    sandbox: SandboxProcess
    facts: dict[str, Any]

    def run(self, *arguments: str, statuses: tuple[int, ...] = (0,)) -> Any:
        """A command of today; its JSON document."""
        result = run(*arguments, "--json", folder=self.path, variables=ACCOUNT)
        assert result.status in statuses, result
        return result.document

    def listed_pages(self) -> list[str]:
        """The pages of the old library's list that were asked for."""
        return [seen["path"] for seen in self.sandbox.requests("old") if "/publications" in seen["path"]]


@pytest.fixture
def older(tmp_path: Path) -> Iterator[OlderFolder]:
    """A copy of the folder, and the sandbox at the address that the folder knows."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    facts = json.loads((tmp_path / "facts.json").read_text())
    address = ("--host", HOST, "--port", str(PORT), "--storage-port", str(STORAGE_PORT))
    with SandboxProcess(*address, "--state", str(tmp_path / "sandbox.db"), "--requests-per-minute", "0") as sandbox:
        yield OlderFolder(tmp_path, sandbox, facts)


def test_its_snapshots_are_listed_verified_and_queried(older: OlderFolder) -> None:
    """The manifest, the checksums, the blobs and the catalogue are understood."""
    snapshot = older.facts["backup"]["snapshot"]
    assert snapshot in [
        one["snapshot"] for one in older.run("snapshots", "list", "old")["snapshots"] if one["complete"]
    ]
    assert older.run("snapshots", "verify", f"old/{snapshot}")["ok"]
    assert older.run("query", "SELECT count(*) AS records FROM publications")["rows"] == [{"records": RECORDS}]
    by_day = older.run("query", "SELECT count(published_on) AS days, count(published_year) AS years FROM publications")
    by_decade = older.run("query", "--example", "collection_by_decade")["rows"]
    undated = sum(row["publications"] for row in by_decade if row["published"] == "no date")
    assert by_day["rows"] == [{"days": RECORDS - undated, "years": 0}], "the files are older than published_year"
    assert undated < RECORDS


def test_a_backup_that_was_killed_goes_on(older: OlderFolder) -> None:
    """Pages that were kept are not asked for again, but for the one that must overlap (I9)."""
    [capture] = (older.path / "library-data" / "work" / "tenant=old").glob("*/capture.json")
    begun = json.loads(capture.read_text())
    # An unfinished backup is gone on with for some hours only; the one in the archive is as old as the archive.
    capture.write_text(json.dumps({**begun, "started_at": datetime.now(UTC).isoformat(timespec="seconds")}))
    found = older.run("backup", "old", "--resources", "publications", "--no-files")
    assert (found["complete"], found["counts"]["publications"]) == (True, RECORDS)
    assert len(older.listed_pages()) == 2  # of five


def test_its_plan_is_refused(older: OlderFolder) -> None:
    """A plan is made anew: only snapshots stay readable."""
    refused = older.run("migrate", "apply", older.facts["plan"]["plan"], statuses=(1,))
    assert "was written by another version" in refused["error"]
    assert refused["error"].endswith("Make a new plan.")


def test_the_history_in_dagster_is_that_of_todays_assets(older: OlderFolder) -> None:
    """Names of assets, checks and jobs have not changed, so that their history is shown with them."""
    code = (
        "import json, dagster as dg; from assets_defs import definitions; defs = definitions.defs()\n"
        "with dg.DagsterInstance.from_config('library-data/dagster') as instance:\n"
        "    keys = {key.to_user_string() for key in instance.all_asset_keys()}\n"
        "    jobs = {run.job_name for run in instance.get_runs()}\n"
        "graph = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}\n"
        "known = {job.name for job in defs.resolve_all_job_defs()}\n"
        "print(json.dumps([len(keys), sorted(keys - graph), len(jobs), sorted(jobs - known)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=older.path,
        env=environment(BOOKFERRY_CONFIG=str(older.path / "bookferry.toml"), **ACCOUNT),
        capture_output=True,
        text=True,
        check=True,
    )
    assets, gone, jobs, unknown = json.loads(done.stdout)
    assert (assets > 5, gone, jobs > 0, unknown) == (True, [], True, [])
