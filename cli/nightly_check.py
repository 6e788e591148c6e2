"""The check of `doctor` on Dagster. It is here because pipelines know nothing of Dagster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cli.dagster_instance import dagster_folder
from cli.nightly import RESTART, dagster_setting, failed_runs, outdated_tenants, scheduler_runs
from cli.output import ago
from pipelines.doctor.checks import Check
from pipelines.doctor.findings import CheckResult, note, ok, problem, warning
from pipelines.doctor.look import Look
from pipelines.errors import ExitStatus
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.snapshots import newest_complete
from pipelines.store.stores import open_data

SHOWN = timedelta(days=7)
"""Runs that failed before are not shown."""

_ON_THIS_MACHINE = ("DefaultRunLauncher", "SyncInMemoryRunLauncher")
"""Launchers whose runs are on the machine of the code location."""

_RUN_IT = (
    "`bookferry ui` runs the nightly backup while it is up; so does `bookferry nightly` from cron or a systemd timer."
)


def nightly_runs(look: Look) -> CheckResult:
    """The nightly backup is scheduled, for information only: cron or a systemd timer may do the same."""
    settings, tenant = look.settings, look.tenant
    home, now = dagster_folder(settings), datetime.now(UTC)
    if not (home / "dagster.yaml").is_file():
        return note(f"no scheduler: there is no Dagster instance in {home}", _RUN_IT)
    if tenant in outdated_tenants(settings, now):
        return problem(
            f"`bookferry ui` runs with an earlier {settings.path.name}, which has {tenant} not at all, or otherwise",
            f"{RESTART}.",
            exit_status=ExitStatus.USAGE,
        )
    newest = newest_complete(open_data(settings, personal_keys(settings)).snapshots(tenant))
    backups = {tenant: newest} if newest is not None else {}
    scheduler, failed = scheduler_runs(settings, now), failed_runs(settings, now - SHOWN, backups)
    launcher = dagster_setting(home, "run_launcher").get("class", _ON_THIS_MACHINE[0])
    if launcher not in _ON_THIS_MACHINE and (settings.state == "local" or settings.bucket is None):
        return problem(
            f"Dagster's {launcher} may start the runs of a library on several machines, and what they must share is on this one",
            'Write `state = "postgres"`, and a bucket as `data`, into bookferry.toml: docs/several-machines.md.',
            exit_status=ExitStatus.USAGE,
        )
    if scheduler is None or failed is None:
        return note(f"Dagster's history in {home} cannot be read")
    text = "the scheduler is running" if scheduler else "no scheduler is running"
    if lost := [run for run in failed if run.tenant == tenant]:
        age = ago((now - lost[-1].ended_at).total_seconds())
        return warning(
            f"Dagster's run of {lost[-1].job} FAILED, {age}; {text}",
            f"`bookferry ui` shows why; `bookferry backup {tenant}` tries again.",
        )
    return ok(text) if scheduler else note(text, _RUN_IT)


NIGHTLY = Check("nightly", nightly_runs)
