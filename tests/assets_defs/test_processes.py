"""Runs in processes of their own, as `dagster`, `dg` and `bookferry` start them: side by side, terminated, repeated."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository

from tests.assets_defs.night import ROOT, Night, secrets_of
from tests.sandbox.process import SandboxProcess

SECONDS_TO_STOP = 200
"""A second or two where nothing else runs; what it must not be is the hours that the service takes for its answer."""

PATIENCE = 240
"""Seconds until a process that does not end is taken to hang."""


def statuses(night: Night) -> list[dg.DagsterRunStatus]:
    """Of all runs, oldest first."""
    return [run.status for run in reversed(night.instance.get_runs())]


def listing(process: subprocess.Popen[str], sandbox: SandboxProcess) -> None:
    """Returns when all three pages of the library are asked for (the last one early), one of which the service is still busy with."""
    while sandbox.counts("library")["requests"] < 3:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)  # between two looks; what counts is the look


def ended(process: subprocess.Popen[str]) -> str:
    """What a process said; it ended well."""
    said = "\n".join(process.communicate(timeout=PATIENCE))
    assert process.returncode == 0, said
    return said


def test_terminated_in_the_middle_of_a_listing(night: Night, sandbox: SandboxProcess) -> None:
    """While one run listens to a service that does not answer, a second one is refused; SIGTERM ends the first within seconds.

    Nothing is published; lease and budget are free at once; the log says that the next run goes on, and so it does (I5, I9, trap B13).
    """
    sandbox.fault("hang", "library", path=r"page=2(&|$)", seconds=10_000)
    with night.dagster("job", "execute", "-m", "assets_defs.definitions", "-j", "nightly_backup") as first:
        listing(first, sandbox)
        refused = night.run("old")
        [failure] = refused.get_step_failure_events()
        message = str(failure.step_failure_data.error)
        assert "TenantBusyError: Another run is at work on 'old' at this moment" in message
        begun = [one for one in sandbox.requests("library") if "page=1" in one["query"].split("&")]
        assert len(begun) == 1, "the second run sent nothing"
        began = time.monotonic()
        first.terminate()
        first.communicate(timeout=SECONDS_TO_STOP)
        assert time.monotonic() - began < SECONDS_TO_STOP
        assert first.returncode != 0
    assert dg.DagsterRunStatus.SUCCESS not in statuses(night)
    assert dg.DagsterRunStatus.STARTED not in statuses(night), "no run is left that looks alive"
    assert not any(snapshot.manifest.tenant == "old" for snapshot in night.snapshots)
    [stopped] = [
        run for run in night.instance.get_runs() if "dagster/max_runtime" in run.tags and run.asset_selection is None
    ]
    said = [entry.user_message for entry in night.instance.all_logs(stopped.run_id)]
    assert [text for text in said if text.startswith("Stopped before the end. Nothing of old was published")] != [], (
        said
    )
    sandbox.reset("faults")
    assert night.run("old").success
    [snapshot] = [one for one in night.snapshots if one.manifest.tenant == "old"]
    assert snapshot.manifest.resources["publications"].resumed
    assert list((night.data.work_path / "tenant=old").iterdir()) == []


def test_command_line_and_jobs_by_turns(night: Night, sandbox: SandboxProcess) -> None:
    """Wanted: the nightly job keeps working when the command line has run between two nights, and the other way round.

    Also when it was killed there: kill -9 leaves neither a snapshot nor a lease (I5, trap B13).
    """
    sandbox.fault("hang", "library", path=r"page=2(&|$)", seconds=10_000)
    with night.bookferry("backup", "old") as killed:
        listing(killed, sandbox)
        killed.kill()
    sandbox.reset("faults")
    assert night.snapshots == []
    assert night.run("old").success
    printed, said = night.bookferry("backup", "old", "--json").communicate(timeout=PATIENCE)
    assert json.loads(printed)["complete"], said
    ended(night.dagster("job", "execute", "-m", "assets_defs.definitions", "-j", "nightly_backup"))
    found = [(one.manifest.tenant, one.manifest.complete) for one in night.snapshots]
    assert sorted(found) == [("old", True)] * 3 + [("second", True)]
    assert statuses(night)[1:] == [dg.DagsterRunStatus.SUCCESS] * 3
    assert {run.job_name for run in night.instance.get_runs()} == {"nightly_backup"}
    for name, text in night.everything_kept():  # logs of processes included (I10)
        assert [secret for secret in secrets_of(sandbox) if secret in text] == [], name


def test_repeated_from_failure(night: Night, sandbox: SandboxProcess) -> None:
    """What failed after the listing is repeated from there, without a request: steps of one root run share their capture."""
    job = ReconstructableRepository.for_module("assets_defs.definitions", "defs", str(ROOT)).get_reconstructable_job(
        "nightly_backup"
    )
    night.data.prepare()
    (night.data.path / "snapshots").write_text("in the way")
    first = dg.execute_job(job, night.instance)
    assert {event.step_key for event in first.get_step_failure_events()} == {"old__snapshot", "second__snapshot"}
    sent = sandbox.counts("library")["requests"]
    (night.data.path / "snapshots").unlink()
    again = dg.ReexecutionOptions.from_failure(first.run_id, night.instance)
    assert dg.execute_job(job, night.instance, reexecution_options=again).success
    assert sandbox.counts("library")["requests"] == sent
    assert sorted((one.manifest.tenant, one.manifest.complete) for one in night.snapshots) == [
        ("old", True),
        ("second", True),
    ]


class TestTools:
    """`workspace.yaml`, `pyproject.toml` and `-m assets_defs.definitions` all lead to the same definitions."""

    def test_dg(self, night: Night) -> None:
        """`dg check defs`, which reads pyproject.toml."""
        said = ended(night.process(str(Path(sys.executable).with_name("dg")), "check", "defs"))
        assert "All definitions loaded successfully" in said

    def test_workspace(self, night: Night) -> None:
        """`-w workspace.yaml`, as `dagster dev` and the daemon read it."""
        said = ended(night.dagster("definitions", "validate", "-w", "workspace.yaml"))
        assert "Validation successful for code location bookferry" in said

    def test_without_a_configuration(self, night: Night) -> None:
        """The last line says which file was looked for, where, and how to make one."""
        missing = str(night.folder / "nowhere.toml")
        command = ("job", "execute", "-m", "assets_defs.definitions", "-j", "nightly_backup")
        with night.dagster(*command, variables={"BOOKFERRY_CONFIG": missing}) as executing:
            _out, said = executing.communicate(timeout=PATIENCE)
        assert executing.returncode != 0
        assert said.strip().splitlines()[-1] == (
            f"pipelines.errors.ConfigurationError: {missing}: no such configuration file (named by $BOOKFERRY_CONFIG). "
            "Make one with `bookferry init`, or name one with --config."
        )
