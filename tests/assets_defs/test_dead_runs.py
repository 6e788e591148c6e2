"""The sensor `dead_runs`: it ends our own runs only, and only if their process or their launcher says that they are over."""

from __future__ import annotations

import os
import subprocess
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import msgspec
import pytest
from dagster._core.definitions.sensor_definition import SensorEvaluationContext
from dagster._core.execution.plan.objects import StepFailureData
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._core.remote_origin import (
    GrpcServerCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)

from assets_defs.dead_runs import dead_runs
from assets_defs.definitions import build_definitions
from assets_defs.migration import JOBS, LOAD, PLAN, PROOF
from pipelines.running_process import RunningProcess, is_gone, this_process
from pipelines.service.clock import SystemClock
from pipelines.settings.config_file import load_settings
from resources.run_tags import DATA, INSTEAD_OF, PROCESS, data_address
from tests.assets_defs.installation import DagsterInstallation
from tests.assets_defs.test_notifications import NotificationSensor
from tests.sandbox.process import SandboxProcess
from tests.state_places import Place

CODE_LOCATION = "assets_defs.definitions"
COMMAND = ("job", "execute", "-m", CODE_LOCATION, "-j", "nightly_backup")
CONFIGS = {PLAN: {"source": "old"}, LOAD: {"plan": "one", "approval": "0"}, PROOF: {"plan": "one"}}
"""Asset of a migration → what its run needs."""
STARTED = dg.DagsterRunStatus.STARTED
FAILURE = dg.DagsterRunStatus.FAILURE


class Watch:
    """The sensor, evaluated as the daemon does, in the code location `CODE_LOCATION`."""

    def __init__(self, installation: DagsterInstallation) -> None:
        self.installation = installation
        self.instance = installation.instance
        self._cursor: str | None = None

    def evaluate(self, times: int = 1) -> list[dg.RunRequest]:
        """Evaluate it. Returns what it requests."""
        requests = list[dg.RunRequest]()
        sensor = dead_runs(self.installation.settings)
        for _ in range(times):
            with SensorEvaluationContext(
                instance_ref=None,
                last_tick_completion_time=None,
                last_run_key=None,
                cursor=self._cursor,
                log_key=None,
                repository_name=None,
                instance=self.instance,
                code_location_origin=location(CODE_LOCATION),
            ) as context:
                requests += [request for request in sensor(context) if isinstance(request, dg.RunRequest)]
                self._cursor = context.cursor
        return requests

    def run(self, place: str | None = None, name: str = "nightly_backup", asset: str = "", **tags: str) -> str:
        """Create a run in progress of a job, launched from a code location or by `dagster job execute`. Returns its id.

        `asset`: that of `old` which it makes; by default a backup.
        """
        job = built(self.installation.settings.path.read_text(), self.installation.settings.path).resolve_job_def(name)
        keys = frozenset([dg.AssetKey(["old", asset or "snapshot"])])
        origin = place and RemoteJobOrigin(RemoteRepositoryOrigin(location(place), "__repository__"), name)
        run = self.instance.create_run_for_job(
            job.get_subset(asset_selection=set(keys)),
            asset_selection=keys,
            run_config={"ops": {f"old__{asset}": {"config": CONFIGS[asset]}}} if asset in CONFIGS else {},
            status=STARTED,
            tags=tags,
            remote_job_origin=origin or None,
            job_code_origin=None,
        )
        return run.run_id

    def process(self, run_id: str, **changed: Any) -> None:
        """Record this process in a run, with changes."""
        process = msgspec.structs.replace(this_process(run_id), **changed)
        tags = {DATA: data_address(self.installation.settings), PROCESS: process.text}
        self.instance.add_run_tags(run_id, tags)

    def status(self, run: str) -> dg.DagsterRunStatus:
        """Of a run."""
        record = self.instance.get_run_by_id(run)
        assert record is not None
        return record.status


@cache
def built(_text: str, config: Path) -> dg.Definitions:
    """The definitions of a configuration with this text: building them takes longer than most of these tests."""
    return build_definitions(load_settings(config))


def location(name: str) -> GrpcServerCodeLocationOrigin:
    """A code location of this name."""
    return GrpcServerCodeLocationOrigin(host="localhost", port=4000, location_name=name)


@pytest.fixture
def watch(installation: DagsterInstallation) -> Watch:
    return Watch(installation)


def ended_process() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.long
def test_a_killed_run_is_ended_and_reported(
    installation: DagsterInstallation, watch: Watch, sandbox: SandboxProcess
) -> None:
    """While it lives it is left alone; after kill -9 it is ended at the second look, although a new run has the lease by then (I9)."""
    notifications = NotificationSensor(installation)
    sandbox.fault("hang", "library", path=r"page=2(&|$)", seconds=10_000)
    with installation.dagster(*COMMAND) as process:
        while sandbox.counts("library")["requests"] < 3:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)  # between two looks; what counts is the look
        [run] = installation.instance.get_runs()
        watch.evaluate(times=3)
        assert watch.status(run.run_id) is STARTED
        process.kill()
        process.communicate()
    with installation.data.lease("old"):
        watch.evaluate()
        assert watch.status(run.run_id) is STARTED, "it may have been about to end"
        watch.evaluate()
    assert watch.status(run.run_id) is FAILURE
    assert ("backup", "old", "failed") in notifications.evaluate()
    assert "Dagster says: The process of this run is gone" in notifications.calls[0].message


