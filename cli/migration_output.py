"""What `bookferry migrate` answers: a plan, its application, its verification, its status, and an undo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import RenderableType

from cli.command_lines import command_line
from cli.output import ReadableTable, first, verdict, warning
from pipelines.humanize import counted, duration
from pipelines.inventory import RESOURCES
from pipelines.migration.apply.run import ApplyResult
from pipelines.migration.decide.take_over import TakenOver
from pipelines.migration.mapping.mapping_file import MappingFile
from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import MOST_ALIKE, Finding
from pipelines.migration.model.losses import Loss, in_short, losses_of
from pipelines.migration.model.plan import CONFLICTS, HTML, ISSUES, Plan
from pipelines.migration.model.resource_types import LOCATIONS, PUBLICATIONS
from pipelines.migration.model.wording import headline
from pipelines.migration.report.status import PlanStatus, RecordView
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.overview.open_plans import next_step


def plan_document(plan: Plan) -> dict[str, Any]:
    """The JSON document of a plan. Scripts rely on its keys."""
    facts = plan.facts
    ends = datetime.now(UTC) + timedelta(minutes=facts.minutes)
    return {
        "plan": facts.plan,
        "losses": losses_of(plan),
        **{action: facts.count(action) for action in Action},
        "quarantined": facts.count(Action.QUARANTINED) + facts.unfit,
        "files": facts.files.upload,
        "file_counts": facts.files,
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
        "lacking": facts.not_moved.lacking,
        "findings": facts.not_moved.first,
        "unsent": facts.not_moved.by_field,
        "twins": facts.twins,
    }


def mapping_lines(mapping: MappingFile, source: str, target: str) -> Iterator[RenderableType]:
    """The open questions of a mapping file, where it is, and the next step."""
    questions, lines = mapping.questions(), ["", *mapping.text.splitlines()]
    for question in questions:
        above, line = lines[question.line - 1 : question.line + 1]
        why = f" ({above.removeprefix('#').strip()})" if above.startswith("#") else ""
        yield warning(f"Line {question.line}, {question.resource}: {line.strip()}{why}")
    named = (name for name in mapping.resources if name != LOCATIONS)
    referred = (field.leads_to for resource in mapping.resources.values() for field in resource.fields.values())
    needed = dict.fromkeys("hard_copies" if name == LOCATIONS else name for name in (*named, *referred))
    names = ",".join(name for name in needed if name in RESOURCES and name != PUBLICATIONS)
    command = _plan_command(source, target, names)
    if questions:
        asked = f"{counted(len(questions), 'question')} to answer in {mapping.path}"
        yield verdict(
            "OPEN:",
            f"{asked}. Until then their resources are not planned, of publications those fields. Next: {command}",
            good=False,
        )
    else:
        yield verdict("Mapped:", f"no question is open in {mapping.path}. Read it. Next: {command}", good=True)


def _plan_command(source: str, target: str, resources: str) -> str:
    """The command for a plan from the newest snapshot, with these resources besides the publications."""
    options = ["--resources", resources] if resources else []
    return command_line("migrate", "plan", source, target, "--newest", *options)


def plan_lines(plan: Plan) -> Iterator[RenderableType]:
    """What will not arrive, what the plan would write, where its pages are, and the next step."""
    facts, losses = plan.facts, losses_of(plan)
    yield from headline_lines(plan, losses)
    for note in facts.notes:
        yield warning(note)
    yield f"For librarians: {plan.path(HTML)}"
    yield f"Issues: {plan.path(ISSUES)}"
    if conflicts := facts.count(Action.CONFLICT):
        yield (
            f"{counted(conflicts, 'conflict')} to decide in the page, or in {plan.path(CONFLICTS)}; the next plan applies your decisions"
        )
    if facts.empty:
        lost = _sentence(in_short(losses))
        yield f"Plan {plan.name} is empty: it has nothing to write into '{facts.target.tenant}'.{lost}"
    else:
        yield f"Nothing has been written yet. To write it: {command_line('migrate', 'apply', plan.name)}"


def headline_lines(plan: Plan, losses: Sequence[Loss]) -> Iterator[RenderableType]:
    """What will not arrive, and then what the plan would write."""
    if losses:
        yield f"Will not arrive in '{plan.facts.target.tenant}':"
    yield from map(warning, map(str, losses))
    yield from headline(plan.facts, datetime.now(UTC))


def taken_over_lines(plan: Plan, result: TakenOver) -> Iterator[RenderableType]:
    """What was decided, what is left, and the next step."""
    facts = plan.facts
    withdrawn = f", and withdraws {result.withdrawn:,} of before" if result.withdrawn else ""
    if result.decisions:
        yield f"The file decides {', '.join(f'{number:,} {decision}' for decision, number in result.decisions.items())}{withdrawn}."
    else:
        yield warning(f"The file decides nothing{withdrawn}.")
    rest = f"{counted(result.left, 'conflict')} left to decide." if result.left else "No conflict is left to decide."
    names = ",".join(resource for resource in facts.resources if resource != PUBLICATIONS)
    command = _plan_command(facts.source.tenant, facts.target.tenant, names)
    yield f"{rest} Next, a plan that follows the decisions: {command}"


def findings_lines(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    """The first findings; those of a resource with the same words are one line."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.resource, finding.words), []).append(finding)
    lines = []
    for finding, *repeats in alike.values():
        most = "at least " if len(repeats) >= MOST_ALIKE - 1 else ""
        lines.append(f"{finding} (and {most}{len(repeats):,} more like it)" if repeats else finding)
    return first(lines)


