"""Tells whom bookferry.toml names how each run ended: backups that Dagster ran, verifications and removals that failed.

The command line tells of its own runs itself. A run is marked before it is told, so that it is told at most once: where the call is
lost, no success arrives, and the dead-man's switch goes off.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from assets_defs.dead_runs import GONE
from assets_defs.retention import JOB as RETENTION_JOB
from assets_defs.schedules import MAX_SECONDS
from assets_defs.verification import ASSET as VERIFICATION
from pipelines.notify import Ending, notify
from pipelines.settings.settings import Settings

TOLD = "bookferry/told"
"""Tag of a run that was told: when."""

STARTED_BY = "bookferry/started_by"
COMMAND_LINE = "command line"

LOOK_SECONDS = 30
"""Between two looks."""

ENOUGH_SECONDS = 15
"""Dagster ends a look after a minute, and one call may take half of that: what is left is told at the next look."""

OVERLAP = timedelta(minutes=1)
"""What ended just before the last look is looked at again: it may not have been visible."""

NEWS = timedelta(hours=1)
"""A success is told for so long: a switch that is reset days later would hide that nothing ran since."""

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_EVENTS = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}


def _now() -> datetime:
    return datetime.now(UTC)


def notifications(
    settings: Settings,
    now: Callable[[], datetime] = _now,
    make_call: Callable[[Settings, Ending], str | None] = notify,
) -> dg.SensorDefinition:
    """One call for each run and tenant, made by Dagster's daemon."""

    @dg.sensor(
        name="notifications",
        minimum_interval_seconds=LOOK_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells whom [notify] of bookferry.toml names how each run ended. Red where a call fails.",
    )
    def notifications(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        began, moment = time.monotonic(), now()
        since = datetime.fromisoformat(context.cursor) if context.cursor else moment
        told: list[str] = []
        problems: list[str] = []
        for record in _to_be_told(context.instance, since - OVERLAP):
            if time.monotonic() - began > ENOUGH_SECONDS:
                moment = since
                break
            context.instance.add_run_tags(record.dagster_run.run_id, {TOLD: moment.isoformat(timespec="seconds")})
            for ending in _endings(settings, context.instance, record):
                if ending.occasion == "success" and _ended_at(record) < moment - NEWS:
                    continue
                told.append(f"{ending.job} {ending.tenant}: {ending.result}.".replace(" :", ":"))
                problems += filter(None, [make_call(settings, ending)])
        if problems:
            raise dg.Failure(" ".join(problems))
        context.update_cursor(moment.isoformat())
        return dg.SkipReason(" ".join(told) or "No run has ended.")

    return notifications


def _to_be_told(instance: dg.DagsterInstance, since: datetime) -> list[dg.RunRecord]:
    """The runs that ended since then and were not told, oldest first."""
    records = instance.get_run_records(dg.RunsFilter(statuses=_ENDED, updated_after=since))
    return [one for one in reversed(records) if TOLD not in one.dagster_run.tags and not _told_itself(one)]


def _told_itself(record: dg.RunRecord) -> bool:
    """A run of the command line, unless it is a repetition, which inherits the tag, or was ended by Dagster as dead or stuck."""
    run = record.dagster_run
    if run.tags.get(STARTED_BY) != COMMAND_LINE or run.parent_run_id or GONE in run.tags:
        return False
    return not (record.start_time and record.end_time and record.end_time - record.start_time >= MAX_SECONDS)


def _ended_at(record: dg.RunRecord) -> datetime:
    return datetime.fromtimestamp(record.end_time, UTC) if record.end_time else record.update_timestamp


def _endings(settings: Settings, instance: dg.DagsterInstance, record: dg.RunRecord) -> Iterator[Ending]:
    """What there is to tell of a run: for each tenant its backup, or its verification where that failed; a removal that failed."""
    run = record.dagster_run
    found = [one.event_log_entry for one in instance.get_records_for_run(run.run_id, of_type=_EVENTS).records]
    if run.job_name == RETENTION_JOB and run.status is not dg.DagsterRunStatus.SUCCESS:
        yield Ending(job="retention", result=_result(run), message=_reason(run, found), run=run.run_id)
    made = {
        event.asset_materialization.asset_key: event.asset_materialization
        for event in found
        if event.asset_materialization
    }
    for tenant in settings.tenants:
        backup, verification = dg.AssetKey([tenant, "snapshot"]), dg.AssetKey([tenant, VERIFICATION])
        if _was_for(run, backup, "nightly_backup"):
            yield _backup(tenant, run, made.get(backup), _reason(run, found, tenant))
        if _was_for(run, verification, "verify_backups") and verification not in made:
            yield Ending(
                job="verification",
                result=_result(run),
                tenant=tenant,
                message=_reason(run, found, tenant),
                run=run.run_id,
            )


def _was_for(run: dg.DagsterRun, key: dg.AssetKey, job: str) -> bool:
    return key in run.asset_selection if run.asset_selection else run.job_name == job


def _backup(tenant: str, run: dg.DagsterRun, made: dg.AssetMaterialization | None, reason: str) -> Ending:
    if made is None:
        return Ending(job="backup", result=_result(run), tenant=tenant, message=reason, run=run.run_id)
    facts = {name: value.value for name, value in made.metadata.items()}
    complete = facts.get("complete") is True
    return Ending(
        job="backup",
        result="complete" if complete else "partial",
        tenant=tenant,
        snapshot=str(facts.get("snapshot", "")),
        message="" if complete else _plain(str(facts.get("problems", ""))),
        run=run.run_id,
    )


def _plain(markdown: str) -> str:
    """A list in Markdown as one line."""
    return " ".join(line.removeprefix("- ") for line in markdown.splitlines())


def _result(run: dg.DagsterRun) -> str:
    return "stopped" if run.status is dg.DagsterRunStatus.CANCELED else "failed"


def _reason(run: dg.DagsterRun, found: list[dg.EventLogEntry], tenant: str = "") -> str:
    """Why it failed: the first error of the tenant's steps; where there is none, the run was ended from outside."""
    if run.status is dg.DagsterRunStatus.CANCELED:  # its steps failed with the name of Dagster's interruption
        return "Stopped before the end."
    events = [(entry.step_key or "", entry.get_dagster_event()) for entry in found]
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
    """What an error says, without the name of its class."""
    name, _, said = error.strip().partition(": ")
    return said if said and " " not in name else error.strip()
