"""`bookferry status`: the state of all libraries on one screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import RenderableType

from cli.dagster_runs import RESTART, FailedRun, failed_runs, outdated_tenants, scheduler_runs
from cli.output import Answer, ReadableTable, verdict, warning
from cli.snapshots import ago, checked, not_read_lines, snapshot_document
from pipelines.errors import ExitStatus
from pipelines.humanize import counted
from pipelines.overview.libraries import Library, Overview, overview
from pipelines.settings.settings import Settings
from pipelines.store.stores import open_data

COLUMNS = ("library", "backup", "records", "files", "verified", "drilled", "sign-in")


def show_status(settings: Settings) -> Answer:
    """The state of every library. The status is 0 only if each is as its owner wants it."""
    now = datetime.now(UTC)
    state = overview(settings, open_data(settings), now)
    scheduler = scheduler_runs(settings, now)
    backups = {library.tenant: library.backup for library in state.libraries if library.backup is not None}
    failed = failed_runs(settings, state.next_run - timedelta(days=1), backups)
    outdated = outdated_tenants(settings, now)
    status = max(state.exit_status, ExitStatus.PARTIAL) if failed or outdated else state.exit_status
    document = {
        "ok": status is ExitStatus.COMPLETE,
        "next_run": state.next_run,
        "libraries": [_library_document(library, now) for library in state.libraries],
        "plans": state.plans,
        "incomplete": state.incomplete,
        "scheduler": scheduler,
        "failed_runs": None if failed is None else [run._asdict() for run in failed],
        "outdated": outdated,
    }
    lines = _lines(state, now, failed or [], outdated, scheduler=scheduler)
    return Answer(document, lines, status)


def _library_document(library: Library, now: datetime) -> dict[str, Any]:
    return {
        "tenant": library.tenant,
        "base_url": library.base_url,
        "api": library.api,
        "ok": not library.problems,
        "backup": library.backup and snapshot_document(library.backup, now),
        "last_verified": library.verified,
        "last_drilled": library.drilled,
        "days_left": library.days_left,
        "problems": library.problems,
    }


def _lines(
    state: Overview,
    now: datetime,
    failed: Sequence[FailedRun],
    outdated: Sequence[str],
    *,
    scheduler: bool | None,
) -> Iterator[RenderableType]:
    if not state.libraries:
        yield "bookferry.toml names no library. `bookferry init --tenant NAME` adds one."
        return
    yield ReadableTable(COLUMNS, [_row(library, now) for library in state.libraries], right=("records", "files"))
    for library in state.libraries:
        for problem in library.problems:
            yield warning(f"{library.tenant}: {problem.message.removesuffix('.')}. {problem.todo}".rstrip())
    yield from not_read_lines([(library.tenant, library.backup) for library in state.libraries if library.backup])
    for run in failed:
        job = f"{run.job} of {run.tenant}" if run.tenant else run.job
        ended = (
            f"{job} failed at {run.ended_at.astimezone(state.next_run.tzinfo):%H:%M} (run {run.run.partition('-')[0]})"
        )
        yield warning(f"{ended}. `bookferry ui` shows why.")
    if outdated:
        yield warning(f"{', '.join(outdated)}: changed in bookferry.toml since `bookferry ui` was started. {RESTART}.")
    for plan in state.plans:
        if not plan.begun:
            yield f"Plan {plan.plan} waits for {plan.waits_for}: `bookferry {' '.join(plan.command)}`"
    yield f"Next backup: {state.next_run:%-d %B %Y %H:%M} {state.next_run.tzname()}, {_SCHEDULER[scheduler]}."
    names = [library.tenant for library in state.libraries if library.problems]
    names += [run.tenant or run.job for run in failed]
    if bad := [*dict.fromkeys([*names, *outdated])]:
        yield verdict("NEEDS ATTENTION:", f"{', '.join(bad)}.", good=False)
    else:
        libraries = counted(len(state.libraries), "library", "libraries")
        lost = "".join(f" Plan {plan.plan}: {plan.lost}." for plan in state.incomplete)
        word = "Nothing is due:" if lost else "All is well:"
        yield verdict(word, f"{libraries}.{lost}", good=not lost)


_SCHEDULER = {
    True: "by the scheduler of the web interface, which runs",
    False: "if cron or a systemd timer starts it, because the web interface does not run",
    None: "if a scheduler starts it",
}
"""Whether Dagster's scheduler runs (`None`: unknown) → words."""


def _row(library: Library, now: datetime) -> tuple[str, ...]:
    backup = library.backup
    return (
        library.tenant,
        "none" if backup is None else ago(backup.manifest.finished_at, now),
        "" if backup is None else f"{sum(backup.counts.values()):,}",
        "" if backup is None else f"{backup.manifest.files.kept:,}",
        checked(library.verified, now),
        checked(library.drilled, now),
        _sign_in(library),
    )


def _sign_in(library: Library) -> str:
    if library.days_left is not None:
        return f"v2: {counted(library.days_left, 'day')}" if library.days_left >= 0 else "v2 HAS ENDED"
    if any(problem.code == "sign_in" for problem in library.problems):
        return "NEEDED"
    return "v3, renewed"