def applied_lines(plan: Plan, applied: ApplyResult, *, verified: bool = False) -> Iterator[RenderableType]:
    """What was written; the verdict is the last line. `verified`: whether the result of a verification follows."""
    yield from findings_lines(applied.findings)
    losses = losses_of(plan, applied.lacking)
    written = ("created", "merged", "linked", "patched", "unchanged", "files_uploaded")
    parts = [
        _numbers(applied, *written) or ("nothing known to be written" if applied.failed else "nothing written"),
        counted(applied.requests, "request"),
        _numbers(applied, "failed", "quarantined"),
        in_short(losses),
    ]
    if applied.left:
        waiting = f", {applied.waiting:,} of them for references to others that are left" if applied.waiting else ""
        parts.append(f"{counted(applied.left, 'record')} of plan {plan.name} left{waiting}")
    summary = "; ".join(filter(None, parts))
    is_unsent = applied.failed or applied.quarantined or applied.lacking.total
    if applied.complete:
        proposed = "" if verified else f" Next: {command_line('migrate', 'verify', plan.name)}"
        yield verdict("Complete as planned:" if losses else "Complete:", f"{summary}.{proposed}", good=not losses)
    elif applied.appeared:
        made = f"the target has {applied.appeared:,} of them by now, which the plan creates"
        yield verdict("PARTIAL:", f"{summary}: {made}. Make a new plan: it takes them.", good=False)
    elif is_unsent or (applied.undecided and not applied.left):
        remedy = f"Decide in {plan.path(HTML)}, and make a new plan."
        if is_unsent:
            remedy = f"{plan.path(ISSUES)} and `status` list them."
        yield verdict("PARTIAL:", f"{summary}. {remedy}", good=False)
    else:
        yield f"So far, as you asked: {summary}."


def proof_lines(plan: Plan, proof: MigrationVerification) -> Iterator[RenderableType]:
    """The first findings; the verdict is the last line."""
    target, lost = plan.facts.target.tenant, in_short(losses_of(plan, proof.lacking))
    summary = f"{counted(proof.compared, 'record')} compared, {counted(proof.files_checked, 'file')} checked"
    if not proof.equal:
        yield from findings_lines(proof.findings)
        problems = [_numbers(proof, "missing", "duplicated", "differing")]
        if proof.as_planned:
            problems += ["the target has all that the plan could send"]
        elif proof.lacking.total:
            problems += [f"{proof.lacking.total:,} of them the plan could not send"]
        lacks = "; ".join(filter(None, [*problems, lost]))
        yield verdict("NOT EQUAL:", f"{summary}: {lacks}. All findings: {plan.path(proof.table)}", good=False)
    elif lost:
        text = f"{summary}: '{target}' has what plan {plan.name} sends; {lost}."
        yield verdict("Equal as planned:", text, good=False)
    else:
        yield verdict("Equal:", f"{summary}: '{target}' equals plan {plan.name}.")


