"""`bookferry migrate`: plan, apply, verify, status, undo. The first three run a Dagster job; all print the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from rich.console import Console
from rich.text import Text

from cli.boundary import is_stop
from cli.jobs import run_backup, run_step
from cli.output import Output, print_table, table_of
from cli.progress import ProgressDisplay
from cli.stop_signals import StopRequest
from pipelines.backup.flow import checked_resources
from pipelines.errors import BookferryError, ConfigurationError, ExitStatus
from pipelines.humanize import counted, duration
from pipelines.migration.apply.run import ApplyResult, Limits, as_json
from pipelines.migration.flow import AppliedPlan, Migration, MigrationResults
from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import CONFLICTS, HTML, ISSUES, Plan
from pipelines.migration.model.plan_folders import find_plan
from pipelines.migration.model.wording import headline
from pipelines.migration.plan.scope import check_target
from pipelines.migration.report.status import PlanStatus, RecordView
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.settings.settings import Settings

STOPPED = (
    "Stopped before the end. The journal contains what was written. `bookferry migrate apply {plan}` continues: it first looks up the "
    "writes without an answer, and writes nothing twice. `bookferry migrate status {plan}` shows the progress."
)

SHOWN = 10
"""Failures that are listed; `migrate status` and --json list all."""

_T = TypeVar("_T")

ACTIONS = ("create", "patch", "files")


def make_plan(
    settings: Settings,
    source: str,
    target: str,
    output: Output,
    *,
    resources: Sequence[str],
    fresh: bool,
    detailed: bool,
) -> ExitStatus:
    """Plan a migration, from a new backup of a tenant or from a named snapshot."""
    check_target(settings, target)
    results = MigrationResults()
    with migrating(settings, results) as (migration, display):
        if source in settings.tenants and fresh:
            if source == target:
                raise ConfigurationError(
                    f"'{target}' is source and target at once. To restore a snapshot: bookferry restore SNAPSHOT {target}"
                )
            read = checked_resources(settings.tenant(source), [])
            source = run_backup(settings, source, read, display).snapshot.name
        run_step(
            settings,
            migration,
            "plan_migration",
            (target, "migration_plan"),
            {"source": source, "resources": list(resources)},
        )
        plan = made(results.plan)
    output.result(plan_document(plan), lambda console: print_plan(console, plan))
    return ExitStatus.DIFFERENCES if detailed and not plan.facts.empty else _planned_status(plan)


def _planned_status(plan: Plan) -> ExitStatus:
    quarantined = plan.facts.count(Action.QUARANTINED) + plan.facts.unfit
    return ExitStatus.PARTIAL if quarantined else ExitStatus.COMPLETE


def plan_document(plan: Plan) -> dict[str, Any]:
    """The JSON document of a plan. Scripts rely on its keys."""
    facts = plan.facts
    ends = datetime.now(UTC) + timedelta(minutes=facts.minutes)
    return {
        "plan": facts.plan,
        "create": facts.count(Action.CREATE),
        "patch": facts.count(Action.PATCH),
        "unchanged": facts.count(Action.UNCHANGED),
        "conflict": facts.count(Action.CONFLICT),
        "quarantined": facts.count(Action.QUARANTINED) + facts.unfit,
        "skipped": facts.count(Action.SKIPPED),
        "files": facts.files.upload,
        "file_counts": cast("dict[str, int]", msgspec.to_builtins(facts.files)),
        "requests": facts.requests,
        "minutes": round(facts.minutes, 2),
        "finishes_at": ends.isoformat(timespec="seconds"),
        "resources": facts.counts,
        "source": f"{facts.source.tenant}/{facts.source.snapshot}",
        "target": facts.target.tenant,
        "mails": facts.mails,
        "decisions": facts.decisions,
        "approval": facts.approval,
        "path": str(plan.folder),
        "notes": facts.notes,
    }


def print_plan(console: Console, plan: Plan) -> None:
    """Print what the plan would write, where its pages are, and the next step."""
    facts = plan.facts
    for note in facts.notes:
        console.print(Text.assemble(("!", "yellow"), f" {note}"))
    for line in headline(facts, datetime.now(UTC)):
        console.print(line)
    console.print(f"For librarians: {plan.path(HTML)}")
    console.print(f"Issues: {plan.path(ISSUES)}")
    if facts.count(Action.CONFLICT):
        console.print(
            f"{counted(facts.count(Action.CONFLICT), 'conflict')} to decide in {plan.path(CONFLICTS)}; the next plan applies your "
            "decisions"
        )
    if facts.empty:
        console.print(f"Plan {plan.name} is empty: '{facts.target.tenant}' has everything that can be migrated.")
    else:
        console.print(f"Nothing has been written yet. To write it: bookferry migrate apply {plan.name}")


def apply_plan(
    settings: Settings, name: str, output: Output, *, limits: Limits, limit: int | None, only: Sequence[str]
) -> ExitStatus:
    """Write what a plan says. The name of the plan on the command line is its approval."""
    actions, ids = _parse_only(only)
    results = MigrationResults()
    with migrating(settings, results) as (migration, _display):
        plan = find_plan(migration.data, name)
        config = {
            "plan": plan.name,
            "approval": plan.facts.seal,
            "limit": limit or 0,
            "actions": actions,
            "ids": ids,
            "max_failures": limits.failures,
            "max_failures_percent": limits.failures_percent,
            "max_touched_percent": limits.touched_percent,
        }
        key = (plan.facts.target.tenant, "migration")
        try:
            run_step(settings, migration, "apply_migration", key, config)
        except BookferryError:
            if results.apply is not None and not output.as_json:
                print_failures(output, results.apply.applied)
            raise
        except BaseException as interruption:
            if not is_stop(interruption):
                raise
            stop = StopRequest()
            stop.message = STOPPED.format(plan=plan.name)
            raise stop from None
        result = made(results.apply)
    output.result(
        {"plan": plan.name, **as_json(result.applied, result.requests)},
        lambda console: print_applied(console, plan, result),
    )
    failed = result.applied.failed + result.applied.quarantined
    return ExitStatus.PARTIAL if failed else ExitStatus.COMPLETE


def verify_plan(settings: Settings, name: str, output: Output, *, contents: bool, evidence: Path | None) -> ExitStatus:
    """Read the target again and compare every record with the plan."""
    results = MigrationResults()
    with migrating(settings, results) as (migration, _display):
        plan = find_plan(migration.data, name)
        config = {"plan": plan.name, "contents": contents, "evidence": str(evidence.absolute()) if evidence else ""}
        run_step(settings, migration, "verify_migration", (plan.facts.target.tenant, "migration_proof"), config)
        proof = made(results.verification)
    output.result({"plan": plan.name, **proof_document(proof)}, lambda console: print_proof(console, plan, proof))
    return ExitStatus.COMPLETE if proof.equal else ExitStatus.DIFFERENCES


def proof_document(proof: MigrationVerification) -> dict[str, Any]:
    """The JSON document of a verification. Scripts rely on its keys."""
    return cast("dict[str, Any]", msgspec.to_builtins(proof))


def print_proof(console: Console, plan: Plan, proof: MigrationVerification) -> None:
    """Print the first findings; the verdict is the last line."""
    for one in proof.findings[:SHOWN]:
        console.print(Text.assemble(("!", "yellow"), f" {one}"))
    if not proof.equal:
        console.print(f"All findings, with expected and actual values: {plan.path(proof.table)}")
    what = f"{counted(proof.compared, 'record')} compared, {counted(proof.files_checked, 'file')} checked"
    if proof.equal:
        verdict = f" {what}: '{plan.facts.target.tenant}' equals plan {plan.name}."
        console.print(Text.assemble(("Equal:", "bold green"), verdict))
    else:
        problems = f"{proof.missing:,} missing, {proof.duplicated:,} duplicated, {proof.differing:,} differing"
        console.print(Text.assemble(("NOT EQUAL:", "bold yellow"), f" {what}: {problems}."))


def undo_plan(settings: Settings, name: str, output: Output, *, really: bool) -> ExitStatus:
    """Undo what a plan wrote, or with `really` unset only print what would be undone."""
    with migrating(settings) as (migration, _display):
        plan = find_plan(migration.data, name)
        settings.check_sign_in(plan.facts.target.tenant)
        undone = migration.undo(plan, really=really)
    document = cast("dict[str, Any]", msgspec.to_builtins(undone))
    output.result(document, lambda console: print_undone(console, plan, undone))
    return ExitStatus.PARTIAL if undone.left else ExitStatus.COMPLETE


def print_undone(console: Console, plan: Plan, undone: UndoResult) -> None:
    """Print what was undone, and what was left and why; the verdict is the last line."""
    for one in undone.examples[:SHOWN]:
        console.print(
            Text.assemble(("!", "yellow"), f" {_record(one.resource, one.target_id, one.title)} is left: {one.reason}")
        )
    if undone.left > SHOWN:
        console.print(f"and {undone.left - SHOWN:,} more; --json lists them")
    what = f"{undone.deleted:,} deleted, {undone.reverted:,} reverted, {counted(undone.files_deleted, 'file')} detached"
    what += f", {undone.gone:,} gone before, {undone.left:,} left"
    if undone.really:
        console.print(
            f"Undone: {what}; {counted(undone.requests, 'request')}. '{plan.facts.target.tenant}' without plan {plan.name}."
        )
    else:
        console.print(
            f"It would be: {what}. Nothing was changed. To do it: bookferry migrate undo {plan.name} --really"
        )


def show_status(settings: Settings, name: str, output: Output, *, record: int | None) -> ExitStatus:
    """Show the progress of a plan, or one record in source, plan and target."""
    with Migration(settings) as migration:
        plan = find_plan(migration.data, name)
        if record is not None:
            settings.check_sign_in(plan.facts.target.tenant)
            view = migration.three_way(plan, record)
            output.result(
                cast("dict[str, Any]", msgspec.to_builtins(view)), lambda console: print_record(console, view)
            )
            return ExitStatus.COMPLETE
        status = migration.status(plan)
    document = {**cast("dict[str, Any]", msgspec.to_builtins(status)), "complete": status.complete}
    output.result(document, lambda console: print_status(console, status))
    return ExitStatus.COMPLETE


def print_status(console: Console, status: PlanStatus) -> None:
    """Print what is done, what remains, what is stuck, and the last verification."""
    planned, done = status.planned, status.done
    work = (("created", "create"), ("patched", "patch"), ("files uploaded", "files"), ("covers set", "covers"))
    rows = [(words, f"{getattr(done, name):,}", f"{getattr(planned, name):,}") for words, name in work]
    console.print(table_of(("", "done", "planned"), rows, right=("done", "planned")))
    for one in status.problems[:SHOWN]:
        state = "never answered" if one.state == "intended" else one.state
        console.print(
            Text.assemble(("!", "yellow"), f" {one.resource} {one.source_id}, {one.kind}, {state}: {one.message}")
        )
    if len(status.problems) > SHOWN:
        console.print(f"and {len(status.problems) - SHOWN:,} more; --json lists them")
    if (proof := status.verification) is not None:
        console.print(f"Last verified {proof.verified_at}: {'equal' if proof.equal else 'NOT equal'}.")
    stuck = f"{status.refused:,} refused, {status.parked:,} parked, {status.unanswered:,} never answered"
    if status.complete:
        console.print(f"Plan {status.plan} is written; {stuck}.")
    else:
        left = f"{counted(status.requests_left, 'request')}, {duration(status.minutes_left * 60)} at the budget"
        console.print(f"Plan {status.plan}: {left} left; {stuck}. To go on: bookferry migrate apply {status.plan}")


def print_record(console: Console, view: RecordView) -> None:
    """Print a record: in the source, in the plan, as written, and in the target now."""
    rows = [
        (one.field, one.source, one.wanted, one.held, one.live, "" if one.equal else "differs") for one in view.fields
    ]
    print_table(console, ("field", "source", "wanted", "written", "now", ""), rows, right=())
    there = f"is {view.resource} {view.target_id} of the target" if view.is_there else "is not in the target"
    message = f": {view.message}" if view.message else ""
    console.print(f"{view.resource} {view.source_id} {there}; {view.action}, {view.state}{message}")


def _record(resource: str, number: int | None, title: str | None) -> str:
    """A record in a message; people have no title here."""
    return f"{resource} {number} ({title})" if title else f"{resource} {number}"


def _parse_only(only: Sequence[str]) -> tuple[list[str], list[int]]:
    """The actions (create, patch, files) and the ids of source records in the option --only."""
    words = [word.strip() for option in only for word in option.split(",") if word.strip()]
    ids = [int(word) for word in words if word.isdecimal()]
    actions = [word for word in words if word in ACTIONS]
    if unknown := [word for word in words if not word.isdecimal() and word not in ACTIONS]:
        raise ConfigurationError(
            f"--only {', '.join(unknown)}: name create, patch or files, or ids of publications in the source, separated by commas."
        )
    return actions, ids


def print_failures(output: Output, applied: ApplyResult) -> None:
    """Print the first failures, on stderr."""
    for one in applied.failures[:SHOWN]:
        output.say(f"! {one.resource} {one.source_id}: {one.problem}")


def print_applied(console: Console, plan: Plan, result: AppliedPlan) -> None:
    """Print what was written; the verdict is the last line."""
    applied = result.applied
    for one in applied.failures[:SHOWN]:
        console.print(
            Text.assemble(("!", "yellow"), f" {_record(one.resource, one.source_id, one.title)}: {one.problem}")
        )
    if applied.failed > SHOWN:
        console.print(f"and {applied.failed - SHOWN:,} more: bookferry migrate status {plan.name}")
    what = f"{applied.created:,} created, {applied.patched:,} patched, {applied.unchanged:,} unchanged"
    what += f", {counted(applied.files_uploaded, 'file')} uploaded; {counted(result.requests, 'request')}"
    if applied.complete:
        verdict = Text.assemble(("Complete:", "bold green"), f" {what}. Next: bookferry migrate verify {plan.name}")
    elif applied.failed or applied.quarantined:
        failed = f"{applied.failed:,} failed, {applied.quarantined:,} quarantined"
        verdict = Text.assemble(
            ("PARTIAL:", "bold yellow"), f" {what}; {failed}. {plan.path(ISSUES)} and `status` list them."
        )
    else:
        verdict = Text(f"So far: {what}; {counted(applied.left, 'record')} of plan {plan.name} remain, as you asked.")
    console.print(verdict)


@contextmanager
def migrating(
    settings: Settings, results: MigrationResults | None = None
) -> Iterator[tuple[Migration, ProgressDisplay]]:
    """A migration with a progress display."""
    with (
        ProgressDisplay() as display,
        Migration(settings, results=results, on_progress=display.progress, on_wait=display.waiting) as migration,
    ):
        yield migration, display


def made(found: _T | None) -> _T:
    """The result of a job."""
    if found is None:
        raise BookferryError("The job ended without a result. `bookferry ui` shows its run.")
    return found
