"""`bookferry migrate`: plan, apply, verify, status, undo. Each runs a Dagster job, where one belongs to it, and tells what came of it."""

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
from pipelines.migration.flow import Migration, Result
from pipelines.migration.model.plan import (
    CONFLICT,
    CONFLICTS,
    CREATE,
    HTML,
    ISSUES,
    PATCH,
    QUARANTINED,
    SKIPPED,
    UNCHANGED,
    Plan,
)
from pipelines.migration.model.plan_folders import find_plan
from pipelines.migration.model.wording import headline
from pipelines.migration.plan.build import check_target
from pipelines.migration.report.status import PlanStatus, RecordView
from pipelines.migration.undo.run import UndoResult
from pipelines.migration.verify.run import MigrationVerification
from pipelines.settings.settings import Settings

STOPPED = (
    "Stopped before the end. What was written is in the journal, what was under way is looked up first, and nothing is written twice: "
    "`bookferry migrate apply {plan}` goes on, `bookferry migrate status {plan}` tells how far it is."
)

SHOWN = 10
"""Failures that are told one by one; `migrate status` and --json tell all."""

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
    """Plan a move: from a fresh backup of a tenant, or from the snapshot that is named."""
    check_target(settings, target)
    with migrating(settings) as (migration, display):
        if source in settings.tenants and fresh:
            if source == target:
                raise ConfigurationError(
                    f"'{target}' is source and target at once. To put a snapshot back into its library: bookferry restore SNAPSHOT {target}"
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
        plan = made(migration.planned)
    output.result(plan_document(plan), lambda console: print_plan(console, plan))
    return ExitStatus.DIFFERENCES if detailed and not plan.facts.empty else _planned_status(plan)


def _planned_status(plan: Plan) -> ExitStatus:
    quarantined = plan.facts.count(QUARANTINED) + plan.facts.unfit
    return ExitStatus.PARTIAL if quarantined else ExitStatus.COMPLETE


def plan_document(plan: Plan) -> dict[str, Any]:
    """The keys that others rely on, and what else a plan says of itself."""
    facts = plan.facts
    ends = datetime.now(UTC) + timedelta(minutes=facts.minutes)
    return {
        "plan": facts.plan,
        "create": facts.count(CREATE),
        "patch": facts.count(PATCH),
        "unchanged": facts.count(UNCHANGED),
        "conflict": facts.count(CONFLICT),
        "quarantined": facts.count(QUARANTINED) + facts.unfit,
        "skipped": facts.count(SKIPPED),
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
    """What would be written, where to look, and what to do next."""
    facts = plan.facts
    for note in facts.notes:
        console.print(Text.assemble(("!", "yellow"), f" {note}"))
    for line in headline(facts, datetime.now(UTC)):
        console.print(line)
    console.print(f"For librarians: {plan.path(HTML)}")
    console.print(f"Issues: {plan.path(ISSUES)}")
    if facts.count(CONFLICT):
        console.print(
            f"{counted(facts.count(CONFLICT), 'conflict')} to decide in {plan.path(CONFLICTS)}; the next plan honours what you write there"
        )
    if facts.empty:
        console.print(f"Plan {plan.name} is empty: '{facts.target.tenant}' has all that can be moved.")
    else:
        console.print(f"Nothing was written yet. To write it: bookferry migrate apply {plan.name}")


def apply_plan(
    settings: Settings, name: str, output: Output, *, limits: Limits, limit: int | None, only: Sequence[str]
) -> ExitStatus:
    """Write what a plan says. Giving its name is the approval."""
    actions, ids = _only(only)
    with migrating(settings) as (migration, _display):
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
            if migration.result is not None and not output.as_json:
                print_failures(output, migration.result.applied)
            raise
        except BaseException as interruption:
            if not is_stop(interruption):
                raise
            stop = StopRequest()
            stop.told = STOPPED.format(plan=plan.name)
            raise stop from None
        result = made(migration.result)
    output.result(
        {"plan": plan.name, **as_json(result.applied, result.requests)},
        lambda console: print_applied(console, plan, result),
    )
    failed = result.applied.failed + result.applied.quarantined
    return ExitStatus.PARTIAL if failed else ExitStatus.COMPLETE


def verify_plan(settings: Settings, name: str, output: Output, *, contents: bool, evidence: Path | None) -> ExitStatus:
    """Read the target again and hold every record against the plan."""
    with migrating(settings) as (migration, _display):
        plan = find_plan(migration.data, name)
        config = {"plan": plan.name, "contents": contents, "evidence": str(evidence.absolute()) if evidence else ""}
        run_step(settings, migration, "verify_migration", (plan.facts.target.tenant, "migration_proof"), config)
        proof = made(migration.proved)
    output.result({"plan": plan.name, **proof_document(proof)}, lambda console: print_proof(console, plan, proof))
    return ExitStatus.COMPLETE if proof.equal else ExitStatus.DIFFERENCES


def proof_document(proof: MigrationVerification) -> dict[str, Any]:
    """The keys that others rely on, and the first findings."""
    return cast("dict[str, Any]", msgspec.to_builtins(proof))


def print_proof(console: Console, plan: Plan, proof: MigrationVerification) -> None:
    """What was found, and the truth in the last line."""
    for one in proof.findings[:SHOWN]:
        console.print(Text.assemble(("!", "yellow"), f" {one}"))
    if not proof.equal:
        console.print(f"All of them, with what was wanted and what was found: {plan.path(proof.table)}")
    what = f"{counted(proof.compared, 'record')} compared, {counted(proof.files_checked, 'file')} checked"
    if proof.equal:
        told = f" {what}: '{plan.facts.target.tenant}' holds what plan {plan.name} says."
        console.print(Text.assemble(("Equal:", "bold green"), told))
    else:
        found = f"{proof.missing:,} missing, {proof.duplicated:,} duplicated, {proof.differing:,} differing"
        console.print(Text.assemble(("NOT EQUAL:", "bold yellow"), f" {what}: {found}."))


def undo_plan(settings: Settings, name: str, output: Output, *, really: bool) -> ExitStatus:
    """Take back what a plan wrote, or tell what would be taken back."""
    with migrating(settings) as (migration, _display):
        plan = find_plan(migration.data, name)
        settings.check_sign_in(plan.facts.target.tenant)
        undone = migration.undo(plan, really=really)
    document = cast("dict[str, Any]", msgspec.to_builtins(undone))
    output.result(document, lambda console: print_undone(console, plan, undone))
    return ExitStatus.PARTIAL if undone.left else ExitStatus.COMPLETE


def print_undone(console: Console, plan: Plan, undone: UndoResult) -> None:
    """What was taken back, what was left and why, and the truth in the last line."""
    for one in undone.examples[:SHOWN]:
        console.print(
            Text.assemble(("!", "yellow"), f" {_record(one.resource, one.target_id, one.title)} is left: {one.reason}")
        )
    if undone.left > SHOWN:
        console.print(f"and {undone.left - SHOWN:,} more; --json tells them")
    what = f"{undone.deleted:,} deleted, {undone.reverted:,} reverted, {counted(undone.files_deleted, 'file')} detached"
    what += f", {undone.gone:,} gone before, {undone.left:,} left"
    if undone.really:
        console.print(
            f"Undone: {what}; {counted(undone.requests, 'request')}. '{plan.facts.target.tenant}' without plan {plan.name}."
        )
    else:
        console.print(f"Would be: {what}. Nothing was changed. To do it: bookferry migrate undo {plan.name} --really")


def tell_status(settings: Settings, name: str, output: Output, *, record: int | None) -> ExitStatus:
    """How far a plan is, or one record of it from all sides."""
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
    """What is done, what is left, what is stuck, when it was last proved."""
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
        console.print(f"and {len(status.problems) - SHOWN:,} more; --json tells them")
    if (proof := status.verification) is not None:
        console.print(f"Last verified {proof.verified_at}: {'equal' if proof.equal else 'NOT equal'}.")
    stuck = f"{status.refused:,} refused, {status.parked:,} parked, {status.unanswered:,} never answered"
    if status.complete:
        console.print(f"Plan {status.plan} is written; {stuck}.")
    else:
        left = f"{counted(status.requests_left, 'request')}, {duration(status.minutes_left * 60)} at the budget"
        console.print(f"Plan {status.plan}: {left} left; {stuck}. To go on: bookferry migrate apply {status.plan}")


def print_record(console: Console, view: RecordView) -> None:
    """A record: in the source, as wanted, as written, and as the target has it now."""
    rows = [
        (one.field, one.source, one.wanted, one.held, one.live, "" if one.equal else "differs") for one in view.fields
    ]
    print_table(console, ("field", "source", "wanted", "written", "now", ""), rows, right=())
    there = f"is {view.resource} {view.target_id} of the target" if view.is_there else "is not in the target"
    message = f": {view.message}" if view.message else ""
    console.print(f"{view.resource} {view.source_id} {there}; {view.action}, {view.state}{message}")


def _record(resource: str, number: int | None, title: str | None) -> str:
    """A record in a message; of people, who have none here, without a name."""
    return f"{resource} {number} ({title})" if title else f"{resource} {number}"


def _only(only: Sequence[str]) -> tuple[list[str], list[int]]:
    """What of a plan is wanted: create, patch, files, or the ids of records in the source."""
    words = [word.strip() for one in only for word in one.split(",") if word.strip()]
    ids = [int(word) for word in words if word.isdecimal()]
    actions = [word for word in words if word in ACTIONS]
    if unknown := [word for word in words if not word.isdecimal() and word not in ACTIONS]:
        raise ConfigurationError(
            f"--only {', '.join(unknown)}: name create, patch or files, or ids of publications in the source, separated by commas."
        )
    return actions, ids


def print_failures(output: Output, applied: ApplyResult) -> None:
    """The first of those that failed, on stderr."""
    for one in applied.failures[:SHOWN]:
        output.say(f"! {one.resource} {one.source_id}: {one.problem}")


def print_applied(console: Console, plan: Plan, result: Result) -> None:
    """What was written, and the truth in the last line."""
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
        told = Text.assemble(("Complete:", "bold green"), f" {what}. Prove it: bookferry migrate verify {plan.name}")
    elif applied.failed or applied.quarantined:
        failed = f"{applied.failed:,} failed, {applied.quarantined:,} quarantined"
        told = Text.assemble(
            ("PARTIAL:", "bold yellow"), f" {what}; {failed}. {plan.path(ISSUES)} and `status` list them."
        )
    else:
        told = Text(f"So far: {what}; {counted(applied.left, 'record')} left of plan {plan.name}, as you asked.")
    console.print(told)


@contextmanager
def migrating(settings: Settings) -> Iterator[tuple[Migration, ProgressDisplay]]:
    """A migration whose progress is shown."""
    with (
        ProgressDisplay() as display,
        Migration(settings, on_progress=display.progress, on_wait=display.waiting) as migration,
    ):
        yield migration, display


def made(found: _T | None) -> _T:
    """What a job made."""
    if found is None:
        raise BookferryError("The job ended without a result. `bookferry ui` shows its run.")
    return found
