"""What a plan is told by when it is made: its name, its facts, and what people decided before."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipelines.errors import ConfigurationError, StopError
from pipelines.migration.model.journal import DONE, RECORD_WRITES, Journal
from pipelines.migration.model.plan import FACTS, PEOPLE, ROWS, End, Plan, PlanFacts
from pipelines.migration.model.plan_folders import plan_name, plans_folder
from pipelines.migration.model.resource_types import PUBLICATIONS, USERS
from pipelines.migration.plan.conflicts import Decision, newest_table, read_decisions
from pipelines.migration.plan.publications import Totals, requests_to_read
from pipelines.migration.plan.scope import notes_on
from pipelines.settings.settings import Settings
from pipelines.store.durable import sha256_of
from pipelines.store.encryption import PersonalKey
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from pipelines.version import VERSION

APPLIED_ONCE = frozenset({"create", "source"})
"""Decisions that overwrite or add: what was done because of one is not done again because of it."""


def facts_of(
    source: Snapshot,
    target: str,
    settings: Settings,
    folder: Path,
    *,
    found: Mapping[str, Totals],
    key: PersonalKey | None,
    now: datetime,
) -> PlanFacts:
    """What a plan tells of itself, but for its decisions; `found`: what the rows of each resource add up to; `key`: of personal data."""
    chosen, manifest = settings.tenant(target), source.manifest
    _library, per_minute = settings.budget_of(target)
    totals = found[PUBLICATIONS]
    writes = sum(one.requests for one in found.values())
    reads = sum(requests_to_read(one.target) for name, one in found.items() if one.requests or name == PUBLICATIONS)
    return PlanFacts(
        plan=folder.name,
        tool=f"bookferry {VERSION}",
        created_at=now.isoformat(timespec="milliseconds"),
        source=End(
            tenant=manifest.tenant,
            base_url=manifest.base_url,
            api=manifest.api,
            snapshot=manifest.snapshot,
            records={name: one.source for name, one in found.items()},
        ),
        target=End(
            tenant=target,
            base_url=chosen.base_url,
            api=chosen.api,
            snapshot=f"{now:%Y%m%dT%H%M%SZ}",
            records={name: one.target for name, one in found.items()},
        ),
        same_library=False,
        resources=[*found],
        counts={name: dict(one.actions) for name, one in found.items()},
        matched_by=dict(sum((one.matched_by for one in found.values()), Counter[str]())),
        fields=dict(totals.fields),
        files=totals.files,
        requests=writes + reads if writes else 0,
        requests_per_minute=per_minute,
        unfit=sum(one.unfit for one in found.values()),
        unsent=dict(sum((one.unsent for one in found.values()), Counter[str]()).most_common()),
        invalid_identifiers=totals.invalid,
        mails=sum(one.mails for one in found.values()),
        notes=[*_notes(source), *notes_on(found, key)],
        rows_sha256=sha256_of(folder / ROWS),
        people_sha256=sha256_of(folder / PEOPLE) if USERS in found else "",
        people_key=key.fingerprint if key is not None and USERS in found else "",
    )


def decisions_so_far(data: DataFolder, journal: Journal, source: str, target: str) -> list[Decision]:
    """What people decided of the last plan's conflicts; what was applied since is no open question any more."""
    newest = newest_table(data, source, target)
    if newest is None:
        return []
    asked, table = newest

    def applied(one: Decision) -> bool:
        return one.decision in APPLIED_ONCE and any(
            entry.state == DONE and entry.kind in RECORD_WRITES and entry.begun_at >= asked
            for entry in journal.of_record(one.resource, one.source_id)
        )

    return [one for one in read_decisions(table) if not applied(one)]


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


def check_still_theirs(settings: Settings, plan: Plan) -> None:
    """The tenant must be the library that the plan was made for: bookferry.toml may name another one by now."""
    target = plan.facts.target
    chosen = settings.tenant(target.tenant)
    if not same_library(chosen.base_url, target.base_url):
        raise ConfigurationError(
            f"Plan {plan.name} was made for '{target.tenant}' at {target.base_url}, which is now at {chosen.base_url}. Make a new "
            "plan."
        )


def after_writes(run: str, plan: Plan, journal: Journal) -> str:
    """Name of a reading: what was read before a write of the plan, and broken off, is not gone on with after it."""
    return f"{run}-{re.sub(r'[^0-9]', '', journal.last_change(plan.name))}"


def holds_all(source: Snapshot) -> bool:
    """Whether a snapshot holds all publications of its library, whatever else it may lack."""
    facts = source.manifest.resources.get(PUBLICATIONS)
    return facts is not None and facts.complete


def same_library(one: str, other: str) -> bool:
    """Whether two addresses are one library, whose records have one id in both versions of the API."""
    return one.rstrip("/").lower() == other.rstrip("/").lower()


def _notes(source: Snapshot) -> list[str]:
    return [] if source.manifest.complete else [f"{source.name} is partial: {' '.join(source.manifest.problems)}"]
