"""The sensor `notifications`: one call for each run of Dagster's and tenant; the command line's own runs are left to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import msgspec
import pytest

from assets_defs.backup import tenant_keys
from assets_defs.dead_runs import dead_runs
from assets_defs.definitions import build_definitions
from assets_defs.notifications import notifications
from pipelines.notify import Ending
from pipelines.settings.loading import load_settings
from pipelines.settings.settings import Settings
from tests.assets_defs.night import PASSWORD, Night
from tests.sandbox.process import SandboxProcess


class Watch:
    """Looks as the daemon does, and keeps what would be told."""

    def __init__(self, night: Night) -> None:
        self.night = night
        self.told: list[Ending] = []
        self.problem: str | None = None
        self.later = timedelta()
        self._cursor: str | None = None
        self.look()

    def look(self) -> list[tuple[str, str, str]]:
        """Job, tenant and result of each call that this look made."""
        before = len(self.told)

        def call(_: Settings, ending: Ending) -> str | None:
            self.told.append(ending)
            return self.problem

        sensor = notifications(self.night.settings, lambda: datetime.now(UTC) + self.later, call)
        with dg.build_sensor_context(instance=self.night.instance, cursor=self._cursor) as context:
            sensor(context)
            self._cursor = context.cursor
        return [(one.job, one.tenant, one.result) for one in self.told[before:]]


@pytest.fixture
def watch(night: Night) -> Watch:
    """One that has looked before anything ran."""
    return Watch(night)


def started(night: Night, repeats: str | None = None, **tags: str) -> dg.DagsterRun:
    """A run of the tenant `old` that is under way, in a process that is not there any more."""
    job = build_definitions(night.settings).resolve_job_def("nightly_backup")
    keys = set(tenant_keys("old", ["publications"]))
    return night.instance.create_run_for_job(
        job.get_subset(asset_selection=keys),
        asset_selection=frozenset(keys),
        status=dg.DagsterRunStatus.STARTED,
        tags=tags,
        parent_run_id=repeats,
        root_run_id=repeats,
    )


def test_one_call_for_each_run_and_tenant(night: Night, watch: Watch, sandbox: SandboxProcess) -> None:
    """A run of two libraries, one of which cannot be signed in to: one is complete, the other failed, and says why (I10)."""
    sandbox.fault("status", "second", status=401, times=99)
    assert not night.run("old", "second").success
    assert watch.look() == [("backup", "old", "complete"), ("backup", "second", "failed")]
    complete, failed = watch.told
    [run] = night.instance.get_runs()
    assert (complete.snapshot, complete.run) == (night.snapshots[0].manifest.snapshot, run.run_id)
    assert failed.message.startswith("GET "), failed.message
    assert "401" in failed.message
    assert PASSWORD not in json.dumps(msgspec.to_builtins(failed))
    assert watch.look() == [], "told once"


def test_a_partial_backup_is_a_failure(night: Night, watch: Watch, sandbox: SandboxProcess) -> None:
    """Although Dagster's run ends well: what could be read is published."""
    sandbox.change("library", variations={"x_total_error": 1})
    assert night.run("old").success
    assert watch.look() == [("backup", "old", "partial")]
    assert watch.told[0].message.startswith("publications: The service announced 121 records")


def test_a_run_that_died_is_silent_until_dagster_ends_it(night: Night, watch: Watch) -> None:
    """Kill -9: no success comes, which is what a dead-man's switch waits for; the monitor's end of the run is a failure."""
    run = started(night)
    assert watch.look() == []
    night.instance.report_run_failed(run, "Exceeded maximum runtime of 72000 seconds.")
    assert watch.look() == [("backup", "old", "failed")]
    assert watch.told[0].message.endswith("Dagster says: Exceeded maximum runtime of 72000 seconds.")