def undone_lines(plan: Plan, undone: UndoResult) -> Iterator[RenderableType]:
    """What would be undone with which record, what was left and why; the verdict is the last line."""
    yield from findings_lines([] if undone.really else undone.rows)
    yield from findings_lines(undone.findings)
    summary, target = (
        _numbers(undone, "deleted", "reverted", "members_removed", "files_deleted", "gone"),
        plan.facts.target.tenant,
    )
    keeps = f"has nothing that plan {plan.name} wrote"
    if undone.left:
        keeps = f"keeps {counted(undone.left, 'record')} of plan {plan.name}"
    if not summary:
        yield f"Nothing to undo: '{target}' {keeps}."
    elif undone.really:
        yield f"Undone: {summary}; {counted(undone.requests, 'request')}. '{target}' {keeps}."
    else:
        command = command_line("migrate", "undo", plan.name, "--really")
        yield f"It would be: {summary}, {undone.left:,} left. Nothing was changed. To do it: {command}"


_WORK = {
    "create": "created",
    "patch": "patched",
    "files": "files uploaded",
    "covers": "covers set",
    "merge": "merged",
    "links": "linked",
}
"""Work of a plan → words."""


def status_lines(plan: Plan, status: PlanStatus) -> Iterator[RenderableType]:
    """What is done, what remains, what is stuck, and the last verification."""
    done, planned = status.done, status.planned
    rows = [
        (words, f"{done.get(name, 0):,}", f"{planned[name]:,}") for name, words in _WORK.items() if planned.get(name)
    ]
    if rows:
        yield ReadableTable(("", "done", "planned"), rows, right=("done", "planned"))
    yield from findings_lines(status.findings)
    if (proof := status.verification) is not None:
        since = ", before this plan last changed something" if _is_older(proof.verified_at, status.last_change) else ""
        yield f"Last verified {proof.verified_at}{since}: {'equal' if proof.equal else 'NOT equal'}."
    stuck = _numbers(status, "refused", "parked", "unanswered") or "nothing is stuck"
    lost = in_short(losses_of(plan, status.lacking))
    if lost and (status.lacking.total or status.undecided):
        lost = f"PARTIAL, {lost}"
    step = next_step(plan, status)
    onward = f" To go on: {command_line(*step[1])}" if step else ""
    if status.undone:
        writes, undo = sum(done.values()), command_line("migrate", "undo", plan.name)
        rest = (
            f"{counted(writes, 'write')} left (what an undo would do with them: {undo})" if writes else "nothing left"
        )
        again = command_line("migrate", "apply", plan.name)
        summary = (
            f"was undone: {counted(status.undone, 'write')} taken back, {rest}; {stuck}. To write it again: {again}"
        )
    elif not rows:
        summary = f"is empty: it has nothing to write.{_sentence(lost)}"
    elif status.written:
        summary = f"is written; {stuck}.{_sentence(lost)}"
    else:
        rest = f"{counted(status.requests_left, 'request')}, {duration(status.minutes_left * 60)} at the budget"
        summary = f"has {rest} left; {stuck}.{_sentence(lost)}"
    yield f"Plan {plan.name} {summary}{onward}"


def _is_older(moment: str, other: str) -> bool:
    """Whether a moment, in whole seconds, is before the second of the other; an empty one is before all."""
    return bool(other) and datetime.fromisoformat(moment) < datetime.fromisoformat(other).replace(microsecond=0)


def _sentence(words: str) -> str:
    """Words as a sentence of their own, after another; nothing without words."""
    return f" {words[:1].upper()}{words[1:]}." if words else ""


_WORDS = {"gone": "gone before", "unanswered": "never answered"}
"""Count of a result → words, where its name is not the word."""


def _numbers(result: object, *names: str) -> str:
    """The counts of a result that are not zero: `5,445 created, 1 file uploaded`."""
    parts = []
    for name in names:
        if count := getattr(result, name):
            noun, _, done = name.rpartition("s_")
            parts.append(f"{counted(count, noun)} {done}" if noun else f"{count:,} {_WORDS.get(name, name)}")
    return ", ".join(parts)


def record_lines(view: RecordView) -> Iterator[RenderableType]:
    """A record: in the source, in the plan, as written, and in the target now."""
    rows = [
        (field.field, field.source, field.wanted, field.held, field.live, "" if field.equal else "differs")
        for field in view.fields
    ]
    yield ReadableTable(("field", "source", "wanted", "written", "now", ""), rows, right=())
    place = f"is {view.resource} {view.target_id} of the target" if view.is_there else "is not in the target"
    message = f": {view.message}" if view.message else ""
    yield f"{view.resource} {view.source_id} {place}; {view.action}, {view.state}{message}"
