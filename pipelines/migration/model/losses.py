"""What of the snapshot will not be in the target after a plan: in numbers, each with the option or the decision that changes it.

The plan on the terminal, its page and its JSON begin with it; the last lines of apply, verify, status and a drill repeat it in a few words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pipelines.humanize import counted
from pipelines.inventory import nested_remedy, records_in_words
from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import Lacking
from pipelines.migration.model.plan import CONFLICTS, HTML, WORKBOOK, Plan, PlanFacts
from pipelines.migration.model.reasons import REASONS, Kind, kind_of
from pipelines.migration.model.resource_types import LOCATIONS, PUBLICATIONS
from pipelines.records.advice import incomplete_dates
from pipelines.shapes.unread_lists import list_in_words

NAMED = 5
"""Fields that a sentence names."""

_IN_ISSUES = f"{WORKBOOK} says of each why, and what to do."


class Loss(msgspec.Struct, kw_only=True, frozen=True):
    """Values, files or records of one kind that the target will not have."""

    kind: str
    """A `reasons.Kind`, or `unanswered`, `resources` or `lists`. None is ever renamed."""
    count: int
    words: str
    """The number and what it counts, such as `1,601 dates`."""
    why: str
    remedy: str
    """The option or the decision that changes it."""

    def __str__(self) -> str:
        return f"{self.words}: {self.why} {self.remedy}"


def losses_of(plan: Plan, lacking: Lacking | None = None) -> list[Loss]:
    """What the target will not have after a plan. `lacking`: with what the service did not keep, once an apply or a status counted it."""
    facts, lacking = plan.facts, lacking or plan.facts.not_moved.lacking
    values: dict[Kind, dict[str, int]] = {}
    for code, counts in facts.not_moved.counts.items():
        of_kind = values.setdefault(kind_of(code), {})
        for field, count in counts.items() if code != "first_day" else ():
            of_kind[field] = of_kind.get(field, 0) + count
    return [
        *_dates(facts),
        *_identifiers(sum(values.get(Kind.IDENTIFIERS, {}).values())),
        *_undecided(facts),
        *_records(facts, lacking),
        *_unanswered(facts),
        *_resources(facts),
        *_lists(facts),
        *_files(lacking),
        *_references(values.get(Kind.REFERENCES, {}), lacking),
        *_fields(facts, values.get(Kind.FIELDS, {})),
        *_writes(plan, lacking),
    ]


def in_short(losses: Sequence[Loss]) -> str:
    """The end of a last line: `not moved: 1,601 dates, 12 identifiers`; empty where nothing is lost."""
    return f"not moved: {', '.join(loss.words for loss in losses)}" if losses else ""


def _dates(facts: PlanFacts) -> Iterator[Loss]:
    partial, undated = facts.not_moved.count("part_of_date"), facts.not_moved.count("no_day")
    remedies = ["To send their first day, make the plan with --first-days."] if partial else []
    remedies += [f"Correct those that are no date in the source: {WORKBOOK} lists them."] if undated else []
    if remedies:
        yield Loss(
            kind="dates",
            count=partial + undated,
            words=counted(partial + undated, "date"),
            why=f"{incomplete_dates(partial, undated)}.",
            remedy=" ".join(remedies),
        )


def _identifiers(count: int) -> Iterator[Loss]:
    if count:
        yield Loss(
            kind="identifiers",
            count=count,
            words=counted(count, "identifier"),
            why=f"{'it breaks the rules of its' if count == 1 else 'they break the rules of their'} type.",
            remedy=f"Correct them in the source ({WORKBOOK} says what is wrong), or make the plan with --invalid-identifiers.",
        )


def _undecided(facts: PlanFacts) -> Iterator[Loss]:
    if count := facts.count(Action.CONFLICT):
        yield Loss(
            kind="undecided",
            count=count,
            words=counted(count, "undecided record"),
            why="a person has to decide, and until then nothing of such a record is written.",
            remedy=f"Decide in {HTML} or {CONFLICTS}, and make a new plan.",
        )


def _records(facts: PlanFacts, lacking: Lacking) -> Iterator[Loss]:
    if count := lacking.records:
        reasons = [f"{facts.unfit:,} without an id"] if facts.unfit else []
        if unsendable := count - facts.unfit:
            reasons.append(f"{unsendable:,} that lack what the target demands, or that no program can create there")
        yield Loss(
            kind="records",
            count=count,
            words=f"{counted(count, 'record')} that cannot be sent",
            why=f"{' and '.join(reasons)}.",
            remedy=_IN_ISSUES if unsendable else "Every backup keeps them; enter them in the target by hand.",
        )


def _unanswered(facts: PlanFacts) -> Iterator[Loss]:
    for name, unanswered in facts.unanswered.items():
        yield Loss(
            kind="unanswered",
            count=unanswered.records,
            words=records_in_words(name, unanswered.records) if name != PUBLICATIONS else "fields of publications",
            why=f"not planned, because {unanswered.why}.",
            remedy=f"Answer there (`bookferry migrate map {facts.source.tenant} {facts.target.tenant}` asks), and make a new plan.",
        )


def _resources(facts: PlanFacts) -> Iterator[Loss]:
    if not facts.left_out:
        return
    names = list(dict.fromkeys("hard_copies" if name == LOCATIONS else name for name in facts.left_out))
    words = ", ".join(records_in_words(name, count) for name, count in facts.left_out.items())
    chosen = [name for name in facts.resources if name not in (PUBLICATIONS, LOCATIONS)]
    yield Loss(
        kind="resources",
        count=sum(facts.left_out.values()),
        words=words,
        why="the snapshot has them, and this plan leaves them out.",
        remedy=f"To move them: --resources {','.join([*chosen, *names])}.",
    )


def _lists(facts: PlanFacts) -> Iterator[Loss]:
    if count := len(facts.not_read):
        yield Loss(
            kind="lists",
            count=count,
            words=", ".join(map(list_in_words, facts.not_read[:NAMED]))
            + (f" and {count - NAMED:,} more lists" if count > NAMED else ""),
            why="the backup did not read them, so the snapshot lacks what only they have.",
            remedy=nested_remedy(facts.not_read, f"the table of '{facts.source.tenant}', and back it up again")
            or "Enter it in the target by hand.",
        )


def _files(lacking: Lacking) -> Iterator[Loss]:
    if count := lacking.files + lacking.covers:
        words = [
            counted(number, noun) for number, noun in ((lacking.files, "file"), (lacking.covers, "cover")) if number
        ]
        yield Loss(
            kind="files",
            count=count,
            words=", ".join(words),
            why="the snapshot lacks the content, or has it packed.",
            remedy=f"The next backup tries to fetch what is lacking; {WORKBOOK} names each.",
        )


def _references(counts: Mapping[str, int], lacking: Lacking) -> Iterator[Loss]:
    if count := lacking.references:
        yield Loss(
            kind="references",
            count=count,
            words=counted(count, "reference"),
            why=f"{_named(counts, numbers=False)}. Bookferry does not know which records those are, or they are neither there nor in this "
            "plan.",
            remedy=f"Move it, too (--resources), or answer where `bookferry migrate map` asks which records those are: {_IN_ISSUES}",
        )


def _fields(facts: PlanFacts, counts: Mapping[str, int]) -> Iterator[Loss]:
    if counts:
        yield Loss(
            kind="fields",
            count=len(counts),
            words=f"the values of {counted(len(counts), 'field')}",
            why=f"{_named(counts)}.",
            remedy=f"{_IN_ISSUES} `bookferry describe {facts.target.tenant}` shows the fields that the target has.",
        )


def _named(counts: Mapping[str, int], *, numbers: bool = True) -> str:
    """The most frequent fields, each with its count if `numbers` are wanted."""
    most = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    more = f" and {len(counts) - NAMED:,} more" if len(counts) > NAMED else ""
    return ", ".join(f"{field} ({count:,})" if numbers else field for field, count in most[:NAMED]) + more


def _writes(plan: Plan, lacking: Lacking) -> Iterator[Loss]:
    if count := lacking.writes:
        yield Loss(
            kind="writes",
            count=count,
            words=counted(count, "incomplete write"),
            why="the service keeps values otherwise than they were sent.",
            remedy=f"`bookferry migrate status {plan.name}` names them. {REASONS['kept_otherwise'].suggestion}",
        )
