"""What `bookferry migrate` prints: a plan, its application, its verification, its status, and an undo."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from cli.command_lines import command_line
from cli.output import Output, print_table, print_warning
from pipelines.humanize import counted, duration
from pipelines.migration.apply.run import ApplyResult
from pipelines.migration.decide.take_over import TakenOver
from pipelines.migration.flow import AppliedPlan
from pipelines.migration.model.actions import Action
from pipelines.migration.model.lacking import Lacking, lacking_of
from pipelines.migration.model.losses import Loss, counts_by_path, in_short, losses_of
from pipelines.migration.model.plan import CONFLICTS, HTML, ISSUES, Plan
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.model.wording import headline
from pipelines.migration.report.status import PlanStatus, RecordView
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.verify.verdict import MigrationVerification

MOST_PRINTED = 10
"""Failures, findings or problems that are printed; `migrate status` and --json list all."""


def plan_document(plan: Plan) -> dict[str, Any]:
    """The JSON document of a plan. Scripts rely on its keys."""
    facts = plan.facts
    ends = datetime.now(UTC) + timedelta(minutes=facts.minutes)
    return {
        "plan": facts.plan,
        "losses": msgspec.to_builtins(losses_of(plan)),
        "create": facts.count(Action.CREATE),
        "patch": facts.count(Action.PATCH),
        "merge": facts.count(Action.MERGE),
        "unchanged": facts.count(Action.UNCHANGED),
        "conflict": facts.count(Action.CONFLICT),
        "quarantined": facts.count(Action.QUARANTINED) + facts.unfit,
        "skipped": facts.count(Action.SKIPPED),
        "files": facts.files.upload,
        "file_counts": msgspec.to_builtins(facts.files),
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
        "lacking": msgspec.to_builtins(lacking_of(plan)),
        "unsent": counts_by_path(facts.unsent),
        "twins": [msgspec.to_builtins(twin) for twin in facts.twins or ()],
    }


def print_plan(console: Console, plan: Plan) -> None:
    """Print what will not arrive, what the plan would write, where its pages are, and the next step."""
    facts, losses = plan.facts, losses_of(plan)
    print_headline(console, plan, losses)
    for note in facts.notes:
        print_warning(console, note)
    console.print(f"For librarians: {plan.path(HTML)}")
    console.print(f"Issues: {plan.path(ISSUES)}")
    if facts.count(Action.CONFLICT):
        console.print(
            f"{counted(facts.count(Action.CONFLICT), 'conflict')} to decide in the page, or in {plan.path(CONFLICTS)}; the next plan "
            "applies your decisions"
        )
    if facts.empty:
        all_but = f" {_sentence(in_short(losses))}" if losses else ""
        console.print(f"Plan {plan.name} is empty: it has nothing to write into '{facts.target.tenant}'.{all_but}")
    else:
        console.print(f"Nothing has been written yet. To write it: {command_line('migrate', 'apply', plan.name)}")


def print_headline(console: Console, plan: Plan, losses: Sequence[Loss]) -> None:
    """Print what will not arrive, and then what the plan would write."""
    if losses:
        console.print(f"Will not arrive in '{plan.facts.target.tenant}':")
    for loss in losses:
        print_warning(console, str(loss))
    for line in headline(plan.facts, datetime.now(UTC)):
        console.print(line)


def print_taken_over(console: Console, plan: Plan, taken: TakenOver) -> None:
    """Print what was decided, what is left, and the next step."""
    facts = plan.facts
    if taken.decisions:
        what = ", ".join(f"{number:,} {decision}" for decision, number in taken.decisions.items())
        before = [f"{taken.new:,} new", f"{taken.changed:,} changed"] + (
            [f"{taken.withdrawn:,} withdrawn"] if taken.withdrawn else []
        )
        console.print(f"{counted(taken.decided, 'decision')}: {what} ({', '.join(before)}).")
    else:
        print_warning(console, f"The file decides nothing{', and withdraws all' if taken.withdrawn else ''}.")
    left = f"{counted(taken.left, 'conflict')} left to decide." if taken.left else "No conflict is left to decide."
    others = [resource for resource in facts.resources if resource != PUBLICATIONS]
    options = ["--resources", ",".join(others)] if others else []
    command = command_line("migrate", "plan", facts.source.tenant, facts.target.tenant, "--newest", *options)
    console.print(f"{left} Next, a plan that follows the decisions: {command}")


def print_failures(output: Output, applied: ApplyResult) -> None:
    """Print the first failures, on stderr."""
    for failure in applied.failures[:MOST_PRINTED]:
        output.say(f"! {failure.resource} {failure.source_id}: {failure.problem}")


def print_applied(console: Console, plan: Plan, result: AppliedPlan, *, verified: bool = False) -> None:
    """Print what was written; the verdict is the last line. `verified`: whether the result of a verification follows."""
    applied = result.applied
    proposed = "" if verified else f" Next: {command_line('migrate', 'verify', plan.name)}"
    for failure in applied.failures[:MOST_PRINTED]:
        print_warning(console, f"{_record(failure.resource, failure.source_id, failure.title)}: {failure.problem}")
    if applied.failed > MOST_PRINTED:
        console.print(f"and {applied.failed - MOST_PRINTED:,} more: {command_line('migrate', 'status', plan.name)}")
    print_lacking(console, applied.lacking)
    losses = losses_of(plan, applied.lacking)
    lost = f"; {in_short(losses)}" if losses else ""
    for twin in applied.twins[:MOST_PRINTED]:
        print_warning(console, str(twin))
    adopted = f"{applied.adopted:,} adopted, " if applied.adopted else ""
    adopted += f"{applied.merged:,} merged, " if applied.merged else ""
    adopted += f"{applied.linked:,} linked, " if applied.linked else ""
    what = f"{applied.created:,} created, {adopted}{applied.patched:,} patched, {applied.unchanged:,} unchanged"
    what += f", {counted(applied.files_uploaded, 'file')} uploaded; {counted(result.requests, 'request')}"
    is_partial = applied.failed or applied.quarantined or applied.lacking.total or applied.twins
    if applied.complete:
        word = ("Complete as planned:", "bold yellow") if losses else ("Complete:", "bold green")
        verdict = Text.assemble(word, f" {what}{lost}.{proposed}")
    elif is_partial or (applied.undecided and not applied.left):
        failed = f"{applied.failed:,} failed, {applied.quarantined:,} quarantined"
        if applied.twins:
            failed += f", {len(applied.twins):,} there twice"
        remedy = "Delete what is superfluous, then apply the plan again."
        if applied.failed or applied.quarantined or applied.lacking.total:
            remedy = f"{plan.path(ISSUES)} and `status` list them."
        elif not applied.twins:
            remedy = f"Decide in {plan.path(HTML)}, and make a new plan."
        verdict = Text.assemble(("PARTIAL:", "bold yellow"), f" {what}; {failed}{lost}. {remedy}")
    else:
        left = f"{counted(applied.left, 'record')} of plan {plan.name} remain, as you asked"
        if applied.waiting:
            left += f", {applied.waiting:,} of them because they refer to records that remain"
        verdict = Text(f"So far: {what}; {left}{lost}.")
    console.print(verdict)


def print_proof(console: Console, plan: Plan, proof: MigrationVerification) -> None:
    """Print the first findings; the verdict is the last line."""
    for finding in proof.findings[:MOST_PRINTED]:
        print_warning(console, str(finding))
    lost = in_short(losses_of(plan, proof.lacking))
    if not proof.equal:
        console.print(f"All findings, with expected and actual values: {plan.path(proof.table)}")
    what = f"{counted(proof.compared, 'record')} compared, {counted(proof.files_checked, 'file')} checked"
    if proof.equal and lost:
        verdict = f" {what}: '{plan.facts.target.tenant}' has what plan {plan.name} sends; {lost}."
        console.print(Text.assemble(("Equal as planned:", "bold yellow"), verdict))
    elif proof.equal:
        verdict = f" {what}: '{plan.facts.target.tenant}' equals plan {plan.name}."
        console.print(Text.assemble(("Equal:", "bold green"), verdict))
    else:
        problems = f"{proof.missing:,} missing, {proof.duplicated:,} duplicated, {proof.differing:,} differing"
        if proof.as_planned:
            problems += f". The target has all that the plan could send; it could not send {proof.lacking}"
        elif proof.lacking.total:
            problems += f". Among them is what the plan could not send: {proof.lacking}"
        problems += f"; {lost}" if lost else ""
        console.print(Text.assemble(("NOT EQUAL:", "bold yellow"), f" {what}: {problems}."))


def print_undone(console: Console, plan: Plan, undone: UndoResult) -> None:
    """Print what was undone, and what was left and why; the verdict is the last line."""
    for record in undone.examples[:MOST_PRINTED]:
        print_warning(console, f"{_record(record.resource, record.target_id, record.title)} is left: {record.reason}")
    if undone.left > MOST_PRINTED:
        console.print(f"and {undone.left - MOST_PRINTED:,} more; --json lists them")
    what = f"{undone.deleted:,} deleted, {undone.reverted:,} reverted, {counted(undone.files_deleted, 'file')} detached"
    what += f", {undone.gone:,} gone before, {undone.left:,} left"
    if not any((undone.deleted, undone.reverted, undone.files_deleted, undone.gone, undone.left)):
        console.print(f"Nothing to undo: '{plan.facts.target.tenant}' has nothing that plan {plan.name} wrote.")
    elif undone.left and not any((undone.deleted, undone.reverted, undone.files_deleted, undone.gone)):
        console.print(
            f"Nothing more to undo: '{plan.facts.target.tenant}' keeps {counted(undone.left, 'record')} of plan {plan.name}."
        )
    elif undone.really:
        left = counted(undone.left, "record") if undone.left else "nothing"
        console.print(
            f"Undone: {what}; {counted(undone.requests, 'request')}. '{plan.facts.target.tenant}' keeps {left} of plan {plan.name}."
        )
    else:
        console.print(
            f"It would be: {what}. Nothing was changed. To do it: {command_line('migrate', 'undo', plan.name, '--really')}"
        )


def print_status(console: Console, plan: Plan, status: PlanStatus) -> None:
    """Print what is done, what remains, what is stuck, and the last verification."""
    planned, done = status.planned, status.done
    work = [("created", "create"), ("patched", "patch"), ("files uploaded", "files"), ("covers set", "covers")]
    work += [("merged", "merge")] if planned.merge else []
    work += [("linked", "links")] if planned.links else []
    rows = [(words, f"{getattr(done, name):,}", f"{getattr(planned, name):,}") for words, name in work]
    print_table(console, ("", "done", "planned"), rows, right=("done", "planned"))
    if status.adopted:
        console.print(
            f"Among the created: {counted(status.adopted, 'record')} that the service made itself and that were adopted."
        )
    for problem in status.problems[:MOST_PRINTED]:
        state = "never answered" if problem.state == "intended" else problem.state
        print_warning(console, f"{problem.resource} {problem.source_id}, {problem.kind}, {state}: {problem.message}")
    if len(status.problems) > MOST_PRINTED:
        console.print(f"and {len(status.problems) - MOST_PRINTED:,} more; --json lists them")
    print_lacking(console, status.lacking)
    if (proof := status.verification) is not None:
        since = ", before this plan last changed something" if _is_older(proof.verified_at, status.last_change) else ""
        console.print(f"Last verified {proof.verified_at}{since}: {'equal' if proof.equal else 'NOT equal'}.")
    stuck = f"{status.refused:,} refused, {status.parked:,} parked, {status.unanswered:,} never answered"
    losses = losses_of(plan, status.lacking)
    partial = "PARTIAL, " if status.lacking.total or status.undecided else ""
    lost = f" {_sentence(partial + in_short(losses))}" if losses else ""
    apply, undo = (command_line("migrate", command, status.plan) for command in ("apply", "undo"))
    if status.undone:
        done = sum(msgspec.structs.astuple(status.done))
        rest = f"{counted(done, 'write')} left (what an undo would do with them: {undo})" if done else "nothing left"
        console.print(
            f"Plan {status.plan} was undone: {counted(status.undone, 'write')} taken back, {rest}; {stuck}. To write it again: {apply}"
        )
    elif not any(msgspec.structs.astuple(planned)):
        console.print(f"Plan {status.plan} is empty: it has nothing to write.{lost}")
    elif status.written:
        console.print(f"Plan {status.plan} is written; {stuck}.{lost}")
    else:
        left = f"{counted(status.requests_left, 'request')}, {duration(status.minutes_left * 60)} at the budget"
        console.print(f"Plan {status.plan}: {left} left; {stuck}.{lost} To go on: {apply}")


def _is_older(moment: str, other: str) -> bool:
    """Whether a moment, in whole seconds, is before the second of the other; an empty one is before all."""
    return bool(other) and datetime.fromisoformat(moment) < datetime.fromisoformat(other).replace(microsecond=0)


def _sentence(words: str) -> str:
    """Words as a sentence of their own."""
    return f"{words[:1].upper()}{words[1:]}."


def print_lacking(console: Console, lacking: Lacking) -> None:
    """Print the first things that the target lacks, each with its record and the remedy."""
    for item in lacking.items[:MOST_PRINTED]:
        print_warning(console, f"{_record(item.resource, item.source_id, item.title)}: {item.text} {item.suggestion}")
    if lacking.total > MOST_PRINTED:
        console.print(f"and {lacking.total - MOST_PRINTED:,} more are lacking; --json lists them")


def print_record(console: Console, view: RecordView) -> None:
    """Print a record: in the source, in the plan, as written, and in the target now."""
    rows = [
        (field.field, field.source, field.wanted, field.held, field.live, "" if field.equal else "differs")
        for field in view.fields
    ]
    print_table(console, ("field", "source", "wanted", "written", "now", ""), rows, right=())
    there = f"is {view.resource} {view.target_id} of the target" if view.is_there else "is not in the target"
    message = f": {view.message}" if view.message else ""
    console.print(f"{view.resource} {view.source_id} {there}; {view.action}, {view.state}{message}")


def _record(resource: str, number: int | None, title: str | None) -> str:
    """A record in a message; people have no title here."""
    return f"{resource} {number} ({title})" if title else f"{resource} {number}"
