"""`bookferry migrate`: plan, decide, apply, verify, status, undo. All print the result; plan, apply and verify tell Dagster of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cli.backup import make_backup
from cli.boundary import stop_message
from cli.migration_output import (
    plan_document,
    print_applied,
    print_findings,
    print_mapping,
    print_plan,
    print_proof,
    print_record,
    print_status,
    print_taken_over,
    print_undone,
)
from cli.output import Output, plain_console
from cli.progress import ProgressDisplay
from cli.tell_dagster import tell_dagster
from pipelines.errors import BookferryError, ConfigurationError, ExitStatus
from pipelines.migration.apply.run import EVERYTHING, LIMITS, ApplyResult, Selection, as_json
from pipelines.migration.decide.take_over import take_over
from pipelines.migration.flow import Migration
from pipelines.migration.limits import Limits
from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import Lacking
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.plan_folders import find_plan
from pipelines.migration.plan.scope import check_target
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.settings.settings import Settings

if TYPE_CHECKING:
    from assets_defs.events import Result

STOPPED = (
    "Stopped before the end. The journal contains what was written. `bookferry migrate apply {plan}` continues: it first looks up the "
    "writes without an answer, and writes nothing twice. `bookferry migrate status {plan}` shows the progress."
)

ACTIONS = ("create", "patch", "merge", "files")


def make_plan(
    settings: Settings,
    source: str,
    target: str,
    output: Output,
    *,
    fresh: bool = True,
    **options: Any,
) -> ExitStatus:
    """Plan a migration, from a new backup of a tenant (`fresh`), or from a named snapshot. `options`: those of `Migration.plan`."""
    check_target(settings, target)
    with migrating(settings) as (migration, display):
        if source in settings.tenants and fresh:
            if source == target:
                raise ConfigurationError(
                    f"'{target}' is source and target at once. To restore a snapshot: `bookferry restore SNAPSHOT {target}`"
                )
            source = make_backup(settings, source, display).snapshot.name
        plan = planned(migration, source, target, **options)
    output.result(plan_document(plan), lambda console: print_plan(console, plan))
    return _planned_status(plan)


def map_libraries(
    settings: Settings, source: str, target: str, output: Output, *, resources: Sequence[str] = ()
) -> ExitStatus:
    """Write the mapping file of two libraries, and say what a person must answer."""
    check_target(settings, target)
    settings.check_sign_in(target)
    with migrating(settings) as (migration, _display):
        snapshot = migration.find_source(source)
        mapping = migration.map(snapshot, target, resources)
    tenant = snapshot.manifest.tenant
    questions = mapping.questions()
    output.result(
        {
            "file": str(mapping.path),
            "resources": [*mapping.resources],
            "questions": [question._asdict() for question in questions],
        },
        lambda console: print_mapping(console, mapping, tenant, target),
    )
    return ExitStatus.PARTIAL if questions else ExitStatus.COMPLETE


def decide_plan(settings: Settings, name: str, file: Path, output: Output) -> ExitStatus:
    """Take the decisions in a file over into a plan; on several machines the others get them, too."""
    with Migration(settings) as migration:
        plan = find_plan(migration.data, name)
        result = take_over(migration.data, plan, file)
    output.result(msgspec.to_builtins(result), lambda console: print_taken_over(console, plan, result))
    return ExitStatus.COMPLETE


def _planned_status(plan: Plan) -> ExitStatus:
    quarantined = plan.facts.count(Action.QUARANTINED) + plan.facts.unfit
    is_partial = quarantined or plan.facts.twins or plan.facts.unanswered
    return ExitStatus.PARTIAL if is_partial else ExitStatus.COMPLETE


def apply_plan(
    settings: Settings,
    name: str,
    output: Output,
    *,
    limits: Limits = LIMITS,
    limit: int | None = None,
    only: Sequence[str] = (),
) -> ExitStatus:
    """Write what a plan says. The name of the plan on the command line is its approval."""
    _check_only(only)
    with migrating(settings) as (migration, _display):
        plan = find_plan(migration.data, name)
        with _showing_failures(migration, output), stop_message(STOPPED.format(plan=plan.name)):
            applied = applied_plan(migration, plan, limits, Selection(limit, tuple(only)))
    output.result(
        {**as_json(applied), **_beside(plan, applied.lacking)},
        lambda console: print_applied(console, plan, applied),
    )
    failed = applied.failed + applied.quarantined + applied.undecided + applied.lacking.total
    return ExitStatus.PARTIAL if failed else ExitStatus.COMPLETE


@contextmanager
def _showing_failures(migration: Migration, output: Output) -> Iterator[None]:
    """After an error, print what was not written, or not taken back, until then."""
    try:
        yield
    except BookferryError:
        if migration.applied is not None and not output.as_json:
            print_findings(plain_console(sys.stderr), migration.applied.findings)
        raise


def planned(migration: Migration, source: str, target: str, **options: Any) -> Plan:
    """Plan a migration, and tell Dagster of the plan. `options`: those of `Migration.plan`."""
    migration.settings.check_sign_in(target)
    plan = migration.plan(migration.find_source(source), target, **options)
    _tell(migration, lambda assets: assets.plan_result(plan), f"plan {plan.name}")
    return plan


def applied_plan(migration: Migration, plan: Plan, limits: Limits, selection: Selection = EVERYTHING) -> ApplyResult:
    """Write a plan, and tell Dagster what was written."""
    migration.settings.check_sign_in(plan.facts.target.tenant)
    applied = migration.apply(plan, limits=limits, selection=selection)
    _tell(migration, lambda assets: assets.load_result(plan, applied), f"what was written of plan {plan.name}")
    return applied


def verified(
    migration: Migration, plan: Plan, *, contents: bool = False, evidence: Path | None = None
) -> MigrationVerification:
    """Verify a plan, and tell Dagster of the verification."""
    target = plan.facts.target.tenant
    migration.settings.check_sign_in(target)
    verification = migration.verify(plan, contents=contents, evidence=evidence)
    _tell(migration, lambda assets: assets.proof_result(target, verification), f"the verification of plan {plan.name}")
    return verification


def _tell(migration: Migration, result: Callable[[Any], Result], what: str) -> None:
    """Tell Dagster of a result, which `assets_defs.migration` makes."""

    def results() -> Iterator[Result]:
        from assets_defs import migration as assets  # noqa: PLC0415  with Dagster

        yield result(assets)

    tell_dagster(migration.settings, results, what)


def verify_plan(
    settings: Settings, name: str, output: Output, *, contents: bool = False, evidence: Path | None = None
) -> ExitStatus:
    """Read the target again and compare every record with the plan."""
    with migrating(settings) as (migration, _display):
        plan = find_plan(migration.data, name)
        proof = verified(migration, plan, contents=contents, evidence=evidence.absolute() if evidence else None)
    document = {**msgspec.to_builtins(proof), **_beside(plan, proof.lacking)}
    output.result(document, lambda console: print_proof(console, plan, proof))
    if not proof.equal:
        return ExitStatus.DIFFERENCES
    return ExitStatus.PARTIAL if proof.conflicts else ExitStatus.COMPLETE


def undo_plan(settings: Settings, name: str, output: Output, *, really: bool, limits: Limits = LIMITS) -> ExitStatus:
    """Undo what a plan wrote, or with `really` unset only print what would be undone."""
    with migrating(settings) as (migration, _display):
        plan = find_plan(migration.data, name)
        settings.check_sign_in(plan.facts.target.tenant)
        with _showing_failures(migration, output):
            undone = migration.undo(plan, really=really, limits=limits)
    output.result(msgspec.to_builtins(undone), lambda console: print_undone(console, plan, undone))
    return ExitStatus.PARTIAL if undone.left else ExitStatus.COMPLETE


def show_status(settings: Settings, name: str, output: Output, *, record: int | None) -> ExitStatus:
    """Show the progress of a plan, or one record in source, plan and target."""
    with Migration(settings) as migration:
        plan = find_plan(migration.data, name)
        if record is not None:
            settings.check_sign_in(plan.facts.target.tenant)
            view = migration.three_way(plan, record)
            output.result(msgspec.to_builtins(view), lambda console: print_record(console, view))
            return ExitStatus.COMPLETE
        status = migration.status(plan)
    document = {**msgspec.to_builtins(status), "complete": status.complete, **_beside(plan, status.lacking)}
    output.result(document, lambda console: print_status(console, plan, status))
    is_partial = status.lacking.total or status.undecided or status.refused or status.parked
    return ExitStatus.PARTIAL if is_partial else ExitStatus.COMPLETE


def _beside(plan: Plan, lacking: Lacking | None = None) -> dict[str, Any]:
    """What the target does not get: all of it in numbers, the values by their fields, and records that wait for a decision."""
    losses = msgspec.to_builtins(losses_of(plan, lacking))
    return {
        "losses": losses,
        "unsent": plan.facts.not_moved.by_field,
        "conflicts": plan.facts.count(Action.CONFLICT),
    }


def _check_only(words: Sequence[str]) -> None:
    if unknown := [word for word in words if word not in ACTIONS]:
        raise ConfigurationError(f"--only {', '.join(unknown)}: name {', '.join(ACTIONS)}, separated by commas.")


@contextmanager
def migrating(settings: Settings) -> Iterator[tuple[Migration, ProgressDisplay]]:
    """Opens a migration with a progress display."""
    with (
        ProgressDisplay() as display,
        Migration(settings, on_progress=display.progress, on_wait=display.waiting) as migration,
    ):
        yield migration, display