class TestOnceMore:
    """A backup whose worker was lost is requested once more, and nothing else is."""

    def lost(self, watch: Watch, run: str) -> str:
        """Let the process of a run be gone."""
        watch.process(run, pid=ended_process())
        return run

    def test_a_backup(self, watch: Watch, installation: DagsterInstallation) -> None:
        """The same assets and library, with the lost run as its tag; without the queue of the worker that is gone.

        The daemon resolves it against the job that the sensor names.
        """
        tags = {"bookferry/tenant": "old", "dagster-celery/queue": "first"}
        lost = self.lost(watch, watch.run(CODE_LOCATION, **tags))
        [request] = watch.evaluate(times=4)
        run = watch.instance.get_run_by_id(lost)
        assert run is not None
        assert {*request.asset_selection} == run.asset_selection
        assert (request.job_name, request.run_key) == (None, f"instead of {lost}")
        assert request.tags == {"bookferry/tenant": "old", INSTEAD_OF: lost}
        [failure] = watch.instance.all_logs(lost, of_type=dg.DagsterEventType.RUN_FAILURE)
        assert failure.message.endswith("It was requested once more.")
        definitions = build_definitions(installation.settings).get_repository_def()
        [target] = definitions.get_sensor_def("dead_runs").targets
        job = definitions.get_job(target.job_name).get_subset(asset_selection={*request.asset_selection})
        assert (target.job_name, len(job.asset_layer.selected_asset_keys)) == ("nightly_backup", 1)

    @pytest.mark.long
    def test_not_what_it_had_published(self, installation: DagsterInstallation, sandbox: SandboxProcess) -> None:
        """It may have been lost after that: what follows is made of the snapshot that is there."""
        lost = installation.run().run_id
        before = sandbox.counts("library")["requests"]
        second_run = installation.run(**{INSTEAD_OF: lost})
        [snapshot] = installation.snapshots
        assert sandbox.counts("library")["requests"] == before
        made = {event.asset_key.path[-1] for event in second_run.get_asset_materialization_events() if event.asset_key}
        assert {"snapshot", "publications", "report"} <= made
        logged = [entry.user_message for entry in installation.instance.all_logs(second_run.run_id)]
        assert f"The run {lost} had published {snapshot.name} before it was lost. It is not made again." in logged
        installation.run(**{INSTEAD_OF: "a run that had published nothing"})
        assert len(installation.snapshots) == 2

    def test_a_backup_that_the_code_server_ended(self, watch: Watch) -> None:
        """It sees within seconds that a worker which it started was killed. The same key again is the same request to Dagster."""
        killed = self.lost(watch, watch.run(CODE_LOCATION, **{"bookferry/tenant": "old"}))
        watch.instance.report_run_failed(watch.instance.get_run_by_id(killed))
        assert {request.run_key for request in watch.evaluate(times=2)} == {f"instead of {killed}"}

    @pytest.mark.long
    def test_nothing_else(self, watch: Watch, installation: DagsterInstallation) -> None:
        """Its worker has said which step failed; it was requested once more already; cron starts what Dagster did not launch.

        A migration writes what a person began, and nothing else. What a person terminates is over, although its worker is lost before.
        """
        config = installation.settings.path
        config.write_text(config.read_text().replace('api = "v2"', 'api = "v3"'))
        installation.settings = load_settings(config)
        failed = self.lost(watch, watch.run(CODE_LOCATION, **{"bookferry/tenant": "old"}))
        step = dg.DagsterEvent(
            dg.DagsterEventType.STEP_FAILURE.value,
            "nightly_backup",
            step_key="old__snapshot",
            event_specific_data=StepFailureData(error=None, user_failure_data=None),
        )
        watch.instance.report_dagster_event(step, failed)
        watch.instance.report_run_failed(watch.instance.get_run_by_id(failed))
        canceled = self.lost(watch, watch.run(CODE_LOCATION))
        watch.evaluate()
        watch.instance.report_run_canceling(watch.instance.get_run_by_id(canceled))
        runs = [
            watch.run(CODE_LOCATION, **{INSTEAD_OF: "another"}),
            watch.run(**{"bookferry/tenant": "old"}),
            *(watch.run(CODE_LOCATION, job, asset) for asset, job in JOBS.items()),
            watch.run(CODE_LOCATION, "verify_backups", "verification"),
        ]
        for run in runs:
            self.lost(watch, run)
        assert watch.evaluate(times=3) == []
        assert {watch.status(run) for run in runs} == {FAILURE}

    def test_not_while_another_run_is_at_work(self, watch: Watch, installation: DagsterInstallation) -> None:
        """It would be refused, and somebody would be notified of that."""
        self.lost(watch, watch.run(CODE_LOCATION))
        with installation.data.lease("old"):
            assert watch.evaluate(times=3) == []


