"""Two Celery workers without a shared disk, one database, one bucket, one library: with the files of `deploy/celery`, by Dagster itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipelines.backup.flow import Backup
from pipelines.store.maintenance.verification import verify
from pipelines.store.snapshots.capture_copies import CAPTURES, newest_copies
from resources.run_tags import INSTEAD_OF
from tests.cli.command import BOOKFERRY, ROOT, Outcome, environment, run
from tests.cli.web_interface import WebInterface
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess
from tests.shared_machines import SHARED, TENANT
from tests.store.s3 import s3_server

LIMIT = 120
PAGES = 109
TENANTS = ("one", "other")
PATIENCE = 400
CALLS = "calls.jsonl"


@dataclass
class Machine:
    """A machine: its folder is its disk. All of them reach the same servers."""

    folder: Path
    variables: dict[str, str]

    @classmethod
    def make(cls, folder: Path, config: str, variables: dict[str, str]) -> Machine:
        """Write its configuration, and Dagster's instance as it is in `deploy/celery`."""
        home = folder / "dagster"
        home.mkdir(parents=True)
        (folder / "bookferry.toml").write_text(config)
        instance = (ROOT / "deploy" / "celery" / "dagster.yaml").read_text("utf-8")
        if not variables["CELERY_BROKER"].startswith("redis:"):
            [option] = [line for line in instance.splitlines() if "visibility_timeout" in line]  # of Redis alone
            instance = instance.replace(option, "")
        (home / "dagster.yaml").write_text(instance)
        own_variables = {
            "DAGSTER_HOME": str(home),
            "BOOKFERRY_CONFIG": str(folder / "bookferry.toml"),
            "HOME": str(folder),
        }
        return cls(folder, {**variables, **own_variables})

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command of Bookferry here."""
        return self._start([*BOOKFERRY, *arguments], **options)

    def start_worker(self) -> subprocess.Popen[str]:
        """Start a worker with the command of `deploy/celery/bookferry-worker.service`, one task at a time. Returns once it takes tasks.

        Two workers that make the tables of a database as their broker at the same moment can end each other.
        """
        broker, results = self.variables["CELERY_BROKER"], self.variables["CELERY_BACKEND"]
        unit = (ROOT / "deploy" / "celery" / "bookferry-worker.service").read_text("utf-8")
        [line] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
        name = self.folder.name
        values = {"${CELERY_BROKER}": broker, "${CELERY_BACKEND}": results, "10": "1", "bookferry": f"bookferry,{name}"}
        _program, *arguments = (values.get(part, part) for part in line.removeprefix("ExecStart=").split())
        quiet = ["--hostname", name]
        if not broker.startswith("redis:"):
            quiet += ["--without-gossip", "--without-mingle"]  # a database as the broker has no broadcasts
        worker = self._start([sys.executable, "-m", "celery", *arguments, *quiet], start_new_session=True)
        wait_until(f"{name} is ready", lambda: worker.poll() is not None or f"celery@{name} ready" in self.said())
        assert worker.poll() is None, self.said()
        return worker

    def run(self, *arguments: str) -> Outcome:
        """Run a command of Bookferry here."""
        return run(*arguments, folder=self.folder, variables=self.variables)

    def said(self) -> str:
        """The output of the processes that were started here."""
        return "\n".join(log.read_text("utf-8") for log in sorted(self.folder.glob("*.log")))

    def _start(self, command: list[str], **options: Any) -> subprocess.Popen[str]:
        with (self.folder / f"{Path(command[2]).name}.log").open("a") as log:
            settings = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **options}
            return subprocess.Popen(command, cwd=self.folder, env=environment(**self.variables), text=True, **settings)


@dataclass
class Cluster:
    """The machines: one with Dagster's pages and daemon, and two workers."""

    control: Machine
    workers: list[Machine]
    sandbox: SandboxProcess

    def backup(self) -> Backup:
        """The data, as any machine sees it."""
        return Backup.open(self.control.folder / "bookferry.toml")

    def calls(self) -> str:
        """The calls of `[notify]`, a line each."""
        path = self.control.folder.parent / CALLS
        return path.read_text("utf-8") if path.exists() else ""

    def instead_of(self, lost: str) -> Callable[[], str | None]:
        """Returns a function that looks for the run that was requested for a lost one. It may be at most one."""

        def look() -> str | None:
            with dg.DagsterInstance.from_config(self.control.variables["DAGSTER_HOME"]) as instance:
                [*runs] = instance.get_runs(dg.RunsFilter(tags={INSTEAD_OF: lost}))
            assert len(runs) <= 1
            return runs[0].run_id if runs else None

        return look

    def said(self) -> str:
        """The output of all machines."""
        return "\n".join(machine.said() for machine in (self.control, *self.workers))


