"""The job `nightly_backup` against the sandbox on a persistent instance: what Dagster shows, and what it never stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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
"""The assets of every backup; the report is another."""
CHECKS = {
    ("raw_publications", "count_equals_x_total"),
    ("raw_publications", "ids_unique"),
    ("raw_publications", "readable"),
    *((table, "required_columns") for table in TABLES),
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
            (one.asset_key.path[1], one.check_name): one.passed
            for one in result.get_asset_check_evaluations()
            if one.asset_key.path[0] == "old"
        }


@pytest.fixture(scope="module")
def runs(shared_sandbox: SandboxProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackupRuns]:
    """All runs of this module: each costs a second or more."""
    sandbox, folder = shared_sandbox, tmp_path_factory.mktemp("runs")
    sandbox.reset()
    sandbox.change("library", requests_per_minute=0)
    sandbox.change("second", requests_per_minute=0)
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in configure(folder, sandbox).items():
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


class TestCompleteBackup:
    """Every table is materialized, checked and previewed; the snapshot is complete."""

    @pytest.mark.long
    def test_snapshots_of_both_libraries(self, runs: BackupRuns) -> None:
        """One run may back several libraries up; each has its own snapshot, signed in to in its own way."""
        assert runs.good.success
        found = [(one.manifest.tenant, one.counts["publications"], one.manifest.complete) for one in runs.after["good"]]
        assert sorted(found) == [("old", 120, True), ("second", 60, True)]

    def test_every_asset_is_materialized_once(self, runs: BackupRuns) -> None:
        """Asset = table = file: one name for one thing."""
        events = runs.good.get_asset_materialization_events()
        expected = [f"{tenant}/{name}" for tenant in ("old", "second") for name in (*ASSETS, "report")]
        assert sorted(event.asset_key.to_user_string() for event in events if event.asset_key) == sorted(expected)

    @pytest.mark.parametrize("asset", ASSETS)
    def test_metadata_of_every_materialization(self, runs: BackupRuns, asset: str) -> None:
        """Wanted: rows, bytes, requests, preview table, column schema (which is on the asset itself)."""
        metadata = runs.metadata(runs.good, asset)
        [snapshot] = [one for one in runs.after["good"] if one.manifest.tenant == "old"]
        tables = snapshot.manifest.tables
        if asset == "snapshot":
            assert metadata["dagster/row_count"] == 120
            assert metadata["bytes"] == sum(table.bytes for table in tables.values())
            assert (metadata["problems"], metadata["complete"]) == ("none", True)
            assert "announces for the first time as deprecated: import_state" in metadata["notes"]
            assert metadata.get("days_left") == snapshot.manifest.days_left
            assert {row["file"] for row in metadata["preview"]} == {table.path for table in tables.values()}
        elif asset == "files":
            files = snapshot.manifest.files
            assert (metadata["dagster/row_count"], metadata["bytes"], metadata["new"]) == (
                files.kept,
                files.bytes,
                files.new,
            )
            assert (metadata["failed"], metadata["requests"], metadata["failures"]) == (0, 0, [])
            return
        else:
            assert metadata["dagster/row_count"] == tables[asset].rows
            assert metadata["bytes"] == tables[asset].bytes
            assert 0 < len(metadata["preview"]) <= PREVIEW_ROWS
        assert metadata["requests"] == (3 if asset in ("raw_publications", "snapshot") else 0)
        assert metadata["dagster/uri"].startswith("file:///")

    def test_every_check_about_the_data_is_green(self, runs: BackupRuns) -> None:
        """Count equals X-Total, ids unique, required columns filled, and the verdict on the whole. What is announced first is a warning."""
        assert runs.checks(runs.good) == {check: check != ("snapshot", "nothing_new_announced") for check in CHECKS}
        [check] = [
            one
            for one in runs.good.get_asset_check_evaluations()
            if one.check_name == "nothing_new_announced" and one.asset_key.path[0] == "old"
        ]
        assert check.severity is dg.AssetCheckSeverity.WARN
        assert "import_state" in str(check.metadata["new"])

    def test_the_instance_remembers_them(self, runs: BackupRuns) -> None:
        """The web interface shows what the instance keeps."""
        key = dg.AssetKey(["old", "snapshot"])
        latest = runs.installation.instance.get_latest_materialization_event(key)
        assert latest is not None
        assert latest.run_id == runs.partial.run_id
        run = runs.installation.instance.get_run_by_id(runs.good.run_id)
        assert run is not None
        assert (run.status, run.run_config) == (dg.DagsterRunStatus.SUCCESS, {})


class TestPartialBackup:
    """X-Total disagrees: red checks, a snapshot published as partial, and the good one stays current (I4)."""

    def test_published_as_partial(self, runs: BackupRuns) -> None:
        """The run succeeds: what could be read is stored, and called partial."""
        assert runs.partial.success
        newest = runs.after["partial"][-1]
        assert (newest.manifest.complete, newest.counts) == (False, {"publications": 120})
        assert runs.installation.data.find_snapshot("old").name == runs.after["good"][0].name

    def test_red_checks(self, runs: BackupRuns) -> None:
        """The checks whose rule is broken are red, the others green."""
        red = {("raw_publications", "count_equals_x_total"), ("snapshot", "complete")}
        assert runs.checks(runs.partial) == {check: check not in red for check in CHECKS}

    def test_the_reason_is_shown(self, runs: BackupRuns) -> None:
        """On the materialization and on the check."""
        reason = "The service announced 122 records (X-Total) and sent 120 different ones."
        assert reason in runs.metadata(runs.partial, "snapshot")["problems"]
        [check] = [
            one for one in runs.partial.get_asset_check_evaluations() if one.check_name == "count_equals_x_total"
        ]
        assert plain(check.metadata) == {"x_total": 122, "distinct_ids": 120, "problems": reason, "notes": "none"}

    def test_analysts_see_the_good_one(self, runs: BackupRuns) -> None:
        """The views show the newest complete snapshot of each library."""
        with open_catalogue(runs.installation.data) as database:
            rows = database.execute("SELECT DISTINCT tenant || '/' || snapshot FROM publications").fetchall()
        assert {name for (name,) in rows} == {one.name for one in runs.after["good"]}


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

    def test_the_last_good_snapshot_stays(self, runs: BackupRuns) -> None:
        """No snapshot came, none went."""
        assert [one.name for one in runs.after["failed"]] == [one.name for one in runs.after["partial"]]

    def test_the_message_is_ours(self, runs: BackupRuns) -> None:
        """The failure that Dagster shows holds the sentence that says what to do."""
        messages = [
            str(event.step_failure_data.error) for result in runs.failed for event in result.get_step_failure_events()
        ]
        assert "ForeignOriginError: The service named https://elsewhere.example" in messages[0]
        assert "SignInError: GET " in messages[1]
        assert "Check user name and password" in messages[1]


class TestSecrets:
    """No password, header, cookie or signed address anywhere but in raw payloads (I10)."""

    def test_nowhere_on_disk(self, runs: BackupRuns) -> None:
        """Neither in Dagster's databases and logs, nor in manifests, staged tables, catalogue or state, after good and bad nights."""
        secrets = [*secrets_of(runs.sandbox), f"{PASSWORD}-mistyped"]
        contents = dict(runs.installation.everything_kept())
        assert any("event_logs" in text for text in contents.values()), "Dagster's databases are among them"
        for name, text in contents.items():
            assert [secret for secret in secrets if secret in text] == [], name

    def test_raw_payloads_are_as_the_service_sent_them(self, runs: BackupRuns) -> None:
        """The one exception: signed addresses are in the raw records, which are kept byte for byte (I6)."""
        with open_catalogue(runs.installation.data) as database:
            [(signed,)] = database.execute(
                "SELECT count(*) FROM raw_publications WHERE payload LIKE '%ignature=%'"
            ).fetchall()
        assert signed > 0

    def test_previews_show_short_lines_without_secrets(self) -> None:
        """Whatever a library holds: a preview is neither long, nor several lines, nor an address that lets anybody in."""
        row = ["x" * 500, "two\nlines", "https://s.example/f?X-Amz-Signature=abc123", None, 5]
        [metadata] = plain({"preview": preview("abcde", [row])})["preview"]
        assert len(metadata["a"]) <= PREVIEW_CHARACTERS + 1
        assert metadata["b"] == "two lines"
        assert "abc123" not in metadata["c"]
        assert (metadata["d"], metadata["e"]) == ("", "5")
