"""The check of `doctor` on Dagster. It is here because pipelines know nothing of Dagster."""

from __future__ import annotations

from datetime import UTC, datetime

from cli.dagster_instance import dagster_folder
from cli.dagster_runs import RESTART, dagster_setting, outdated_tenants, scheduler_runs
from pipelines.doctor.checks import Check
from pipelines.doctor.findings import CheckResult, note, ok, problem
from pipelines.doctor.look import Look
from pipelines.errors import ExitStatus

_ON_THIS_MACHINE = ("DefaultRunLauncher", "SyncInMemoryRunLauncher")
"""Launchers whose runs are on the machine of the code location."""

_RUN_IT = (
    "`bookferry ui` runs the nightly backup while it is up; so does `bookferry nightly` from cron or a systemd timer."
)


def nightly_runs(look: Look) -> CheckResult:
    """The nightly backup is scheduled: cron or a systemd timer may do the same. Which runs have failed is for `status` to say."""
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
    launcher = dagster_setting(home, "run_launcher").get("class", _ON_THIS_MACHINE[0])
    if launcher not in _ON_THIS_MACHINE and (settings.state == "local" or settings.bucket is None):
        return problem(
            f"Dagster's {launcher} may start the runs of a library on several machines, and what they must share is on this one",
            'Write `state = "postgres"`, and a bucket as `data`, into bookferry.toml: docs/several-machines.md.',
            exit_status=ExitStatus.USAGE,
        )
    if (scheduler := scheduler_runs(settings, now)) is None:
        return note(f"Dagster's history in {home} cannot be read")
    return ok("the scheduler is running") if scheduler else note("no scheduler is running", _RUN_IT)


NIGHTLY = Check("nightly", nightly_runs)
