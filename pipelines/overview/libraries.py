"""The state of all libraries, from what is stored: no library is asked, and nothing is written.

A library is as its owner wants it if its newest backup is complete and of last night, no snapshot of it failed a verification or a drill,
nobody has to sign in, version 2 has not ended, and no migration into it was begun and not finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from pipelines.doctor.backup_age import NewestSnapshots, last_backup, newest_snapshots
from pipelines.doctor.findings import CheckStatus
from pipelines.errors import BookferryError, ExitStatus, worst
from pipelines.humanize import last_and_more
from pipelines.inventory import LAST_DAY_OF_V2
from pipelines.overview.open_plans import OpenPlan, open_plans
from pipelines.service.clock import SystemClock
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.results import DRILLS, VERIFICATIONS, DrillResult, SnapshotVerification
from pipelines.store.snapshots.snapshots import DamagedSnapshot, DataFolder, Snapshot
from pipelines.store.stores import as_listed

RESULTS = ("verifications", "drills")
"""The folders of what is known about snapshots."""


class ProblemCode(StrEnum):
    """What is not as it should be. Scripts rely on these words."""

    BACKUP = "backup"
    """No complete backup, none of last night, or a newer partial one."""
    DAMAGED = "damaged"
    DRILL = "drill"
    SIGN_IN = "sign_in"
    END_OF_V2 = "end_of_v2"
    MIGRATION = "migration"
    """A migration into the library was begun and is not finished, or its verification found differences."""


@dataclass(frozen=True)
class Problem:
    """One thing that needs a person, with what to do."""

    code: ProblemCode
    message: str
    todo: str
    exit_status: ExitStatus = ExitStatus.PARTIAL


@dataclass(frozen=True)
class Library:
    """The state of one library."""

    tenant: str
    api: str
    base_url: str
    backup: Snapshot | None
    """The newest complete one."""
    verified: SnapshotVerification | None
    """The last verification of any of its snapshots; likewise the last drill."""
    drilled: DrillResult | None
    days_left: int | None
    """Until the end of version 2, negative after it; `None` for version 3."""
    problems: Sequence[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Overview:
    """The state of all libraries."""

    libraries: list[Library]
    plans: list[OpenPlan]
    """Those that wait for something."""
    incomplete: list[OpenPlan]
    """Those that are done, and have left something out."""
    next_run: datetime
    """When the nightly backup is due, in the libraries' time zone."""

    @property
    def exit_status(self) -> ExitStatus:
        """0 if every library is as its owner wants it; 4 if somebody must sign in; else 3."""
        return worst(problem.exit_status for library in self.libraries for problem in library.problems)


def overview(settings: Settings, data: DataFolder, now: datetime) -> Overview:
    """The state of every library of bookferry.toml, and the plans that are open."""
    plans = open_plans(settings, data)
    data = as_listed(data, [*(f"snapshots/tenant={name}" for name in settings.tenants), *RESULTS])
    libraries = [_library(settings, data, name, plans, now) for name in settings.tenants]
    waiting, incomplete = ([plan for plan in plans if bool(plan.waits_for) is waits] for waits in (True, False))
    return Overview(libraries, waiting, incomplete, _next_run(settings, now))


def _library(settings: Settings, data: DataFolder, tenant: str, plans: Sequence[OpenPlan], now: datetime) -> Library:
    chosen = settings.tenant(tenant)
    snapshots = newest_snapshots(data, tenant)
    complete = snapshots.complete
    verified = sorted(VERIFICATIONS.all(data, tenant), key=lambda result: result.verified_at)
    drilled = sorted(DRILLS.all(data, tenant), key=lambda result: result.drilled_at)
    days_left = (LAST_DAY_OF_V2 - now.date()).days if chosen.api == "v2" else None
    problems = [
        *_backup_problems(tenant, snapshots, now),
        *_damage(snapshots.damaged, verified, drilled),
        *_sign_in(settings, tenant, now),
        *_end_of_v2(tenant, days_left),
        *(_unfinished(plan) for plan in plans if plan.begun and plan.target == tenant),
    ]
    return Library(
        tenant=tenant,
        api=chosen.api,
        base_url=chosen.base_url,
        backup=complete,
        verified=verified[-1] if verified else None,
        drilled=drilled[-1] if drilled else None,
        days_left=days_left,
        problems=problems,
    )


def _backup_problems(tenant: str, snapshots: NewestSnapshots, now: datetime) -> Iterator[Problem]:
    check = last_backup(tenant, replace(snapshots, damaged=()), now)
    if check.status is not CheckStatus.OK:
        message = "there is no backup yet" if snapshots.newest is None else check.message
        yield Problem(ProblemCode.BACKUP, message, check.todo)


def _damage(
    unusable: Sequence[DamagedSnapshot], verified: Sequence[SnapshotVerification], drilled: Sequence[DrillResult]
) -> Iterator[Problem]:
    names = [snapshot.name for snapshot in unusable]
    if names:
        yield Problem(
            ProblemCode.DAMAGED,
            f"the manifest of {last_and_more(names)} cannot be used",
            f"`bookferry snapshots verify {names[-1]}` says what to do.",
        )
    damaged = [result.name for result in verified if not result.ok and result.name not in names]
    if damaged:
        yield Problem(
            ProblemCode.DAMAGED,
            f"the last verification of {last_and_more(damaged)} failed",
            f"`bookferry snapshots verify {damaged[-1]}` names the damage.",
        )
    if drilled and not drilled[-1].ok:
        yield Problem(
            ProblemCode.DRILL,
            f"the last drill, of {drilled[-1].name}, failed",
            f"`bookferry drill {drilled[-1].tenant}` repeats it.",
        )


def _sign_in(settings: Settings, tenant: str, now: datetime) -> Iterator[Problem]:
    """What is wrong with the sign-in. That of version 2 is in the environment of its job, which may not be ours."""
    if settings.tenant(tenant).api == "v2":
        return
    from pipelines.service.sign_in.sign_in_state import sign_in_state  # noqa: PLC0415  it imports httpx, a quarter of the command
    from pipelines.sign_in_health import warning  # noqa: PLC0415

    todo = f"`bookferry login {tenant}` signs in."
    try:
        state = sign_in_state(settings, tenant, SystemClock())
    except BookferryError as error:
        yield Problem(ProblemCode.SIGN_IN, str(error), todo, ExitStatus.SIGN_IN)
        return
    if (reason := warning(state, now.timestamp())) is not None:
        status = ExitStatus.PARTIAL if state.problem is None else ExitStatus.SIGN_IN
        yield Problem(ProblemCode.SIGN_IN, reason, "" if "bookferry login" in reason else todo, status)


def _end_of_v2(tenant: str, days_left: int | None) -> Iterator[Problem]:
    if days_left is not None and days_left < 0:
        yield Problem(
            ProblemCode.END_OF_V2,
            f"version 2 of the API ended on {LAST_DAY_OF_V2:%-d %B %Y}",
            f"Set api = \"v3\" for '{tenant}' in bookferry.toml, then run `bookferry login {tenant}`.",
        )


def _unfinished(plan: OpenPlan) -> Problem:
    return Problem(
        ProblemCode.MIGRATION,
        f"plan {plan.plan} waits for {plan.waits_for}",
        f"`bookferry {' '.join(plan.command)}` goes on.",
    )


def _next_run(settings: Settings, now: datetime) -> datetime:
    hour, minute = map(int, settings.nightly_at.split(":"))
    local_time = now.astimezone(ZoneInfo(settings.timezone))
    due = local_time.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return due if due > local_time else due + timedelta(days=1)
