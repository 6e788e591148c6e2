"""Executors that give the steps of a run to several processes are refused before anything is read."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.settings.config_file import load_settings
from tests.assets_defs.installation import DagsterInstallation
from tests.sandbox.process import SandboxProcess


def multiprocess() -> dg.JobDefinition:
    """A job that a person wrote over Bookferry's assets, with Dagster's default executor, which takes a process for each step."""
    settings = load_settings(Path(os.environ["BOOKFERRY_CONFIG"]))
    selection = dg.AssetSelection.assets(["old", "raw_publications"])
    job = dg.define_asset_job("mine", selection=selection, executor_def=dg.multi_or_in_process_executor)
    definitions = build_definitions(settings)
    return dg.Definitions(assets=definitions.assets, resources=definitions.resources, jobs=[job]).resolve_job_def(
        "mine"
    )


@pytest.mark.long
def test_steps_of_several_processes_are_refused(installation: DagsterInstallation, sandbox: SandboxProcess) -> None:
    job = dg.reconstructable(multiprocess)
    with pytest.raises(dg.DagsterError), dg.execute_job(job, instance=installation.instance):
        pass
    [run] = installation.instance.get_runs()
    assert run.status is dg.DagsterRunStatus.FAILURE
    said = "ConfigurationError: The job 'mine' has the executor 'multi_or_in_process_executor'"
    assert said in str(installation.instance.all_logs(run.run_id))
    assert sandbox.counts("library")["requests"] == 0
