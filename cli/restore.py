"""`bookferry restore` and `bookferry drill`: restore a snapshot, and prove that a snapshot can be restored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.text import Text

from cli.migrate import applied_plan, migrating, planned, verified
from cli.migration_output import MOST_PRINTED, plan_document, print_applied, print_proof
from cli.output import Output, print_warning
from cli.progress import ProgressDisplay
from cli.snapshots import tenant_snapshot
from cli.tell_dagster import tell_dagster
from pipelines.drill import drill
from pipelines.errors import ExitStatus
from pipelines.humanize import counted, duration, size
from pipelines.migration.apply.run import as_json
from pipelines.migration.flow import AppliedPlan
from pipelines.migration.limits import Limits
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import Plan
from pipelines.migration.plan.scope import check_target
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.settings.settings import Settings
from pipelines.store.encryption import personal_keys
from pipelines.store.maintenance.results import DrillResult
from pipelines.store.stores import open_data

if TYPE_CHECKING:
    from assets_defs.events import Result


def restore_snapshot(
    settings: Settings,
    snapshot: str,
    tenant: str,
    output: Output,
    *,
    resources: Sequence[str],
    overwrite: bool,
) -> ExitStatus:
    """Plan, apply and verify. Creates what the library lacks, and deletes nothing."""
    check_target(settings, tenant)
    with migrating(settings) as (migration, _display):
        plan = planned(migration, snapshot, tenant, resources=resources, overwrite=overwrite, sends_invalid=True)
        result = applied_plan(migration, plan, Limits(touched_percent=100.0))
        proof = verified(migration, plan)
    document = {
        **plan_document(plan),
        **as_json(result.applied, result.requests),
        "verification": msgspec.to_builtins(proof),
    }
    output.result(document, lambda console: _print(console, plan, result, proof))
    if not proof.as_planned:
        return ExitStatus.DIFFERENCES
    applied = result.applied
    left = applied.failed + applied.quarantined + applied.lacking.total + len(applied.twins)
    left += plan.facts.count(Action.CONFLICT)
    return ExitStatus.PARTIAL if left else ExitStatus.COMPLETE


def _print(console: Console, plan: Plan, result: AppliedPlan, proof: MigrationVerification) -> None:
    print_applied(console, plan, result)
    print_proof(console, plan, proof)


def drill_tenant(settings: Settings, tenant: str, snapshot: str | None, output: Output) -> ExitStatus:
    """Restore a tenant's newest complete snapshot, or a named one, into a sandbox, and read it again."""
    data = open_data(settings, personal_keys(settings))
    chosen = tenant_snapshot(data, tenant, snapshot)
    with ProgressDisplay() as display:
        found = drill(settings, data, chosen, now=datetime.now(UTC), on_progress=display.progress)
    if snapshot is None:  # the newest one, whose age Dagster shows
        tell_dagster(settings, partial(_drill_results, tenant, found), f"the drill of {tenant}")
    output.result(drill_document(found), lambda console: print_drill(console, found))
    return ExitStatus.COMPLETE if found.ok else ExitStatus.DIFFERENCES


def _drill_results(tenant: str, drilled: DrillResult) -> Iterator[Result]:
    from assets_defs.drill import drill_results  # noqa: PLC0415  with Dagster

    return drill_results(tenant, drilled)


def drill_document(found: DrillResult) -> dict[str, Any]:
    """The JSON document of a drill. Scripts rely on its keys."""
    return {**msgspec.to_builtins(found), "snapshot": found.name}


def print_drill(console: Console, found: DrillResult) -> None:
    """Print the first problems; the verdict is the last line."""
    for problem in found.problems[:MOST_PRINTED]:
        print_warning(console, problem)
    if found.problems_count > MOST_PRINTED:
        console.print(f"and {found.problems_count - MOST_PRINTED:,} more; --json lists them")
    for message in found.left[:MOST_PRINTED]:
        console.print(f"Not restored automatically: {message}")
    what = (
        f"{counted(found.records, 'record')} and {counted(found.files, 'file')} ({size(found.bytes)}) of {found.name}"
    )
    if found.ok and found.lost:
        verdict = f" {what} were restored into a sandbox, read again, and equal in all that was sent; {found.lost}."
        console.print(Text.assemble(("Proved in part:", "bold yellow"), verdict))
    elif found.ok:
        verdict = f" {what} were restored into a sandbox, read again, and equal in every field and byte; {duration(found.seconds)}."
        console.print(Text.assemble(("Proved:", "bold green"), verdict))
    else:
        verdict = f" {what} were restored; {counted(found.problems_count, 'problem')}."
        console.print(Text.assemble(("NOT PROVED:", "bold yellow"), verdict))
