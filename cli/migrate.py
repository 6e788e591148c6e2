"""`bookferry migrate`: plan, decide, apply, verify, status, undo. All print the result; plan, apply and verify tell Dagster of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from cli.backup import make_backup
from cli.boundary import stop_message
from cli.migration_output import (
    applied_lines,
    findings_lines,
    mapping_lines,
    plan_document,
    plan_lines,
    proof_lines,
    record_lines,
    status_lines,
    taken_over_lines,
    undone_lines,
)
from cli.options import names_in
from cli.output import Answer, plain_console
from cli.progress import ProgressDisplay
from cli.tell_dagster import tell_dagster
from pipelines.errors import BookferryError, ConfigurationError, ExitStatus
from pipelines.migration.apply.run import EVERYTHING, ApplyResult, Selection, as_json
from pipelines.migration.decide.take_over import take_over
from pipelines.migration.flow import Migration
from pipelines.migration.limits import NO_LIMITS, Limits
from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import Lacking
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.plan_folders import find_plan
from pipelines.migration.plan.scope import check_target
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.settings.settings import Settings

STOPPED = (
    "Stopped before the end. The journal contains what was written. `bookferry migrate apply {plan}` continues: it first looks up the "
    "writes without an answer, and writes nothing twice. `bookferry migrate status {plan}` shows the progress."
)

ACTIONS = ("create", "patch", "merge", "files")


def make_plan(
    settings: Settings,
    *,
    source: str,
    target: str,
    newest: bool = False,
    resources: str = "",
    invalid_identifiers: bool | None = None,
    **options: Any,
) -> Answer:
    """Plan a migration, from a new backup of a tenant, or from a snapshot. `options`: those of `Migration.plan`."""
    check_target(settings, target)
    settings.check_sign_in(target)  # a backup may take hours before the target is asked
    with migrating(settings) as (migration, display):
        if source in settings.tenants and not newest:
            if source == target:
                raise ConfigurationError(
                    f"'{target}' is source and target at once. To restore a snapshot: `bookferry restore SNAPSHOT {target}`"
                )
            source = make_backup(settings, source, display).snapshot.name
        options |= {"resources": names_in(resources), "sends_invalid": invalid_identifiers}
        plan = planned(migration, source, target, **options)
    is_partial = plan.facts.count(Action.QUARANTINED) + plan.facts.unfit or plan.facts.twins or plan.facts.unanswered
    return Answer(plan_document(plan), plan_lines(plan), ExitStatus.PARTIAL if is_partial else ExitStatus.COMPLETE)


def map_libraries(settings: Settings, *, source: str, target: str, resources: str) -> Answer:
    """Write the mapping file of two libraries, and say what a person must answer."""
    check_target(settings, target)
    with migrating(settings) as (migration, _display):
        snapshot = migration.find_source(source)
        mapping = migration.map(snapshot, target, names_in(resources))
    tenant = snapshot.manifest.tenant
    questions = mapping.questions()
    document = {
        "file": str(mapping.path),
        "resources": [*mapping.resources],
        "questions": [question._asdict() for question in questions],
    }
    status = ExitStatus.PARTIAL if questions else ExitStatus.COMPLETE
    return Answer(document, mapping_lines(mapping, tenant, target), status)


def decide_plan(settings: Settings, *, plan: str, file: Path) -> Answer:
    """Take the decisions in a file over into a plan; on several machines the others get them, too."""
    with Migration(settings) as migration:
        decided = find_plan(migration.data, plan)
        result = take_over(migration.data, decided, file)
    return Answer(result, taken_over_lines(decided, result))


def apply_plan(
    settings: Settings,
    *,
    plan: str,
    force: bool = False,
    limit: int | None = None,
    only: list[str] | None = None,
) -> Answer:
    """Write what a plan says. The name of the plan on the command line is its approval."""
    actions = names_in(",".join(only or ()))
    if unknown := [word for word in actions if word not in ACTIONS]:
        raise ConfigurationError(f"--only {', '.join(unknown)}: name {', '.join(ACTIONS)}, separated by commas.")
    with migrating(settings) as (migration, _display):
        approved = find_plan(migration.data, plan)
        with _showing_failures(migration), stop_message(STOPPED.format(plan=approved.name)):
            applied = applied_plan(migration, approved, _limits(force=force), Selection(limit, tuple(actions)))
    failed = applied.failed + applied.quarantined + applied.undecided + applied.lacking.total
    return Answer(
        {**as_json(applied), **_beside(approved, applied.lacking)},
        applied_lines(approved, applied),
        ExitStatus.PARTIAL if failed else ExitStatus.COMPLETE,
    )


def _limits(*, force: bool) -> Limits:
    return NO_LIMITS if force else Limits()


@contextmanager
def _showing_failures(migration: Migration) -> Iterator[None]:
    """After an error, print what was not written, or not taken back, until then."""
    try:
        yield
    except BookferryError:
        if migration.applied is not None:
            plain_console(sys.stderr).print(*findings_lines(migration.applied.findings), sep="\n")
        raise


def planned(migration: Migration, source: str, target: str, **options: Any) -> Plan:
    """Plan a migration, and tell Dagster of the plan. `options`: those of `Migration.plan`."""
    plan = migration.plan(migration.find_source(source), target, **options)
    tell_dagster(migration.settings, "migration:plan_results", plan, subject=f"plan {plan.name}")
    return plan


def applied_plan(migration: Migration, plan: Plan, limits: Limits, selection: Selection = EVERYTHING) -> ApplyResult:
    """Write a plan, and tell Dagster what was written."""
    applied = migration.apply(plan, limits=limits, selection=selection)
    subject = f"what was written of plan {plan.name}"
    tell_dagster(migration.settings, "migration:load_results", plan, applied, subject=subject)
    return applied


def verified(
    migration: Migration, plan: Plan, *, contents: bool = False, evidence: Path | None = None
) -> MigrationVerification:
    """Verify a plan, and tell Dagster of the verification."""
    verification = migration.verify(plan, contents=contents, evidence=evidence)
    subject, target = f"the verification of plan {plan.name}", plan.facts.target.tenant
    tell_dagster(migration.settings, "migration:proof_results", target, verification, subject=subject)
    return verification


def verify_plan(settings: Settings, *, plan: str, contents: bool = False, evidence: Path | None = None) -> Answer:
    """Read the target again and compare every record with the plan."""
    with migrating(settings) as (migration, _display):
        written = find_plan(migration.data, plan)
        proof = verified(migration, written, contents=contents, evidence=evidence.absolute() if evidence else None)
    status = ExitStatus.PARTIAL if proof.conflicts else ExitStatus.COMPLETE
    if not proof.equal:
        status = ExitStatus.DIFFERENCES
    document = {**msgspec.to_builtins(proof), **_beside(written, proof.lacking)}
    return Answer(document, proof_lines(written, proof), status)


def undo_plan(settings: Settings, *, plan: str, really: bool, force: bool) -> Answer:
    """Undo what a plan wrote, or with `really` unset only say what would be undone."""
    with migrating(settings) as (migration, _display):
        written = find_plan(migration.data, plan)
        with _showing_failures(migration):
            undone = migration.undo(written, really=really, limits=_limits(force=force))
    status = ExitStatus.PARTIAL if undone.left else ExitStatus.COMPLETE
    return Answer(undone, undone_lines(written, undone), status)


def show_status(settings: Settings, *, plan: str, record: int | None) -> Answer:
    """Show the progress of a plan, or one record in source, plan and target."""
    with Migration(settings) as migration:
        sealed = find_plan(migration.data, plan)
        if record is not None:
            view = migration.three_way(sealed, record)
            return Answer(view, record_lines(view))
        status = migration.status(sealed)
    document = {**msgspec.to_builtins(status), "complete": status.complete, **_beside(sealed, status.lacking)}
    is_partial = status.lacking.total or status.undecided or status.refused or status.parked
    return Answer(document, status_lines(sealed, status), ExitStatus.PARTIAL if is_partial else ExitStatus.COMPLETE)


def _beside(plan: Plan, lacking: Lacking) -> dict[str, Any]:
    """What the target does not get: all of it in numbers, the values by their fields, and records that wait for a decision."""
    return {
        "losses": losses_of(plan, lacking),
        "unsent": plan.facts.not_moved.by_field,
        "conflicts": plan.facts.count(Action.CONFLICT),
    }


@contextmanager
def migrating(settings: Settings) -> Iterator[tuple[Migration, ProgressDisplay]]:
    """Opens a migration with a progress display."""
    with (
        ProgressDisplay() as display,
        Migration(settings, on_progress=display.progress, on_wait=display.waiting) as migration,
    ):
        yield migration, display
