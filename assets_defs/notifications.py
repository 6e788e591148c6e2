"""Calls the addresses and commands of `[notify]` when a run has ended: every backup, and each verification or removal that failed.

The command line, which has no runs, notifies by itself. A run is tagged before the call, so that each run is reported at most once, also
where Dagster ends an evaluation whose calls take more than a minute: the next one goes on with the runs without a tag. When a call is lost,
no success arrives, and the dead-man's switch raises the alarm.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets_defs.backup import SNAPSHOT
from assets_defs.factories import now_utc, tenant_key
from assets_defs.retention import JOB as RETENTION_JOB
from assets_defs.schedules import NIGHTLY_BACKUP
from assets_defs.verification import ASSET as VERIFICATION
from assets_defs.verification import JOB as VERIFICATION_JOB
from pipelines.notify import Ending, notify
from pipelines.settings.settings import Settings
from pipelines.store.stores import open_data
from resources.own_runs import is_own
from resources.run_tags import NOTIFIED

SENSOR_SECONDS = 30
"""Between two evaluations."""

OVERLAP = timedelta(minutes=1)
"""Each evaluation starts so long before the end of the last one: a run that had just ended may not have been visible."""

SUCCESS_AGE = timedelta(hours=1)
"""An older success is not reported: it would reset the switch and hide that no run has succeeded since."""

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_EVENTS = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}


def notifications(
    settings: Settings,
    now: Callable[[], datetime] = now_utc,
    make_call: Callable[[Settings, Ending], str | None] = notify,
) -> dg.SensorDefinition:
    """A sensor that makes one call for each run and tenant, in Dagster's daemon."""

    @dg.sensor(
        name="notifications",
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Calls the addresses and commands of [notify] in bookferry.toml when a run has ended. Red when a call fails.",
    )
    def notifications(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        moment = now()
        since = datetime.fromisoformat(context.cursor) if context.cursor else moment
        reported: list[str] = []
        problems: list[str] = []
        for record in _unreported_runs(settings, context, since - OVERLAP):
            context.instance.add_run_tags(record.dagster_run.run_id, {NOTIFIED: moment.isoformat(timespec="seconds")})
            for ending in _endings(settings, context.instance, record):
                if ending.occasion == "success" and _ended_at(record) < moment - SUCCESS_AGE:
                    continue
                reported.append(f"{ending.job} {ending.tenant}: {ending.result}.".replace(" :", ":"))
                problems += filter(None, [make_call(settings, ending)])
        if problems:
            raise dg.Failure(" ".join(problems))
        context.update_cursor(moment.isoformat())
        return dg.SkipReason(" ".join(reported) or "No run has ended.")

    return notifications


def _unreported_runs(settings: Settings, context: dg.SensorEvaluationContext, since: datetime) -> list[dg.RunRecord]:
    """The runs of these settings that ended since then and were not reported, oldest first."""
    records = context.instance.get_run_records(dg.RunsFilter(statuses=_ENDED, updated_after=since))
    return [
        record
        for record in reversed(records)
        if NOTIFIED not in record.dagster_run.tags and is_own(settings, context, record.dagster_run)
    ]


def _ended_at(record: dg.RunRecord) -> datetime:
    return datetime.fromtimestamp(record.end_time, UTC) if record.end_time else record.update_timestamp


def _endings(settings: Settings, instance: dg.DagsterInstance, record: dg.RunRecord) -> Iterator[Ending]:
    """What a run has to report: each tenant's backup, each verification that failed, and a removal that failed."""
    run = record.dagster_run
    events = [entry.event_log_entry for entry in instance.get_records_for_run(run.run_id, of_type=_EVENTS).records]
    if run.job_name == RETENTION_JOB and run.status is not dg.DagsterRunStatus.SUCCESS:
        yield Ending(job="retention", result=_result(run), message=_reason(run, events), run=run.run_id)
    materialized = {
        event.asset_materialization.asset_key: event.asset_materialization
        for event in events
        if event.asset_materialization
    }
    for tenant in settings.tenants:
        snapshot, verification = tenant_key(tenant, SNAPSHOT), tenant_key(tenant, VERIFICATION)
        if _was_for(run, snapshot, NIGHTLY_BACKUP):
            yield _backup_ending(settings, tenant, run, materialized.get(snapshot), _reason(run, events, tenant))
        if _was_for(run, verification, VERIFICATION_JOB) and verification not in materialized:
            yield Ending(
                job="verification",
                result=_result(run),
                tenant=tenant,
                message=_reason(run, events, tenant),
                run=run.run_id,
            )


def _was_for(run: dg.DagsterRun, key: dg.AssetKey, job: str) -> bool:
    return key in run.asset_selection if run.asset_selection else run.job_name == job


def _backup_ending(
    settings: Settings, tenant: str, run: dg.DagsterRun, published: dg.AssetMaterialization | None, reason: str
) -> Ending:
    if published is None:
        return Ending(job="backup", result=_result(run), tenant=tenant, message=reason, run=run.run_id)
    snapshot = open_data(settings).find_snapshot(f"{tenant}/{published.metadata['snapshot'].value}")
    return Ending.of_backup(snapshot, run.run_id)


def _result(run: dg.DagsterRun) -> str:
    return "stopped" if run.status is dg.DagsterRunStatus.CANCELED else "failed"


def _reason(run: dg.DagsterRun, entries: list[dg.EventLogEntry], tenant: str = "") -> str:
    """Why a run failed: the first error of the tenant's steps. Without one, the run was ended from outside."""
    if run.status is dg.DagsterRunStatus.CANCELED:  # the error of its steps is Dagster's interruption
        return "Stopped before the end."
    events = [(entry.step_key or "", entry.get_dagster_event()) for entry in entries]
    for step, event in events:
        if event.is_step_failure and step.startswith(f"{tenant}__" if tenant else ""):
            failure = event.step_failure_data
            if failure.user_failure_data and failure.user_failure_data.description:
                return failure.user_failure_data.description
            if failure.error:
                return _message((failure.error.cause or failure.error).message)
    last = next((event.message or "" for _, event in events if event.is_run_failure), "")
    return (
        f"The run ended without an error of its own: killed, out of memory, or out of time. Dagster says: {last}"
        if last
        else ""
    )


def _message(error: str) -> str:
    """The message of an error, without the name of its class."""
    name, _, message = error.strip().partition(": ")
    return message if message and " " not in name else error.strip()
