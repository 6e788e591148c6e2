"""`bookferry restore` and `bookferry drill`: put a snapshot back, and prove that one can be put back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from cli.jobs import run_step
from cli.migrate import made, migrating, plan_document, print_applied, print_plan, print_proof, proof_document
from cli.output import Output
from cli.progress import ProgressDisplay
from pipelines.drill import drill
from pipelines.errors import ExitStatus
from pipelines.humanize import counted, duration, size
from pipelines.migration.apply.run import Limits, as_json
from pipelines.migration.flow import Result
from pipelines.migration.model.plan import CONFLICT, Plan
from pipelines.migration.plan.build import check_target
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.settings.settings import Settings
from pipelines.store.encryption import personal_keys
from pipelines.store.maintenance.drills import Drill
from pipelines.store.stores import open_data

SHOWN = 10


def restore_snapshot(
    settings: Settings,
    snapshot: str,
    tenant: str,
    output: Output,
    *,
    resources: Sequence[str],
    overwrite: bool,
    plan_only: bool,
) -> ExitStatus:
    """Plan, apply and verify in one go: what the library lacks is created, and nothing of it is deleted."""
    check_target(settings, tenant)
    with migrating(settings) as (migration, _display):
        config = {"source": snapshot, "overwrite": overwrite, "resources": list(resources)}
        run_step(settings, migration, "plan_migration", (tenant, "migration_plan"), config)
        plan = made(migration.planned)
        if plan_only:
            output.result(plan_document(plan), lambda console: print_plan(console, plan))
            return ExitStatus.COMPLETE
        limits = Limits(touched_percent=100.0)
        approved = {
            "plan": plan.name,
            "approval": plan.facts.seal,
            "max_failures": limits.failures,
            "max_failures_percent": limits.failures_percent,
            "max_touched_percent": limits.touched_percent,
        }
        run_step(settings, migration, "apply_migration", (tenant, "migration"), approved)
        run_step(settings, migration, "verify_migration", (tenant, "migration_proof"), {"plan": plan.name})
        result, proof = made(migration.result), made(migration.proved)
    document = {
        **plan_document(plan),
        **as_json(result.applied, result.requests),
        "verification": proof_document(proof),
    }
    output.result(document, lambda console: _print(console, plan, result, proof))
    if not proof.equal:
        return ExitStatus.DIFFERENCES
    left = result.applied.failed + result.applied.quarantined + plan.facts.count(CONFLICT) + plan.facts.files.missing
    return ExitStatus.PARTIAL if left else ExitStatus.COMPLETE


def _print(console: Console, plan: Plan, result: Result, proof: MigrationVerification) -> None:
    print_applied(console, plan, result)
    print_proof(console, plan, proof)


def drill_tenant(settings: Settings, tenant: str, snapshot: str | None, output: Output) -> ExitStatus:
    """Restore a tenant's newest complete snapshot, or the one that is named, into a sandbox, and read it back."""
    data = open_data(settings, personal_keys(settings))
    chosen = data.find_snapshot(f"{tenant}/{snapshot.removeprefix(f'{tenant}/')}" if snapshot else tenant)
    with ProgressDisplay() as display:
        found = drill(settings, data, chosen, now=datetime.now(UTC), on_progress=display.progress)
    output.result(drill_document(found), lambda console: print_drill(console, found))
    return ExitStatus.COMPLETE if found.ok else ExitStatus.DIFFERENCES


def drill_document(found: Drill) -> dict[str, Any]:
    """What others may rely on."""
    return {**msgspec.to_builtins(found), "snapshot": found.name}


def print_drill(console: Console, found: Drill) -> None:
    """What was found, and the truth in the last line."""
    for problem in found.problems[:SHOWN]:
        console.print(Text.assemble(("!", "yellow"), f" {problem}"))
    if found.problems_count > SHOWN:
        console.print(f"and {found.problems_count - SHOWN:,} more; --json tells them")
    for one in found.left[:SHOWN]:
        console.print(f"Not by a program: {one}")
    what = (
        f"{counted(found.records, 'record')} and {counted(found.files, 'file')} ({size(found.bytes)}) of {found.name}"
    )
    if found.ok:
        told = f" {what} were put back into a sandbox, read again and equal, field by field and byte by byte; "
        console.print(Text.assemble(("Proved:", "bold green"), f"{told}{duration(found.seconds)}."))
    else:
        told = f" {what} were put back; {counted(found.problems_count, 'problem')}."
        console.print(Text.assemble(("NOT PROVED:", "bold yellow"), told))