@contextmanager
def broker(server: str) -> Iterator[dict[str, str]]:
    """Redis, as the broker and for the results; a database where it is not installed."""
    if (program := shutil.which("redis-server")) is None:
        with database(server) as address:
            driver = address.replace("postgresql://", "postgresql+psycopg2://")
            yield {"CELERY_BROKER": f"sqla+{driver}", "CELERY_BACKEND": f"db+{driver}"}
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    redis = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield {"CELERY_BROKER": f"redis://127.0.0.1:{port}/0", "CELERY_BACKEND": f"redis://127.0.0.1:{port}/1"}
    finally:
        redis.terminate()
        redis.wait(60)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        state, history = (stack.enter_context(database(server)) for _ in range(2))
        s3 = stack.enter_context(s3_server())
        library = f"--tenant=library=real:{50 * PAGES - 5}"
        sandbox = stack.enter_context(SandboxProcess(library, "--requests-per-minute", str(LIMIT)))
        variables = {
            **s3.environ,
            "TEST_POSTGRES": state,
            "TEST_USER": sandbox.user,
            "TEST_PASSWORD": sandbox.password,
            "DAGSTER_POSTGRES": history,
            **stack.enter_context(broker(server)),
            "PYTHONPATH": str(ROOT),
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        night = datetime.now(UTC) + timedelta(hours=12)  # the schedule adds no backup of its own
        config = f'nightly_at = "{night:%H:%M}"\n' + SHARED.format(bucket=s3.bucket())
        config += f"[notify]\nfailure = ['sh', '-c', 'cat >> {tmp_path / CALLS}']\n"
        config += "".join(TENANT.format(name=name, base_url=sandbox.base_url(), limit=LIMIT) for name in TENANTS)
        machines = [Machine.make(tmp_path / name, config, variables) for name in ("control", "first", "second")]
        yield Cluster(machines[0], machines[1:], sandbox)


def wait_until(goal: str, holds: Any, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not in time: {goal}"
        time.sleep(0.5)


def launch(interface: WebInterface, cluster: Cluster, tenant: str, **tags: str) -> str:
    """Launch the nightly backup of a library, as the schedule does. `tags`: of Dagster."""
    return interface.launch("nightly_backup", [(tenant, "snapshot")], **{"bookferry/tenant": tenant}, **tags)


def kill(worker: subprocess.Popen[str]) -> None:
    """The machine is gone: nothing of it says another word."""
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(60)


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not shutil.which("redis-server"), reason="a database as the broker tells no worker to end a run")
def test_a_run_that_a_person_terminates_is_canceled(cluster: Cluster) -> None:
    """It ends, people are notified that it was stopped, nothing requests it again, and the next one resumes it."""
    [machine, _] = cluster.workers
    worker = machine.start_worker()
    try:
        with WebInterface(cluster.control) as interface:  # type: ignore[arg-type]  # it starts commands like an installation
            run = launch(interface, cluster, TENANTS[0])
            assert interface.wait_for(run, "STARTED") == "STARTED", cluster.said()
            wait_until("it reads", lambda: cluster.sandbox.counts()["requests"] > 10)
            interface.terminate(run)
            assert interface.wait_for(run) == "CANCELED", cluster.said()
            request_count = cluster.sandbox.counts()["requests"]
            wait_until("people are notified", lambda: '"stopped"' in cluster.calls())
            assert [call["result"] for call in map(json.loads, cluster.calls().splitlines())] == ["stopped"]
            assert cluster.sandbox.counts()["requests"] - request_count <= 2, "the run is still at work"
            assert cluster.instead_of(run)() is None
            second_run = launch(interface, cluster, TENANTS[0])
            assert interface.wait_for(second_run, "STARTED") == "STARTED", "the worker takes the next one"
            interface.stop()
    finally:
        kill(worker)


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_worker_is_lost_and_the_other_one_goes_on(cluster: Cluster) -> None:
    """The budget holds over both; a second run of a library is refused; the lost run ends as failed and is continued elsewhere."""
    workers = list[subprocess.Popen[str]]()
    try:
        for machine in cluster.workers:
            workers.append(machine.start_worker())
        with WebInterface(cluster.control) as interface:  # type: ignore[arg-type]  # it starts commands like an installation
            runs = [  # one for each worker, by the queues that only they read
                launch(interface, cluster, tenant, **{"dagster-celery/queue": machine.folder.name})
                for tenant, machine in zip(TENANTS, cluster.workers, strict=True)
            ]
            for started in runs:
                assert interface.wait_for(started, "STARTED") == "STARTED", cluster.said()
            with cluster.backup() as backup:
                wait_until("pages are copied", lambda: len(newest_copies(backup.data)) == len(TENANTS))
            refused = cluster.control.run("backup", "one")
            refused.assert_failed(1, "Another run is at work on 'one'")

            wait_until("both have read for a minute", lambda: cluster.sandbox.counts()["requests"] > 1.3 * LIMIT)
            kill(workers[1])
            ended = {started: interface.wait_for(started) for started in runs}
            assert ended == {runs[0]: "SUCCESS", runs[1]: "FAILURE"}, cluster.said()
            replacement = cluster.instead_of(runs[1])
            wait_until("it is requested once more", lambda: replacement() is not None)
            assert interface.wait_for(replacement() or "") == "SUCCESS"
            interface.stop()
    finally:
        for worker in workers:
            if worker.poll() is None:
                kill(worker)
    counts = cluster.sandbox.counts()
    assert (counts["throttled"], counts["largest_window"] <= LIMIT) == (0, True)
    assert counts["largest_window"] >= 0.98 * LIMIT
    with cluster.backup() as backup:
        for name in TENANTS:
            snapshots = backup.data.snapshots(name)
            assert len(snapshots) == 1, (snapshots, cluster.said())
            [snapshot] = snapshots
            assert snapshot.manifest.complete
            assert verify(backup.data, snapshot.key, now=backup._now()).ok
            facts = snapshot.manifest.resources["publications"]
            assert (facts.resumed > 0) == (name == TENANTS[1]), "what the lost worker had read is read by nobody again"
        assert [*backup.data.objects.below(CAPTURES)] == []
