"""Proves that a snapshot can be put back: verifies its checksums, restores it into a sandbox, and compares the result.

The checksums prove that the snapshot is what was backed up; reading the sandbox again proves that all of it can be put back.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pipelines.backup.read import Progress
from pipelines.humanize import MOST_LISTED, counted
from pipelines.inventory import records_in_words
from pipelines.migration.flow import Migration
from pipelines.migration.limits import NO_LIMITS
from pipelines.migration.mapping.learned_types import additional_names, shape_of
from pipelines.migration.model.actions import PRESENT_ACTIONS, Action
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import PlanFacts
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.reasons import AT_MISSING_LOCATION, REASONS, REFERENCE_MISSING, TASK_COMPLETED
from pipelines.migration.model.resource_types import LOCATIONS, PUBLICATIONS, RESOURCE_TYPES
from pipelines.migration.model.target_reading import snapshot_listing
from pipelines.migration.rehearsal import sandbox_shapes
from pipelines.records.additional_fields import is_managed
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.tables.registry import beside_links
from pipelines.service.sandbox_process import CLIENT_ID, create_locations, sandbox_process, store_sign_in
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import TenantSettings
from pipelines.store.durable import storage_errors, write_atomically
from pipelines.store.maintenance.results import DRILLS, DrillResult
from pipelines.store.maintenance.verification import verify
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

TENANT = "drill"

_SANDBOX = ("--tenant", f"{TENANT}=empty", "--requests-per-minute", "0", "--port", "0")

_NOT_PUT_BACK = {
    AT_MISSING_LOCATION: "The snapshot does not have its location.",
    REFERENCE_MISSING: "The snapshot does not have the record to which it refers.",
}
"""Why a record is not put back, where a plan would say it of the target: the sandbox has what the snapshot has."""

LEFT_OUT = frozenset({"dates", "identifiers", "references", "fields"})
"""Kinds of losses that a restore has by what it leaves out.