def test_a_run_whose_process_is_gone_is_ended_and_told(night: Night, watch: Watch) -> None:
    """Kill -9: at the second look that finds its library's lease free; a young one and a living one are left alone (trap B13).

    Also one of the command line, which cannot tell any more.
    """
    dead = started(night, **{"bookferry/started_by": "command line"})
    cursor: str | None = None

    def look(later: timedelta) -> str:
        nonlocal cursor
        sensor = dead_runs(night.settings, lambda: datetime.now(UTC) + later)
        with dg.build_sensor_context(instance=night.instance, cursor=cursor) as context:
            skipped: Any = sensor(context)
            cursor = context.cursor
        return str(skipped.skip_message)

    hour = timedelta(hours=1)
    assert [look(timedelta()), look(timedelta())] == ["No run is dead."] * 2, "it may not have come to its first step"
    with night.data.lease("old"):
        assert [look(hour), look(hour)] == ["No run is dead."] * 2, "it lives"
    assert [look(hour), look(hour), look(hour)] == ["No run is dead.", f"Ended: {dead.run_id}.", "No run is dead."]
    [run] = night.instance.get_runs()
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert watch.look() == [("backup", "old", "failed")]
    assert "Dagster says: The process of this run is gone" in watch.told[0].message


def test_a_terminated_run_is_told_as_stopped(night: Night, watch: Watch) -> None:
    run = started(night)
    night.instance.report_run_canceled(run)
    assert watch.look() == [("backup", "old", "stopped")]
    assert watch.told[0].message == "Stopped before the end.", "as the command line says; no class of Dagster's"


def test_the_command_line_tells_of_its_own_runs(night: Night, watch: Watch) -> None:
    """A repetition of one in the web interface inherits its tags, and is Dagster's."""
    tags = {"bookferry/started_by": "command line"}
    first = started(night, **tags)
    night.instance.report_run_failed(first)
    assert watch.look() == []
    night.instance.report_run_failed(started(night, first.run_id, **tags))
    assert watch.look() == [("backup", "old", "failed")]


def test_a_call_that_fails_is_seen_and_not_repeated(night: Night, watch: Watch) -> None:
    """The look is red in Dagster; a command may have done its work."""
    night.instance.report_run_failed(started(night))
    watch.problem = "The backup of old (failed) could not be reported: the address at h answered 500."
    with pytest.raises(dg.Failure, match="answered 500"):
        watch.look()
    watch.problem = None
    assert watch.look() == []
    assert len(watch.told) == 1


def test_old_news_do_not_reset_a_switch(night: Night, watch: Watch) -> None:
    """The daemon was off for days: a success of then says nothing of today; a failure is still one."""
    assert night.run("old").success
    night.instance.report_run_failed(started(night))
    watch.later = timedelta(hours=2)
    assert watch.look() == [("backup", "old", "failed")]


def test_failures_of_verification_and_retention(night: Night, watch: Watch) -> None:
    """Only failures: a success of theirs is no sign that there was a backup."""
    config = night.settings.path
    config.write_text(f"{config.read_text()}\n[retention]\nkeep_last = 3\n")
    night.settings = load_settings(config)
    ends: Callable[[str], bool] = lambda job: (  # noqa: E731
        build_definitions(night.settings)
        .resolve_job_def(job)
        .execute_in_process(instance=night.instance, raise_on_error=False)
        .success
    )
    assert night.run("old", "second").success
    watch.look()
    assert ends("verify_backups")
    assert ends("prune_backups")
    assert watch.look() == []
    snapshot = next(one for one in night.snapshots if one.manifest.tenant == "second")
    (snapshot.path / "publications.parquet").unlink()
    assert not ends("verify_backups")
    assert watch.look() == [("verification", "second", "failed")]
    assert "publications.parquet is missing" in watch.told[-1].message
    (snapshot.path / "manifest.json").write_text("{")
    assert not ends("prune_backups")
    assert watch.look() == [("retention", "", "failed")]
    assert "is damaged" in watch.told[-1].message
