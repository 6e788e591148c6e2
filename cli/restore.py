"""`bookferry restore` and `bookferry drill`: restore a snapshot, and prove that a snapshot can be restored."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain

import msgspec
from rich.console import RenderableType

from cli.migrate import applied_plan, migrating, planned, verified
from cli.migration_output import applied_lines, plan_document, proof_lines
from cli.options import names_in
from cli.output import Answer, first, verdict
from cli.progress import ProgressDisplay
from cli.snapshots import tenant_snapshot
from cli.tell_dagster import tell_dagster
from pipelines.drill import drill
from pipelines.errors import ExitStatus
from pipelines.humanize import counted, duration, size
from pipelines.migration.apply.run import as_json
from pipelines.migration.limits import Limits
from pipelines.migration.model.actions import Action
from pipelines.migration.plan.scope import check_target
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.results import DrillResult
from pipelines.store.stores import open_data


def restore_snapshot(
    settings: Settings,
    *,
    snapshot: str,
    tenant: str,
    resources: str,
    overwrite: bool,
) -> Answer:
    """Plan, apply and verify. Creates what the library lacks, and deletes nothing."""
    check_target(settings, tenant)
    with migrating(settings) as (migration, _display):
        plan = planned(migration, snapshot, tenant, resources=names_in(resources), overwrite=overwrite, restores=True)
        applied = applied_plan(migration, plan, Limits(touched_percent=100.0))
        proof = verified(migration, plan)
    document = {
        **plan_document(plan),
        **as_json(applied),
        "verification": proof,
    }
    incomplete = applied.failed + applied.quarantined + applied.lacking.total + plan.facts.count(Action.CONFLICT)
    status = ExitStatus.PARTIAL if incomplete else ExitStatus.COMPLETE
    if not proof.as_planned:
        status = ExitStatus.DIFFERENCES
    return Answer(document, chain(applied_lines(plan, applied, verified=True), proof_lines(plan, proof)), status)


def drill_tenant(settings: Settings, *, tenant: str, snapshot: str | None) -> Answer:
    """Restore a tenant's newest complete snapshot, or a named one, into a sandbox, and read it again."""
    data = open_data(settings)
    chosen = tenant_snapshot(data, tenant, snapshot)
    with ProgressDisplay() as display:
        drilled = drill(settings, data, chosen, now=datetime.now(UTC), on_progress=display.progress)
    if snapshot is None:  # the newest one, whose age Dagster shows
        tell_dagster(settings, "drill:drill_results", tenant, drilled, subject=f"the drill of {tenant}")
    document = {**msgspec.to_builtins(drilled), "snapshot": drilled.name}
    status = ExitStatus.PARTIAL if drilled.lost else ExitStatus.COMPLETE
    return Answer(document, _drill_lines(drilled), status if drilled.ok else ExitStatus.DIFFERENCES)


def _drill_lines(drilled: DrillResult) -> Iterator[RenderableType]:
    """The first problems; the verdict is the last line."""
    yield from first(drilled.problems, drilled.problems_count)
    if drilled.locations:
        entered = counted(drilled.locations, "location")
        yield f"{entered}: entered by the drill itself, since the API creates none; a person enters them before a restore."
    summary = f"{counted(drilled.records, 'record')} and {counted(drilled.files, 'file')} ({size(drilled.bytes)}) of {drilled.name}"
    summary += " were restored into a sandbox"
    if not drilled.ok:
        yield verdict("NOT PROVED:", f"{summary}; {counted(drilled.problems_count, 'problem')}.", good=False)
    elif drilled.lost:
        text = f"{summary}, read again, and equal in all that was sent; {drilled.lost}."
        yield verdict("Proved in part:", text, good=False)
    else:
        yield verdict(
            "Proved:", f"{summary}, read again, and equal in every field and byte; {duration(drilled.seconds)}."
        )
