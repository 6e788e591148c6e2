"""Dagster's launcher for Celery workers, with a "Terminate" that ends as stopped."""

from dagster_celery.launcher import CeleryRunLauncher as DagsterCeleryRunLauncher


class CeleryRunLauncher(DagsterCeleryRunLauncher):
    """Notes that a person terminates a run before its worker is interrupted, as Dagster's other launchers do.

    Without the note Dagster takes the interruption for a failure. A run whose worker is lost ends as canceled after
    `cancel_timeout_seconds`. One that waits in the broker is terminated by force alone, and no worker starts it then.
    """

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run. Returns False where there is none to interrupt."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        return bool(super().terminate(run_id))
