"""Executors that give the steps of a run to several processes are refused before anything is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.settings.loading import load_settings
from tests.assets_defs.installation import DagsterInstallation
from tests.sandbox.process import SandboxProcess


@dg.executor(name="k8s")
def pods(_context: dg.InitExecutorContext) -> dg.Executor:
    """An executor with a pod for each step, by its name; its steps run here."""
    from dagster._core.execution.retries import RetryMode  # noqa: PLC0415
    from dagster._core.executor.in_process import InProcessExecutor  # noqa: PLC0415  what in_process_executor makes

    return InProcessExecutor(retries=RetryMode.DISABLED)


def job_with(executor: dg.ExecutorDefinition) -> dg.JobDefinition:
    """A job that a person wrote over Bookferry's assets."""
    settings = load_settings(Path(os.environ["BOOKFERRY_CONFIG"]))
    job = dg.define_asset_job(
        "mine", selection=dg.AssetSelection.assets(["old", "raw_publications"]), executor_def=executor
    )
    ours = build_definitions(settings)
    mine = dg.Definitions(assets=ours.assets, resources=ours.resources, jobs=[job])
    return mine.resolve_job_def("mine")


def multiprocess() -> dg.JobDefinition:
    """With Dagster's default, which takes a process for each step."""
    return job_with(dg.multi_or_in_process_executor)


def in_pods() -> dg.JobDefinition:
    """With pods."""
    return job_with(pods)


def in_process() -> dg.JobDefinition:
    """With the one that can be used."""
    return job_with(dg.in_process_executor)


@pytest.mark.parametrize(
    ("job", "name"),
    [pytest.param(multiprocess, "multi_or_in_process_executor", marks=pytest.mark.long), (in_pods, "k8s")],
)
def test_steps_of_several_processes_are_refused(
    installation: DagsterInstallation, sandbox: SandboxProcess, job: Callable[[], dg.JobDefinition], name: str
) -> None:
    with pytest.raises(dg.DagsterError), dg.execute_job(dg.reconstructable(job), instance=installation.instance):
        pass
    [run] = installation.instance.get_runs()
    assert run.status is dg.DagsterRunStatus.FAILURE
    assert f"ConfigurationError: The job 'mine' has the executor '{name}'" in str(
        installation.instance.all_logs(run.run_id)
    )
    assert sandbox.counts("library")["requests"] == 0


@pytest.mark.long
def test_a_job_in_one_process_runs(installation: DagsterInstallation, sandbox: SandboxProcess) -> None:
    with dg.execute_job(dg.reconstructable(in_process), instance=installation.instance) as result:
        assert result.success
    assert sandbox.counts("library")["requests"] > 0
