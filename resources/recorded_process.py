"""Records in a run which process executes it, and refuses executors that use several."""

import dagster as dg

from pipelines.errors import ConfigurationError
from pipelines.settings.settings import Settings
from resources.run_tags import process_tags

_IN_ONE_PROCESS = {"in_process", "execute_in_process_executor"}


def record_process(context: dg.InitResourceContext, settings: Settings) -> None:
    """Tag the run of a resource with its process. A re-execution has the tags of the run that it repeats, and gets its own.

    Raises `ConfigurationError` where an executor gives the steps of the run to several processes.
    """
    if context.run is not None and context.instance is not None:
        _check_executor(context.instance, context.run)
        context.instance.add_run_tags(context.run.run_id, process_tags(settings, context.run.run_id))


def _check_executor(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Raise unless one process executes all steps. Bookferry's own jobs say so; a person can write others over its assets."""
    if run.execution_plan_snapshot_id is None:
        return
    executor = instance.get_execution_plan_snapshot(run.execution_plan_snapshot_id).executor_name
    if executor not in {None, *_IN_ONE_PROCESS}:
        raise ConfigurationError(
            f"The job '{run.job_name}' has the executor '{executor}', which gives each step to a process, container or pod of its own. The "
            "steps of a run share a folder, and hold the lease of their library from the first to the last. Nothing was read. Give the job "
            "`executor_def=dagster.in_process_executor`; to use other machines, choose a run launcher."
        )
