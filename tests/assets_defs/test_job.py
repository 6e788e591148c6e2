"""The job `nightly_backup` against the sandbox on a persistent instance: what Dagster shows, and what it never stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from assets_defs.definitions import build_definitions
from assets_defs.metadata import PREVIEW_CHARACTERS, PREVIEW_ROWS, preview
from pipelines.records.tables.registry import STAGED
from pipelines.store.catalogue import open_catalogue
from pipelines.store.snapshots.snapshots import Snapshot
from tests.assets_defs.installation import PASSWORD, DagsterInstallation, configure, plain, red, secrets_of
from tests.sandbox.process import SandboxProcess

TABLES = tuple(table.name for table in STAGED["publications"])
ASSETS = ("raw_publications", *TABLES, "files", "snapshot")
"""The assets of every backup, without the report."""
CHECKS = {
    ("raw_publications", "count_equals_x_total"),
    ("raw_publications", "readable"),
    ("files", "every_file_kept"),
    ("snapshot", "complete"),
    ("snapshot", "nothing_new_announced"),
    ("snapshot", "recent_complete_backup"),
    ("report", "made"),
}


@dataclass
class BackupRuns:
    """Four runs in a row: two good libraries, a total that disagrees, a listing that fails, a wrong password."""

    installation: DagsterInstallation
    sandbox: SandboxProcess
    good: dg.ExecuteInProcessResult
    partial: dg.ExecuteInProcessResult
    failed: list[dg.ExecuteInProcessResult] = field(default_factory=list)
    after: dict[str, list[Snapshot]] = field(default_factory=dict)
    """Run → the snapshots after it."""

    def metadata(self, result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
        """What one materialization shows."""
        [event] = [
            event
            for event in result.get_asset_materialization_events()
            if event.asset_key == dg.AssetKey(["old", asset])
        ]
        return plain(event.materialization.metadata)

    def checks(self, result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], bool]:
        """Asset and check → whether it is green."""
        return {
            (check.asset_key.path[1], check.check_name): check.passed
            for check in result.get_asset_check_evaluations()
            if check.asset_key.path[0] == "old"
        }


@pytest.fixture(scope="module")
def runs(
    shared_sandbox: SandboxProcess, dagster_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BackupRuns]:
    """All runs of this module: each costs a second or more."""
    sandbox, folder = shared_sandbox, tmp_path_factory.mktemp("runs")
    sandbox.reset()
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in configure(folder, sandbox, dagster_home).items():
            patch.setenv(variable, value)
        with DagsterInstallation(folder) as installation:
            good = installation.run("old", "second")
            after = {"good": installation.snapshots}
            sandbox.change("library", variations={"x_total_error": 2})
            partial = installation.run()
            after["partial"] = installation.snapshots
            sandbox.change("library", variations={"x_total_error": 0, "link": "foreign"})
            failed = [installation.run()]
            sandbox.change("library", variations={"link": "absolute"})
            patch.setenv("TEST_PASSWORD", f"{PASSWORD}-mistyped")
            failed.append(installation.run())
            after["failed"] = installation.snapshots
            yield BackupRuns(installation, sandbox, good, partial, failed, after)
    sandbox.reset()


@pytest.mark.long
def test_a_complete_backup_shows_every_asset_and_check(runs: BackupRuns) -> None:
    """One run may back several libraries up, each signed in to in its own way; an asset is a table is a file. Checks of data are green."""
    assert runs.good.success
    snapshots = [
        (snapshot.manifest.tenant, snapshot.counts["publications"], snapshot.manifest.complete)
        for snapshot in runs.after["good"]
    ]
    assert sorted(snapshots) == [("old", 120, True), ("second", 60, True)]
    events = runs.good.get_asset_materialization_events()
    expected = [f"{tenant}/{name}" for tenant in ("old", "second") for name in (*ASSETS, "report")]
    assert sorted(event.asset_key.to_user_string() for event in events if event.asset_key) == sorted(expected)
    assert runs.checks(runs.good) == {check: check != ("snapshot", "nothing_new_announced") for check in CHECKS}
    [announced, _second] = [
        check for check in runs.good.get_asset_check_evaluations() if check.check_name == "nothing_new_announced"
    ]
    assert announced.severity is dg.AssetCheckSeverity.WARN
    assert "import_state" in str(announced.metadata["new"])


@pytest.mark.long
def test_metadata_of_every_materialization(runs: BackupRuns) -> None:
    """Wanted: rows, bytes, requests, preview table, column schema (which is on the asset itself)."""
    [manifest] = [snapshot.manifest for snapshot in runs.after["good"] if snapshot.manifest.tenant == "old"]
    shown = {asset: runs.metadata(runs.good, asset) for asset in ASSETS}
    snapshot, files = shown["snapshot"], shown["files"]
    for name, table in manifest.tables.items():
        assert (shown[name]["dagster/row_count"], shown[name]["bytes"]) == (table.rows, table.bytes)
        assert 0 < len(shown[name]["preview"]) <= PREVIEW_ROWS
    assert (snapshot["dagster/row_count"], snapshot["bytes"]) == (
        120,
        sum(table.bytes for table in manifest.tables.values()),
    )
    assert (snapshot["problems"], snapshot["complete"], snapshot.get("days_left")) == ("none", True, manifest.days_left)
    assert "announces for the first time as deprecated: import_state" in snapshot["notes"]
    assert {row["file"] for row in snapshot["preview"]} == {table.path for table in manifest.tables.values()}
    totals = manifest.files
    assert (files["dagster/row_count"], files["bytes"], files["new"]) == (totals.kept, totals.bytes, totals.new)
    assert (files["failed"], files["failures"]) == (0, [])
    of_listing = {"raw_publications", "snapshot"}
    assert {asset: metadata["requests"] for asset, metadata in shown.items()} == {
        asset: 3 if asset in of_listing else 0 for asset in ASSETS
    }
    assert all(metadata["dagster/uri"].startswith("file:///") for asset, metadata in shown.items() if asset != "files")


def test_a_partial_backup_is_published_as_such_and_the_good_one_stays_current(runs: BackupRuns) -> None:
    """I4: X-Total disagrees. The run succeeds: what could be read is stored; the checks whose rule is broken are red, with the reason."""
    assert runs.partial.success
    newest = [snapshot for snapshot in runs.after["partial"] if snapshot.manifest.tenant == "old"][-1]
    assert (newest.manifest.complete, newest.counts) == (False, {"publications": 120})
    assert runs.installation.data.find_snapshot("old").name == runs.after["good"][0].name
    broken = {("raw_publications", "count_equals_x_total"), ("snapshot", "complete")}
    assert runs.checks(runs.partial) == {check: check not in broken for check in CHECKS}
    reason = "The service announced 122 records (X-Total) and sent 120 different ones."
    assert reason in runs.metadata(runs.partial, "snapshot")["problems"]
    [check] = [
        check for check in runs.partial.get_asset_check_evaluations() if check.check_name == "count_equals_x_total"
    ]
    assert plain(check.metadata) == {"x_total": 122, "distinct_ids": 120, "problems": reason, "notes": "none"}


class TestFailedBackup:
    """A listing that fails fails the run, and changes nothing (I5)."""

    def test_the_run_fails(self, runs: BackupRuns) -> None:
        """At the listing; nothing after it is tried, and only what failed is red, with the reason."""
        for result in runs.failed:
            assert not result.success
            assert [event.step_key for event in result.get_step_failure_events()] == ["old__snapshot"]
            assert result.get_asset_materialization_events() == []
            assert red(result) == {("raw_publications", "readable"), ("snapshot", "complete")}
            [event] = result.get_step_failure_events()
            reason = event.step_failure_data.user_failure_data.description
            for check in result.get_asset_check_evaluations():
                if (check.asset_key.path[-1], check.check_name) in red(result):
                    assert reason in check.description
        foreign, signed_out = (str(run.get_step_failure_events()[0].step_failure_data.error) for run in runs.failed)
        assert "ForeignOriginError: The service named https://elsewhere.example" in foreign
        assert "SignInError: GET " in signed_out
        assert "Check user name and password" in signed_out
        assert [snapshot.name for snapshot in runs.after["failed"]] == [
            snapshot.name for snapshot in runs.after["partial"]
        ]

    def test_all_materialized_at_once(self, runs: BackupRuns) -> None:
        """What was planned beside the snapshot, also in later steps, has not failed: it is not known."""
        definitions, instance = build_definitions(runs.installation.settings), runs.installation.instance
        keys = [key for key in definitions.resolve_asset_graph().executable_asset_keys if key.path[0] == "old"]
        job = definitions.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(instance=instance, asset_selection=keys, raise_on_error=False)
        assert red(result) == {("raw_publications", "readable"), ("snapshot", "complete")}
        checks = [check for check in definitions.resolve_asset_graph().asset_check_keys if check.asset_key in keys]
        assert len(checks) > len(CHECKS)
        for check in checks:
            [record] = instance.event_log_storage.get_asset_check_execution_history(check, limit=1)
            assert (record.run_id, record.status is AssetCheckExecutionRecordStatus.PLANNED) == (
                result.run_id,
                False,
            ), check


class TestSecrets:
    """No password, header, cookie or signed address anywhere but in raw payloads (I10)."""

    def test_nowhere_on_disk(self, runs: BackupRuns) -> None:
        """Neither in Dagster's databases and logs, nor in manifests, staged tables, catalogue or state, after good and bad nights."""
        secrets = [*secrets_of(runs.sandbox), f"{PASSWORD}-mistyped"]
        contents = runs.installation.kept_texts()
        assert any("event_logs" in text for text in contents.values()), "Dagster's databases are among them"
        for name, text in contents.items():
            assert [secret for secret in secrets if secret in text] == [], name
        with open_catalogue(runs.installation.data) as database:
            [(signed,)] = database.execute(
                "SELECT count(*) FROM raw_publications WHERE payload LIKE '%ignature=%'"
            ).fetchall()
        assert signed > 0, "the one exception: raw records are kept byte for byte (I6)"

    def test_previews_show_short_lines_without_secrets(self) -> None:
        """Whatever a library holds: a preview is neither long, nor several lines, nor an address that lets anybody in."""
        row = ["x" * 500, "two\nlines", "https://s.example/f?X-Amz-Signature=abc123", None, 5]
        [metadata] = plain({"preview": preview("abcde", [row])})["preview"]
        assert len(metadata["a"]) <= PREVIEW_CHARACTERS + 1
        assert metadata["b"] == "two lines"
        assert "abc123" not in metadata["c"]
        assert (metadata["d"], metadata["e"]) == ("", "5")
