"""What a plan is told by when it is made: its name, its facts, and what people decided before."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipelines.errors import ConfigurationError, StopError
from pipelines.migration.conflicts import Decision, decisions_of
from pipelines.migration.journal import CREATE, DONE, PATCH, Journal
from pipelines.migration.planning import PUBLICATIONS, Totals, requests_to_read
from pipelines.migration.plans import FACTS, ROWS, End, PlanFacts, all_plans, plan_name, plans_folder
from pipelines.settings import Settings
from pipelines.store.durable import sha256_of
from pipelines.store.snapshots import DataFolder, Snapshot
from pipelines.version import VERSION

APPLIED_ONCE = frozenset({"create", "source"})
"""Decisions that overwrite or add: what was done because of one is not done again because of it."""


def facts_of(
    source: Snapshot, target: str, settings: Settings, folder: Path, *, totals: Totals, now: datetime
) -> PlanFacts:
    """What a plan tells of itself, but for its decisions."""
    chosen, manifest = settings.tenant(target), source.manifest
    _library, per_minute = settings.budget_of(target)
    writes = totals.requests
    return PlanFacts(
        plan=folder.name,
        tool=f"bookferry {VERSION}",
        created_at=now.isoformat(timespec="seconds"),
        source=End(
            tenant=manifest.tenant,
            base_url=manifest.base_url,
            api=manifest.api,
            snapshot=manifest.snapshot,
            records={PUBLICATIONS: totals.source},
        ),
        target=End(
            tenant=target,
            base_url=chosen.base_url,
            api=chosen.api,
            snapshot=f"{now:%Y%m%dT%H%M%SZ}",
            records={PUBLICATIONS: totals.target},
        ),
        same_library=False,
        resources=[PUBLICATIONS],
        counts={PUBLICATIONS: dict(totals.actions)},
        matched_by=dict(totals.matched_by),
        fields=dict(totals.fields),
        files=totals.files,
        requests=writes + requests_to_read(totals.target) if writes else 0,
        requests_per_minute=per_minute,
        unfit=totals.unfit,
        unsent=dict(totals.unsent.most_common()),
        invalid_identifiers=totals.invalid,
        notes=_notes(source),
        rows_sha256=sha256_of(folder / ROWS),
    )


def decisions_so_far(data: DataFolder, journal: Journal, source: str, target: str) -> list[Decision]:
    """What people decided of the last plan's conflicts; what was applied since is no open question any more."""
    earlier = [
        plan for plan in all_plans(data) if (plan.facts.source.base_url, plan.facts.target.base_url) == (source, target)
    ]
    if not earlier:
        return []
    asked = earlier[-1].facts.created_at

    def applied(one: Decision) -> bool:
        return one.decision in APPLIED_ONCE and any(
            entry.state == DONE and entry.kind in (CREATE, PATCH) and entry.begun_at >= asked
            for entry in journal.of_record(one.resource, one.source_id)
        )

    return [one for one in decisions_of(data, source, target) if not applied(one)]


def free_name(data: DataFolder, source: Snapshot, target: str, now: datetime) -> str:
    """The name of a plan that is made now; no other has it."""
    moment = now.astimezone(UTC)
    while (plans_folder(data) / plan_name(source.manifest.tenant, target, moment)).exists():
        moment += timedelta(seconds=1)
    return plan_name(source.manifest.tenant, target, moment)


def clear_unfinished(data: DataFolder, target: str) -> None:
    """Remove what a killed process left of a plan; under the lease of its target."""
    for folder in plans_folder(data).glob(f"*-to-{target}-*Z"):
        if folder.is_dir() and not (folder / FACTS).exists():
            shutil.rmtree(folder, ignore_errors=True)


def check_target(settings: Settings, target: str) -> None:
    """Raise unless a tenant can be moved into."""
    if settings.tenant(target).api != "v3":
        raise ConfigurationError(
            f"'{target}' is a tenant of version 2, which is shut down at the end of 2026: nothing is moved into it. Name a tenant with "
            'api = "v3".'
        )


def check_movable(source: Snapshot) -> None:
    """Raise unless a snapshot holds all publications of its library. Files that are missing are listed, and the rest is moved (trap B9)."""
    facts = source.manifest.resources.get(PUBLICATIONS)
    if facts is None:
        raise ConfigurationError(f"{source.name} holds no publications, so there is nothing to move.")
    if not facts.complete:
        raise StopError(
            f"{source.name} does not hold all publications, so a migration from it would leave some behind: {' '.join(facts.problems)} "
            f"Make a complete one first: `bookferry backup {source.manifest.tenant}`."
        )


def holds_all(source: Snapshot) -> bool:
    """Whether a snapshot holds all publications of its library, whatever else it may lack."""
    facts = source.manifest.resources.get(PUBLICATIONS)
    return facts is not None and facts.complete


def same_library(one: str, other: str) -> bool:
    """Whether two addresses are one library, whose records have one id in both versions of the API."""
    return one.rstrip("/").lower() == other.rstrip("/").lower()


def _notes(source: Snapshot) -> list[str]:
    return [] if source.manifest.complete else [f"{source.name} is partial: {' '.join(source.manifest.problems)}"]
