"""Ends the runs whose process is gone: it was killed, or the machine restarted. A backup among them is requested once more.

Dagster alone would show them as running until `dagster/max_runtime`, block their library's pool, and send no notification. Every run names
its process (`resources.run_tags.PROCESS`). Only three can say that it is gone: the machine that it ran on, the launcher that started it
and, of a backup or a migration, the lease in a state that machines share. A run that the code server started is ended by that server within
seconds; it has failed, but none of its steps has.

Only a backup that Dagster launched is requested again: whoever started another one watches it, a migration writes only what a person began,
and all other jobs have their next time. A run that a person terminates is none of these, because Dagster no longer shows it as running.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import cache, partial

import dagster as dg
from dagster._core.launcher import WorkerStatus

from assets_defs.backup import SNAPSHOT
from assets_defs.factories import now_utc
from assets_defs.migration import JOBS as MIGRATIONS
from assets_defs.schedules import NIGHTLY_BACKUP
from pipelines.errors import BookferryError
from pipelines.running_process import is_gone, is_on_this_kernel, read_process
from pipelines.settings.settings import Settings
from pipelines.store.stores import open_data
from resources.own_runs import is_own
from resources.run_tags import ENDED_AS_DEAD, INSTEAD_OF, PROCESS, TENANT

SENSOR_SECONDS = 60
"""Between two evaluations. A run is ended after two that find its process gone: a run that is just ending may still be shown as running."""

LOOKED_BACK_SECONDS = 3 * SENSOR_SECONDS
"""How long ago a failed run may have ended to be requested once more; Dagster takes a request with the same key once."""

MESSAGE = "The process of this run is gone: it was killed, or the machine was restarted."
OF_A_BACKUP = (
    " What it had published stays, and so does the last good snapshot. What it had only read is stored: the next backup of the same "
    "resources resumes there."
)
REQUESTED = " It was requested once more."

BACKUPS = {SNAPSHOT: NIGHTLY_BACKUP}
"""Asset → job."""

_ENDED = {WorkerStatus.FAILED, WorkerStatus.NOT_FOUND, WorkerStatus.SUCCESS}


def dead_runs(settings: Settings) -> dg.SensorDefinition:
    """A sensor that checks every minute the runs of these settings that Dagster shows as running."""

    @dg.sensor(
        name="dead_runs",
        job_name=NIGHTLY_BACKUP,
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Ends runs whose process is gone, so that they are reported as failed; requests a backup among them once more.",
    )
    def dead_runs(context: dg.SensorEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        before = set((context.cursor or "").split())
        running = context.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        leased = cache(partial(_leased, settings))
        own = [run for run in running if is_own(settings, context, run)]
        gone = [run for run in own if _is_gone(settings, leased, context.instance, run)]
        dead = [run for run in gone if run.run_id in before]
        since = now_utc() - timedelta(seconds=LOOKED_BACK_SECONDS)
        failed = context.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE], updated_after=since))
        killed = [run for run in failed if is_own(settings, context, run) and _was_killed(context.instance, run)]
        again = [run for run in (*dead, *killed) if _is_wanted_again(settings, leased, run)]
        for run in dead:
            message = MESSAGE + (OF_A_BACKUP if _is_one_of(run, BACKUPS) else "") + (REQUESTED if run in again else "")
            context.instance.add_run_tags(run.run_id, {ENDED_AS_DEAD: now_utc().isoformat(timespec="seconds")})
            context.instance.report_run_failed(run, message)
        context.update_cursor(" ".join(run.run_id for run in gone if run not in dead))
        for run in again:
            yield _once_more(run)
        if not again:
            yield dg.SkipReason(f"Ended: {', '.join(run.run_id for run in dead)}." if dead else "No run is dead.")

    return dead_runs


def _is_wanted_again(settings: Settings, leased: Callable[[], set[str]], run: dg.DagsterRun) -> bool:
    """Whether a dead run is a backup that Dagster launched for the first time, and no other run of its libraries is at work by now."""
    is_first = run.remote_job_origin is not None and INSTEAD_OF not in run.tags
    return is_first and _is_one_of(run, BACKUPS) and leased().isdisjoint(_tenants(settings, run))


def _once_more(run: dg.DagsterRun) -> dg.RunRequest:
    """The request for the same backup. Tags that chose the lost worker, such as its queue, are not repeated."""
    kept = {TENANT: run.tags[TENANT]} if TENANT in run.tags else {}
    selection = sorted(run.asset_selection) if run.asset_selection else None
    return dg.RunRequest(
        run_key=f"instead of {run.run_id}", asset_selection=selection, tags={**kept, INSTEAD_OF: run.run_id}
    )


def _was_killed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether the worker of a failed run had begun, and ended without a word."""
    process = read_process(run.tags.get(PROCESS, ""))
    is_begun = process is not None and process.run == run.run_id and ENDED_AS_DEAD not in run.tags
    return is_begun and not instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)


def _is_gone(
    settings: Settings, leased: Callable[[], set[str]], instance: dg.DagsterInstance, run: dg.DagsterRun
) -> bool:
    process = read_process(run.tags.get(PROCESS, ""))
    if process is not None and process.run == run.run_id:  # not that of the run which this one repeats
        if (gone := is_gone(process)) is not None:
            return gone
        # Backups and migrations hold their leases until they end: on any machine where the state is shared, and else in another container
        # of this one, whose processes cannot be seen from here. Other runs hold none, or not all the time
        holds_lease = _is_one_of(run, BACKUPS | MIGRATIONS)
        if holds_lease and (settings.state == "postgres" or is_on_this_kernel(process)):
            return leased().isdisjoint(_tenants(settings, run))
    return _launcher_says_gone(instance, run)


def _launcher_says_gone(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether the launcher that started a run knows that its worker has ended. It knows nothing of those of `dagster job execute`."""
    launcher = instance.run_launcher
    if run.remote_job_origin is None or not launcher.supports_check_run_worker_health:
        return False
    return launcher.check_run_worker_health(run).status in _ENDED


def _tenants(settings: Settings, run: dg.DagsterRun) -> set[str]:
    """The libraries that a run is for."""
    selected = {key.path[0] for key in run.asset_selection or ()}
    return (selected or set(settings.tenants)).intersection(settings.tenants)


def _is_one_of(run: dg.DagsterRun, jobs: Mapping[str, str]) -> bool:
    """Whether a run is for one of these assets, or jobs."""
    if run.asset_selection:
        return any(key.path[-1] in jobs for key in run.asset_selection)
    return run.job_name in jobs.values()


def _leased(settings: Settings) -> set[str]:
    """The tenants that runs are at work on. It takes some seconds where several machines share the state, however many they are."""
    try:
        return open_data(settings).leased(settings.tenants)
    except BookferryError:  # it cannot be known
        return set(settings.tenants)
