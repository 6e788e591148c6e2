"""Runs in processes of their own, as `dagster`, `dg` and `bookferry` start them: side by side, terminated, repeated."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from tests.assets_defs.installation import ROOT, DagsterInstallation, secrets_of
from tests.sandbox.process import SandboxProcess

SECONDS_TO_STOP = 200
"""On an idle machine it takes a second or two; without the stop it would take hours."""

PATIENCE = 240
"""Seconds until a process counts as hanging."""


def statuses(installation: DagsterInstallation) -> list[dg.DagsterRunStatus]:
    """Of all runs, oldest first."""
    return [run.status for run in reversed(installation.instance.get_runs())]


def wait_for_listing(process: subprocess.Popen[str], sandbox: SandboxProcess) -> None:
    """Wait until all three pages of the library are requested; the service has not answered one of them."""
    while sandbox.counts("library")["requests"] < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)  # between two looks; what counts is the look


def output_of(process: subprocess.Popen[str]) -> str:
    """The output of a process, which succeeded."""
    output = "\n".join(process.communicate(timeout=PATIENCE))
    assert process.returncode == 0, output
    return output


@pytest.mark.long
def test_terminated_in_the_middle_of_a_listing(installation: DagsterInstallation, sandbox: SandboxProcess) -> None:
    """While one run listens to a service that does not answer, a second one is refused; SIGTERM ends the first within seconds.

    Nothing is published; lease and budget are free at once; the log says that the next run resumes, and so it does (I5, I9).
    """
    sandbox.fault("hang", "library", path=r"page=2(&|$)", seconds=10_000)
    with installation.dagster("job", "execute", "-m", "assets_defs.definitions", "-j", "nightly_backup") as first:
        wait_for_listing(first, sandbox)
        refused = installation.run("old")
        [failure] = refused.get_step_failure_events()
        message = str(failure.step_failure_data.error)
        assert "TenantBusyError: Another run is at work on 'old' at this moment" in message
        begun = [request for request in sandbox.requests("library") if "page=1" in request["query"].split("&")]
        assert len(begun) == 1, "the second run sent nothing"
        first.terminate()
        first.communicate(timeout=SECONDS_TO_STOP)
        assert first.returncode != 0
    assert dg.DagsterRunStatus.SUCCESS not in statuses(installation)
    assert dg.DagsterRunStatus.STARTED not in statuses(installation), "no run is left that looks alive"
    assert not any(snapshot.manifest.tenant == "old" for snapshot in installation.snapshots)
    [stopped] = [
        run
        for run in installation.instance.get_runs()
        if "dagster/max_runtime" in run.tags and run.asset_selection is None
    ]
    output = [entry.user_message for entry in installation.instance.all_logs(stopped.run_id)]
    assert [
        text for text in output if text.startswith("Stopped before the end. No snapshot of old is published in part")
    ], output
    sandbox.reset("faults")
    assert installation.run("old").success
    [snapshot] = [snapshot for snapshot in installation.snapshots if snapshot.manifest.tenant == "old"]
    assert snapshot.manifest.resources["publications"].resumed
    assert list((installation.data.work_path / "tenant=old").iterdir()) == []


@pytest.mark.long
def test_command_line_and_jobs_by_turns(installation: DagsterInstallation, sandbox: SandboxProcess) -> None:
    """Wanted: the nightly job keeps working when the command line has run between two nights, and the other way round.

    Also when it was killed there: kill -9 leaves neither a snapshot nor a lease (I5, I9).
    """
    sandbox.fault("hang", "library", path=r"page=2(&|$)", seconds=10_000)
    with installation.bookferry("backup", "old") as killed:
        wait_for_listing(killed, sandbox)
        killed.kill()
    sandbox.reset("faults")
    assert installation.snapshots == []
    assert installation.run("old").success
    printed, output = installation.bookferry("backup", "old", "--json").communicate(timeout=PATIENCE)
    assert json.loads(printed)["complete"], output
    output_of(installation.dagster("job", "execute", "-m", "assets_defs.definitions", "-j", "nightly_backup"))
    snapshots = [(snapshot.manifest.tenant, snapshot.manifest.complete) for snapshot in installation.snapshots]
    assert sorted(snapshots) == [("old", True)] * 3 + [("second", True)]
    assert statuses(installation) == [dg.DagsterRunStatus.SUCCESS] * 2, "the command line has no runs"
    assert {run.job_name for run in installation.instance.get_runs()} == {"nightly_backup"}
    for name, text in installation.kept_texts().items():  # logs of processes included (I10)
        assert [secret for secret in secrets_of(sandbox) if secret in text] == [], name


def pages_listed(sandbox: SandboxProcess) -> int:
    """Requests for pages of the list of publications."""
    return len([request for request in sandbox.requests("library") if "page=" in request["query"]])


@pytest.mark.long
def test_repeated_from_failure(installation: DagsterInstallation, sandbox: SandboxProcess) -> None:
    """What failed after the listing is repeated without listing again: runs of one root share their capture."""
    job = ReconstructableRepository.for_module("assets_defs.definitions", "defs", str(ROOT)).get_reconstructable_job(
        "nightly_backup"
    )
    installation.data.prepare()
    (installation.data.path / "snapshots").write_text("in the way")
    first = dg.execute_job(job, installation.instance)
    assert {event.step_key for event in first.get_step_failure_events()} == {"old__snapshot", "second__snapshot"}
    sent = pages_listed(sandbox)
    (installation.data.path / "snapshots").unlink()
    options = dg.ReexecutionOptions.from_failure(first.run_id, installation.instance)
    assert dg.execute_job(job, installation.instance, reexecution_options=options).success
    assert pages_listed(sandbox) == sent > 0
    assert sorted((snapshot.manifest.tenant, snapshot.manifest.complete) for snapshot in installation.snapshots) == [
        ("old", True),
        ("second", True),
    ]


@pytest.mark.long
class TestTools:
    """`workspace.yaml`, `pyproject.toml` and `-m assets_defs.definitions` all lead to the same definitions."""

    def test_with_a_configuration(self, installation: DagsterInstallation) -> None:
        """`dg check defs`, which reads pyproject.toml; `-w workspace.yaml`, as `dagster dev` and the daemon read it."""
        output = output_of(installation.process(str(Path(sys.executable).with_name("dg")), "check", "defs"))
        assert "All definitions loaded successfully" in output
        output = output_of(installation.dagster("definitions", "validate", "-w", "workspace.yaml"))
        assert "Validation successful for code location bookferry" in output

    def test_without_a_configuration(self, installation: DagsterInstallation) -> None:
        """The last line says the missing file, its place, and how to make one."""
        missing = str(installation.folder / "nowhere.toml")
        command = ("job", "execute", "-m", "assets_defs.definitions", "-j", "nightly_backup")
        with installation.dagster(*command, variables={"BOOKFERRY_CONFIG": missing}) as executing:
            _out, output = executing.communicate(timeout=PATIENCE)
        assert executing.returncode != 0
        assert output.strip().splitlines()[-1] == (
            f"pipelines.errors.ConfigurationError: {missing}: no such configuration file (named by $BOOKFERRY_CONFIG). "
            "Make one with `bookferry init`, or name another with --config or in the environment variable BOOKFERRY_CONFIG."
        )
