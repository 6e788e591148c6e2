"""Plans that wait for something, from the plans and the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.errors import StorageError
from pipelines.humanize import counted
from pipelines.service.clock import SystemClock
from pipelines.settings.settings import Settings
from pipelines.store.snapshots.snapshots import DataFolder

if TYPE_CHECKING:
    from pipelines.migration.model.plan import Plan
    from pipelines.migration.report.status import PlanStatus


@dataclass(frozen=True)
class OpenPlan:
    """A plan that waits for something."""

    plan: str
    source: str
    target: str
    created_at: str
    conflicts: int
    waits_for: str
    """In words, for a person."""
    command: tuple[str, ...]
    """The words of the command that goes on, after `bookferry`."""
    begun: bool
    """Whether it has written something, so that the target is between two states."""
    lost: str = ""
    """What the target does not have after it, in a few words. A plan that waits for nothing is listed for this alone."""


def open_plans(settings: Settings, data: DataFolder) -> list[OpenPlan]:
    """The newest plan of each pair of libraries, and earlier ones that were begun, not finished, and not taken over by a later one.

    Without those that wait for nothing, unless the newest one has left something out.
    """
    if not (data.path / "plans").is_dir() and next(data.objects.below("plans"), None) is None:
        return []
    from pipelines.migration.model.journal import Journal  # noqa: PLC0415  they take a second to import, and many libraries have no plan
    from pipelines.migration.model.plan_folders import all_plans  # noqa: PLC0415
    from pipelines.migration.report.status import status_of  # noqa: PLC0415

    waiting = []
    # What later plans of a pair have gone on with; an earlier plan of it is stale.
    taken_over: dict[tuple[str, str], set[str]] = {}
    for plan in reversed(all_plans(data)):
        pair = plan.facts.source.tenant, plan.facts.target.tenant
        is_newest, later = pair not in taken_over, taken_over.setdefault(pair, set())
        resources = set(plan.facts.resources)
        if plan.facts.target.tenant not in settings.tenants or (resources <= later and not is_newest):
            continue
        journal = Journal(data.state, plan.facts.source.base_url, plan.facts.target.base_url, SystemClock())
        try:
            status = status_of(plan, journal)
            open_plan = _open(plan, status, is_newest=is_newest)
        except StorageError:
            continue
        finally:
            journal.close()
        if (any(status.done.values()) or status.verification) and not status.undone:
            later |= resources
        if open_plan is not None and (is_newest or open_plan.begun):
            waiting.append(open_plan)
    return waiting[::-1]


def next_step(plan: Plan, status: PlanStatus) -> tuple[str, tuple[str, ...]] | None:
    """What a plan waits for, in words, and the command that goes on; None for one that is undone or waits for nothing."""
    begun, proof, decisions = any(status.done.values()), status.verification, counted(status.undecided, "decision")
    apply, verify = (("migrate", command, plan.name) for command in ("apply", "verify"))
    if status.undone:
        return None
    if begun and not status.written:
        return f"the rest of its {counted(status.requests_left, 'request')}", apply
    if begun and proof is None:
        return "its verification", verify
    if begun and proof is not None and not proof.equal:
        return "a person: its verification found differences", verify
    if not begun and not plan.facts.empty:
        return f"its application or {decisions}" if status.undecided else "its application", apply
    sides = plan.facts.source.tenant, plan.facts.target.tenant
    return (decisions, ("migrate", "plan", *sides)) if status.undecided else None


def _open(plan: Plan, status: PlanStatus, *, is_newest: bool) -> OpenPlan | None:
    """A plan with what it waits for; `None` for one that waits for nothing, with nothing left out."""
    from pipelines.migration.model.losses import in_short, losses_of  # noqa: PLC0415

    facts, proof = plan.facts, status.verification
    begun = any(status.done.values()) and not status.undone
    lost = in_short(losses_of(plan, status.lacking)) if is_newest and (begun or facts.empty) else ""
    step = next_step(plan, status)
    if status.undone or not (step or lost):
        return None
    waits, command = step or ("", ())
    unfinished = begun and not (status.written and proof is not None and proof.equal)
    unfinished |= begun and is_newest and bool(status.undecided)
    return OpenPlan(
        plan.name,
        facts.source.tenant,
        facts.target.tenant,
        facts.created_at,
        status.undecided,
        waits,
        command,
        begun=unfinished,
        lost=lost,
    )
