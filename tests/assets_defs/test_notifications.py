"""The sensor `notifications`: one call for each run and tenant."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import dagster as dg
import msgspec
import pytest

from assets_defs.definitions import build_definitions
from assets_defs.notifications import notifications
from pipelines.notify import Ending
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings
from tests.assets_defs.installation import PASSWORD, DagsterInstallation
from tests.sandbox.process import SandboxProcess


class NotificationSensor:
    """Evaluates the sensor like the daemon, and records the calls."""

    def __init__(self, installation: DagsterInstallation) -> None:
        self.installation = installation
        self.calls: list[Ending] = []
        self.problem: str | None = None
        self.later = timedelta()
        self._cursor: str | None = None
        self.evaluate()

    def evaluate(self) -> list[tuple[str, str, str]]:
        """Job, tenant and result of each call of this evaluation."""
        before = len(self.calls)

        def call(_: Settings, ending: Ending) -> str | None:
            self.calls.append(ending)
            return self.problem

        sensor = notifications(self.installation.settings, lambda: datetime.now(UTC) + self.later, call)
        with dg.build_sensor_context(instance=self.installation.instance, cursor=self._cursor) as context:
            sensor(context)
            self._cursor = context.cursor
        return [(ending.job, ending.tenant, ending.result) for ending in self.calls[before:]]


@pytest.fixture
def sensor(installation: DagsterInstallation) -> NotificationSensor:
    """A sensor that was evaluated once, before any run."""
    return NotificationSensor(installation)


def run_in_progress(installation: DagsterInstallation, **tags: str) -> dg.DagsterRun:
    """A run of the tenant `old` in progress, whose process is gone."""
    job = build_definitions(installation.settings).resolve_job_def("nightly_backup")
    keys = {dg.AssetKey(["old", "snapshot"])}
    return installation.instance.create_run_for_job(
        job.get_subset(asset_selection=keys),
        asset_selection=frozenset(keys),
        status=dg.DagsterRunStatus.STARTED,
        tags={"bookferry/tenant": "old", "bookferry/data": str(installation.settings.data), **tags},
    )


@pytest.mark.long
def test_one_call_for_each_run_and_tenant(
    installation: DagsterInstallation, sensor: NotificationSensor, sandbox: SandboxProcess
) -> None:
    """A run of two libraries: what could be read of one is published, which is a failure; the other failed, and says why (I10)."""
    sandbox.change("library", variations={"x_total_error": 1})
    sandbox.fault("status", "second", status=401, times=99)
    assert not installation.run("old", "second").success
    assert sensor.evaluate() == [("backup", "old", "partial"), ("backup", "second", "failed")]
    partial, failed = sensor.calls
    [run] = installation.instance.get_runs()
    assert (partial.snapshot, partial.run) == (installation.snapshots[0].manifest.snapshot, run.run_id)
    assert partial.message.startswith("publications: The service announced 121 records")
    assert failed.message.startswith("GET "), failed.message
    assert "401" in failed.message
    assert PASSWORD not in json.dumps(msgspec.to_builtins(failed))
    assert sensor.evaluate() == [], "one call only"


@pytest.mark.long
def test_a_run_that_died_is_silent_until_dagster_ends_it(
    installation: DagsterInstallation, sensor: NotificationSensor
) -> None:
    """Kill -9: no success comes, which is what a dead-man's switch waits for; the monitor's end of the run is a failure.

    One that a person terminated was stopped. Those of another Bookferry on the same instance are not ours.
    """
    run, stopped = run_in_progress(installation), run_in_progress(installation)
    foreign_run = run_in_progress(installation, **{"bookferry/data": "/srv/elsewhere/library-data"})
    assert sensor.evaluate() == []
    installation.instance.report_run_failed(run, "Exceeded maximum runtime of 72000 seconds.")
    assert sensor.evaluate() == [("backup", "old", "failed")]
    assert sensor.calls[0].message.endswith("Dagster says: Exceeded maximum runtime of 72000 seconds.")
    installation.instance.report_run_failed(foreign_run)
    installation.instance.report_run_canceled(stopped)
    assert sensor.evaluate() == [("backup", "old", "stopped")]
    assert sensor.calls[1].message == "Stopped before the end.", "as the command line says; no class of Dagster's"


def test_a_call_that_fails_is_seen_and_not_repeated(
    installation: DagsterInstallation, sensor: NotificationSensor
) -> None:
    """The look is red in Dagster; a command may have done its work."""
    installation.instance.report_run_failed(run_in_progress(installation))
    sensor.problem = "The backup of old (failed) could not be reported: the address at h answered 500."
    with pytest.raises(dg.Failure, match="answered 500"):
        sensor.evaluate()
    sensor.problem = None
    assert sensor.evaluate() == []
    assert len(sensor.calls) == 1


@pytest.mark.long
def test_an_old_success_does_not_reset_a_switch(installation: DagsterInstallation, sensor: NotificationSensor) -> None:
    """The daemon was off for days: a success of then says nothing of today; a failure is still one."""
    assert installation.run("old").success
    installation.instance.report_run_failed(run_in_progress(installation))
    sensor.later = timedelta(hours=2)
    assert sensor.evaluate() == [("backup", "old", "failed")]


def test_failures_of_verification_and_retention(installation: DagsterInstallation, sensor: NotificationSensor) -> None:
    """Only failures: a success of theirs is no sign that there was a backup."""
    config = installation.settings.path
    config.write_text(f"{config.read_text()}\n[retention]\nkeep_last = 3\n")
    installation.settings = load_settings(config)
    ends: Callable[[str], bool] = lambda job: (  # noqa: E731
        build_definitions(installation.settings)
        .resolve_job_def(job)
        .execute_in_process(instance=installation.instance, raise_on_error=False)
        .success
    )
    assert installation.run("old", "second").success
    assert sensor.evaluate() == [("backup", "old", "complete"), ("backup", "second", "complete")]
    assert ends("verify_backups")
    assert ends("prune_backups")
    assert sensor.evaluate() == []
    snapshot = next(snapshot for snapshot in installation.snapshots if snapshot.manifest.tenant == "second")
    (snapshot.path / "publications.parquet").unlink()
    assert not ends("verify_backups")
    assert sensor.evaluate() == [("verification", "second", "failed")]
    assert "publications.parquet is missing" in sensor.calls[-1].message
    (snapshot.path / "publication_files.parquet").write_bytes(b"")
    assert not ends("prune_backups")
    assert sensor.evaluate() == [("retention", "", "failed")]
    assert f"`bookferry snapshots verify {snapshot.name}` says what else is damaged" in sensor.calls[-1].message