Records, conflicts and files are named one by one. Of lists that the backup did not read the snapshot itself speaks, which has none of them.
"""


def drill(
    settings: Settings,
    data: DataFolder,
    snapshot: Snapshot,
    *,
    now: datetime,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> DrillResult:
    """Restore a snapshot into an empty library of a sandbox, read it back and compare; store the result with the snapshot."""
    begun = time.monotonic()
    data.prepare()
    intact = verify(data, snapshot.key, now=now)
    with (
        storage_errors(data.path),
        tempfile.TemporaryDirectory(prefix=".drill-", dir=data.path) as folder,
        sandbox_process([*_SANDBOX, *shapes_option(data, snapshot, Path(folder) / "shapes.json")]) as ready,
    ):
        sandbox_settings = _sandbox_settings(settings, Path(folder), ready["tenants"][TENANT]["base_url"])
        store_sign_in(sandbox_settings, TENANT, ready, TENANT)
        resources, problems = _restorable_resources(snapshot)
        locations = 0
        if LOCATIONS in resources:
            locations = create_locations(ready, TENANT, _locations(data, snapshot, Path(folder)))
        with Migration(sandbox_settings, on_progress=on_progress, source_data=data) as migration:
            # overwrite: the snapshot replaces the sandbox's own records, such as the account that signs in
            plan = migration.plan(snapshot, TENANT, overwrite=True, resources=resources, restores=True)
            applied = migration.apply(plan, limits=NO_LIMITS)
            verification = migration.verify(plan, contents=True)
        quarantined = Counter((row.resource, row.reason or "") for row in plan.rows(Action.QUARANTINED))
        completed_tasks = quarantined.pop(("tasks", TASK_COMPLETED), 0)
        losses = [loss for loss in losses_of(plan, named=MOST_LISTED) if loss.kind in LEFT_OUT]
    facts = plan.facts
    problems = [*intact.problems, *problems]
    problems += [str(failure) for failure in applied.failures]
    problems += [str(finding) for finding in verification.findings if not finding.lacking]
    problems += _plan_problems(facts, quarantined)
    left_out = [f"{loss.words}: {loss.why}" for loss in losses]
    lost = [loss.words for loss in losses]
    if completed_tasks:
        lost.append(counted(completed_tasks, "completed task"))
        left_out.append(f"{lost[-1]}: the API document does not show how to create one.")
    result = DrillResult(
        tenant=snapshot.manifest.tenant,
        snapshot=snapshot.manifest.snapshot,
        ok=bool(verification.as_planned) and not problems,
        drilled_at=now.astimezone(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - begun, 3),
        records=verification.compared,
        files=verification.files_checked,
        bytes=facts.files.bytes,
        problems=[*problems, *left_out][:MOST_LISTED],
        problems_count=len(problems) + len(left_out),
        resources={
            name: sum(counts.get(action, 0) for action in PRESENT_ACTIONS) for name, counts in facts.counts.items()
        },
        lost=f"left out by Bookferry: {', '.join(lost)}" if lost else "",
        locations=locations,
    )
    DRILLS.save(data, result)
    return result


def shapes_option(data: DataFolder, snapshot: Snapshot, path: Path) -> list[str]:
    """The option that gives a sandbox the fields of all records of a snapshot, where the service documents none. `path`: its file."""
    names = [name for name in (*RESOURCE_TYPES, PUBLICATIONS) if name in snapshot.manifest.resources]
    with tempfile.TemporaryDirectory(prefix=".shapes-", dir=data.path) as folder:
        listings = {name: snapshot_listing(data, snapshot, name, Path(folder)) for name in names}
        lists = listings.pop(PUBLICATIONS).lists.values() if PUBLICATIONS in listings else ()
        undocumented = (*snapshot.manifest.residue.get(PUBLICATIONS, ()), *lists)
        additional = additional_names(undocumented, publication_type(STANDARD_KINDS))
        kept = {
            name: shape_of(listing, [*map(beside_links, listing.lists.values())]) for name, listing in listings.items()
        }
        shapes = sandbox_shapes(kept, additional)
    with storage_errors(path):
        write_atomically(path, msgspec.json.format(msgspec.json.encode(shapes)))
    return ["--shapes", str(path)]


def _plan_problems(facts: PlanFacts, quarantined: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """What the plan cannot put back. `quarantined`: resource and reason → records."""
    for (resource, reason), count in quarantined.items():
        why = _NOT_PUT_BACK.get(reason) or REASONS[reason].problem
        yield f"{records_in_words(resource, count)} cannot be put back: {why}"
    if facts.unfit:
        yield f"{counted(facts.unfit, 'record')} without an id cannot be put back."
    if count := facts.count(Action.CONFLICT):
        yield f"{counted(count, 'conflict')}: a record of the snapshot is not clearly one of those that were put back."
    if facts.files.missing:
        yield f"{counted(facts.files.missing, 'file')} missing in the snapshot"


def _restorable_resources(snapshot: Snapshot) -> tuple[list[str], list[str]]:
    """The resources other than publications that can be put back; and why each of the others in the snapshot cannot."""
    in_snapshot = snapshot.manifest.resources
    complete = {name for name, facts in in_snapshot.items() if facts.complete}
    restorable = [
        name
        for name, resource_type in RESOURCE_TYPES.items()
        if name in complete and complete.issuperset(resource_type.referred)
    ]
    return restorable, [
        f"{name}: not put back, since the snapshot lacks some of it, or of what it refers to"
        for name in RESOURCE_TYPES
        if name in in_snapshot and name not in restorable
    ]


def _locations(data: DataFolder, snapshot: Snapshot, folder: Path) -> Iterator[dict[str, Any]]:
    """The locations of a snapshot, which a person would have to enter."""
    for record in snapshot_listing(data, snapshot, LOCATIONS, folder).records():
        yield {name: value for name, value in record.items() if not is_managed(name)}


def _sandbox_settings(settings: Settings, folder: Path, base_url: str) -> Settings:
    """Settings with a data folder of its own: a drill writes nothing to the journal, the budget or the sign-ins of a library."""
    sandbox = TenantSettings(
        base_url=base_url,
        api="v3",
        client_id=CLIENT_ID,
        client_auth="none",
        requests_per_minute=1_000_000,
    )
    return replace(
        settings,
        data=folder,
        bucket=None,
        postgres_env=None,
        state="local",
        iceberg=None,
        tokens=folder / "sign-ins",
        tenants={TENANT: sandbox},
    )