def test_only_its_own_process_counts(watch: Watch) -> None:
    """Runs of another code location, of its command line, of another Bookferry have a job of the same name: dead ones are left alone.

    So is a run of ours whose process is on another machine, that names none, or that repeats a dead one.
    """
    living, dead, elsewhere, unknown, repeating = (watch.run(CODE_LOCATION) for _ in range(5))
    foreign_runs = [watch.run("warehouse"), watch.run(), watch.run(CODE_LOCATION, **{"bookferry/tenant": "old"})]
    watch.process(living)
    watch.process(elsewhere, host="another machine", boot="another", pid=ended_process())
    watch.process(repeating, pid=ended_process(), run=living)  # the tag of the run that it repeats
    for run in (dead, foreign_runs[-1]):
        watch.process(run, started="another start")
    watch.instance.add_run_tags(foreign_runs[-1], {DATA: "/srv/elsewhere/library-data"})
    watch.evaluate(times=3)
    assert watch.status(dead) is FAILURE
    assert {watch.status(run) for run in (living, elsewhere, unknown, repeating, *foreign_runs)} == {STARTED}


def test_in_another_container_of_this_machine_the_lease_decides(
    watch: Watch, installation: DagsterInstallation
) -> None:
    """The process cannot be seen from here, but a lock of the same kernel can."""
    run = watch.run(CODE_LOCATION)
    watch.process(run, namespace="pid:[1]")
    if not this_process("").boot:
        pytest.skip("this system has no containers")
    without_a_lease = watch.run(CODE_LOCATION, "verify_backups", "verification")
    watch.process(without_a_lease, namespace="pid:[1]")
    with installation.data.lease("old"):
        watch.evaluate(times=3)
        assert watch.status(run) is STARTED
    watch.evaluate(times=2)
    assert watch.status(run) is FAILURE
    assert watch.status(without_a_lease) is STARTED, "its work needs no lease"


@pytest.mark.parametrize(
    "job",
    [
        "verify_migration",
        *(pytest.param(job, marks=pytest.mark.long) for job in ("nightly_backup",)),
    ],
)
def test_of_a_run_elsewhere_the_shared_lease_decides(
    watch: Watch, installation: DagsterInstallation, shared_place: Place, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    """A run of another machine is left alone while it holds its lease in the shared state, and ended once it does not."""
    config = installation.settings.path
    if job != "nightly_backup":
        config.write_text(config.read_text().replace('api = "v2"', 'api = "v3"'))
    head = 'state = "postgres"\npostgres_env = "TEST_STATE"\npostgres.load = false\n'
    config.write_text(head + config.read_text())
    monkeypatch.setenv("TEST_STATE", shared_place.address)
    installation.settings = load_settings(config)
    run = watch.run(CODE_LOCATION, job, {name: asset for asset, name in JOBS.items()}.get(job, ""))
    watch.process(run, host="another machine", boot="another", pid=ended_process())
    with shared_place.state(SystemClock()).lease("old", str(installation.settings.data)):
        watch.evaluate(times=3)
        assert watch.status(run) is STARTED
    watch.evaluate(times=2)
    assert watch.status(run) is FAILURE


@pytest.mark.parametrize(
    ("worker", "status"), [("RUNNING", STARTED), ("UNKNOWN", STARTED), ("NOT_FOUND", FAILURE), ("FAILED", FAILURE)]
)
def test_the_launcher_is_asked_about_a_worker_elsewhere(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, worker: str, status: dg.DagsterRunStatus
) -> None:
    """As of Kubernetes or ECS. It is not asked about a run of `dagster job execute`, which it never started."""
    asked = set[str]()

    def health(run: dg.DagsterRun) -> CheckRunHealthResult:
        asked.add(run.run_id)
        return CheckRunHealthResult(WorkerStatus[worker])

    launcher = SimpleNamespace(supports_check_run_worker_health=True, check_run_worker_health=health)
    monkeypatch.setattr(dg.DagsterInstance, "run_launcher", launcher)
    launched, command = watch.run(CODE_LOCATION), watch.run(**{"bookferry/tenant": "old"})
    for run in (launched, command):
        watch.process(run, host="another machine", boot="another")
    watch.evaluate(times=2)
    assert (watch.status(launched), watch.status(command)) == (status, STARTED)
    assert asked == {launched}


def test_processes() -> None:
    """A process is known by its number and its start; a zombie is gone, and so is everything before the last start of the machine."""
    process: RunningProcess = this_process("run")
    assert is_gone(process) is False
    assert is_gone(msgspec.structs.replace(process, started="earlier")) is True
    assert is_gone(msgspec.structs.replace(process, pid=ended_process())) is True
    assert is_gone(msgspec.structs.replace(process, host="another")) is None
    assert is_gone(msgspec.structs.replace(process, boot="the last one")) is True
    child = os.fork()
    if child == 0:
        os.execv("/bin/true", ["true"])
    zombie = msgspec.structs.replace(process, pid=child)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert is_gone(zombie) is True
    os.waitpid(child, 0)
