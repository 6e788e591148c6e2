"""Proves that a snapshot can be put back: it is as it was published, and a sandbox started for that takes it and gives it back.

The checksums tell that what is put back is what was backed up; reading it again tells that all of it can be put back.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.backup.read import Progress
from pipelines.humanize import MOST_LISTED, counted
from pipelines.migration.apply.run import ApplyProgress, Limits
from pipelines.migration.flow import Migration
from pipelines.migration.model.plan import CONFLICT, PRESENT_ACTIONS, QUARANTINED
from pipelines.migration.model.resource_types import LOCATIONS, RESOURCE_TYPES
from pipelines.migration.plan.other_resources import TASK_COMPLETED
from pipelines.migration.plan.scope import listed_in
from pipelines.migration.report.issues import sorts
from pipelines.service.sandbox_process import CLIENT_ID, create_locations, sandbox_process, store_sign_in
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import TenantSettings
from pipelines.store.durable import storage_errors
from pipelines.store.maintenance.drills import Drill, keep
from pipelines.store.maintenance.verification import verify
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

TENANT = "drill"

ALL = Limits(failures=1_000_000_000, failures_percent=100.0, touched_percent=100.0)
"""A drill wants to know of everything that cannot be put back."""


MOST_LEFT = 100


def drill(
    settings: Settings,
    data: DataFolder,
    snapshot: Snapshot,
    *,
    now: datetime,
    on_progress: Callable[[Progress | ApplyProgress], None] = lambda _: None,
) -> Drill:
    """Restore a snapshot into an empty library of a sandbox, read it back, compare; keep the result with the snapshot."""
    begun = time.monotonic()
    data.prepare()
    intact = verify(data, snapshot.key, now=now)
    with (
        storage_errors(data.path),
        tempfile.TemporaryDirectory(prefix=".drill-", dir=data.path) as folder,
        sandbox_process(["--tenant", f"{TENANT}=empty", "--requests-per-minute", "0", "--port", "0"]) as ready,
    ):
        inside = _inside(settings, Path(folder), ready["tenants"][TENANT]["base_url"])
        store_sign_in(inside, TENANT, ready, TENANT)
        others, problems = _others(snapshot)
        made = create_locations(ready, TENANT, _locations(data, snapshot, Path(folder))) if LOCATIONS in others else 0
        with Migration(inside, on_progress=on_progress, source_data=data) as migration:
            # what the sandbox has of its own, such as the account that signs in, gives way
            plan = migration.plan(snapshot, TENANT, overwrite=True, resources=others)
            applied = migration.apply(plan, limits=ALL).applied
            proof = migration.verify(plan, contents=True)
        done = sum(row.reason == TASK_COMPLETED for row in plan.rows(QUARANTINED, resources=["tasks"]))
    facts = plan.facts
    problems = [*intact.problems, *problems]
    problems += [f"{one.resource} {one.source_id}: {one.problem}" for one in applied.failures]
    problems += [str(one) for one in proof.findings]
    problems += [
        f"{count:,} {what}"
        for count, what in (
            (facts.count(QUARANTINED) + facts.unfit - done, "records cannot be put back"),
            (facts.count(CONFLICT), "records are conflicts"),
            (facts.files.missing, "files are missing in the snapshot"),
        )
        if count
    ]
    result = Drill(
        tenant=snapshot.manifest.tenant,
        snapshot=snapshot.manifest.snapshot,
        ok=proof.equal and not problems,
        drilled_at=now.astimezone(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - begun, 3),
        records=proof.compared,
        files=proof.files_checked,
        bytes=facts.files.bytes,
        problems=problems[:MOST_LISTED],
        problems_count=len(problems),
        resources={
            name: sum(counts.get(action, 0) for action in PRESENT_ACTIONS) for name, counts in facts.counts.items()
        },
        left=_left(made, done, facts.unsent),
    )
    keep(data, result)
    return result


def _others(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    """The resources beside the publications that can be put back, and why others cannot."""
    held = snapshot.manifest.resources
    whole = {name for name, facts in held.items() if facts.complete}
    names = [
        name for name in RESOURCE_TYPES if name in whole and whole.issuperset(RESOURCE_TYPES[name].references.values())
    ]
    kept_out = [name for name in RESOURCE_TYPES if name in held and name not in names]
    return names, [
        f"{name}: not put back, since the snapshot lacks some of it, or of what it refers to" for name in kept_out
    ]


def _locations(data: DataFolder, snapshot: Snapshot, folder: Path) -> Iterator[dict[str, Any]]:
    """What a person would have to enter."""
    for record in listed_in(data, snapshot, LOCATIONS, folder).records():
        values = RESOURCE_TYPES[LOCATIONS].values(record)
        if isinstance(values.get("name"), str):
            yield values


def _left(made: int, done: int, unsent: Mapping[str, int]) -> list[str]:
    """What no program can put back, in words."""
    found = []
    if made:
        found.append(
            f"{counted(made, 'location')}: made by hand here, since no program can; a person enters them before a restore"
        )
    if done:
        found.append(f"{counted(done, 'task')}: done, and nobody shows how one is made that is")
    paths = list(sorts(unsent).items())[:MOST_LEFT]
    found += [
        f"{path} of {counted(count, 'record')}: version 3 has no place for it, or not in this form"
        for path, count in paths
    ]
    return found


def _inside(settings: Settings, folder: Path, base_url: str) -> Settings:
    """Settings of a data folder of its own, so that a drill leaves no trace in the journal, the budget or the sign-ins of a library."""
    chosen = TenantSettings(
        base_url=base_url,
        api="v3",
        client_id=CLIENT_ID,
        client_auth="none",
        requests_per_minute=1_000_000,
        send_invalid_identifiers=True,
    )
    return replace(
        settings, data=folder, bucket=None, postgres_env=None, tokens=folder / "sign-ins", tenants={TENANT: chosen}
    )
