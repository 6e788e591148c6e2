"""What of the snapshot will not be in the target after a plan: in numbers, each with the option or the decision that changes it.

The plan on the terminal, its page and its JSON begin with it; the last lines of apply, verify, status and a drill repeat it in a few words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from pipelines.humanize import counted
from pipelines.inventory import nested_remedy, records_in_words
from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import Lacking
from pipelines.migration.model.plan import CONFLICTS, HTML, WORKBOOK, Plan, PlanFacts, Unanswered
from pipelines.migration.model.reasons import REASONS, ReasonKind, kind_of
from pipelines.migration.model.resource_types import LOCATIONS, PUBLICATIONS
from pipelines.records.advice import incomplete_dates
from pipelines.shapes.unread_lists import list_in_words

NAMED = 5
"""Fields that a sentence names where a file has them all."""

_IN_ISSUES = f"{WORKBOOK} says of each why, and what to do."


class Loss(msgspec.Struct, frozen=True):
    """Values, files or records of one kind that the target will not have."""

    kind: str
    """A `reasons.ReasonKind`, or `unanswered`, `resources` or `lists`. None is ever renamed."""
    count: int
    words: str
    """The number and what it counts, such as `1,601 dates`."""
    why: str
    remedy: str
    """The option or the decision that changes it."""

    def __str__(self) -> str:
        return f"{self.words}: {self.why} {self.remedy}"


def losses_of(plan: Plan, lacking: Lacking | None = None, *, named: int = NAMED) -> list[Loss]:
    """What the target will not have after a plan.

    `lacking`: with what the service did not keep, once an apply or a status counted it; `named`: the most fields that a sentence names.
    """
    facts, lacking = plan.facts, lacking or plan.facts.not_moved.lacking
    values: dict[ReasonKind, Counter[str]] = defaultdict(Counter)
    for code, counts in facts.not_moved.counts.items():
        values[kind_of(code)].update(counts if code != "first_day" else {})
    identifiers, undecided = values[ReasonKind.IDENTIFIERS].total(), facts.count(Action.CONFLICT)
    losses = [
        _dates(facts.not_moved.count("part_of_date"), facts.not_moved.count("no_day")),
        Loss(
            ReasonKind.IDENTIFIERS,
            identifiers,
            counted(identifiers, "identifier"),
            f"{'it breaks the rules of its' if identifiers == 1 else 'they break the rules of their'} type.",
            f"Correct them in the source ({WORKBOOK} says what is wrong), or make the plan with --invalid-identifiers.",
        ),
        Loss(
            ReasonKind.UNDECIDED,
            undecided,
            counted(undecided, "undecided record"),
            "a person has to decide, and until then nothing of such a record is written.",
            f"Decide in {HTML} or {CONFLICTS}, and make a new plan.",
        ),
        _records(facts.unfit, lacking.records - facts.unfit),
        *(_unanswered(facts, name, unanswered) for name, unanswered in facts.unanswered.items()),
        _resources(facts),
        _lists(facts),
        _files(lacking),
        Loss(
            ReasonKind.REFERENCES,
            lacking.references,
            counted(lacking.references, "reference"),
            f"{_named(values[ReasonKind.REFERENCES], named, numbers=False)}. Bookferry does not know which records those are, they are "
            "neither there nor in this plan, or such links are not taken there.",
            f"Move it, too (--resources), or answer where `bookferry migrate map` asks which records those are: {_IN_ISSUES}",
        ),
        Loss(
            ReasonKind.FIELDS,
            len(values[ReasonKind.FIELDS]),
            f"the values of {counted(len(values[ReasonKind.FIELDS]), 'field')}",
            f"{_named(values[ReasonKind.FIELDS], named)}.",
            f"{_IN_ISSUES} `bookferry describe {facts.target.tenant}` shows the fields that the target has.",
        ),
        Loss(
            ReasonKind.WRITES,
            lacking.writes,
            counted(lacking.writes, "incomplete write"),
            "the service keeps values otherwise than they were sent.",
            f"`bookferry migrate status {plan.name}` names them. {REASONS['kept_otherwise'].suggestion}",
        ),
    ]
    return [loss for loss in losses if loss.count or loss.kind == "unanswered"]


def in_short(losses: Sequence[Loss]) -> str:
    """The end of a last line: `not moved: 1,601 dates, 12 identifiers`; empty where nothing is lost."""
    return f"not moved: {', '.join(loss.words for loss in losses)}" if losses else ""


def _dates(partial: int, undated: int) -> Loss:
    remedies = ["To send their first day, make the plan with --first-days."] if partial else []
    remedies += [f"Correct those that are no date in the source: {WORKBOOK} lists them."] if undated else []
    count, why = partial + undated, f"{incomplete_dates(partial, undated)}."
    return Loss(ReasonKind.DATES, count, counted(count, "date"), why, " ".join(remedies))


def _records(unfit: int, unsendable: int) -> Loss:
    reasons = [f"{unfit:,} without an id"] if unfit else []
    if unsendable:
        reasons.append(f"{unsendable:,} that lack what the target demands, or that no program can create there")
    remedy = _IN_ISSUES if unsendable else "Every backup keeps them; enter them in the target by hand."
    words = f"{counted(unfit + unsendable, 'record')} that cannot be sent"
    return Loss(ReasonKind.RECORDS, unfit + unsendable, words, f"{' and '.join(reasons)}.", remedy)


def _unanswered(facts: PlanFacts, name: str, unanswered: Unanswered) -> Loss:
    words = records_in_words(name, unanswered.records) if name != PUBLICATIONS else "fields of publications"
    remedy = (
        f"Answer there (`bookferry migrate map {facts.source.tenant} {facts.target.tenant}` asks), and make a new plan."
    )
    return Loss("unanswered", unanswered.records, words, f"not planned, because {unanswered.why}.", remedy)


def _resources(facts: PlanFacts) -> Loss:
    names = list(dict.fromkeys("hard_copies" if name == LOCATIONS else name for name in facts.left_out))
    words = ", ".join(records_in_words(name, count) for name, count in facts.left_out.items())
    chosen = [name for name in facts.resources if name not in (PUBLICATIONS, LOCATIONS)]
    why, remedy = (
        "the snapshot has them, and this plan leaves them out.",
        f"To move them: --resources {','.join([*chosen, *names])}.",
    )
    return Loss("resources", sum(facts.left_out.values()), words, why, remedy)


def _lists(facts: PlanFacts) -> Loss:
    more = f" and {len(facts.not_read) - NAMED:,} more lists" if len(facts.not_read) > NAMED else ""
    remedy = nested_remedy(facts.not_read, f"the table of '{facts.source.tenant}', and back it up again")
    return Loss(
        "lists",
        len(facts.not_read),
        ", ".join(map(list_in_words, facts.not_read[:NAMED])) + more,
        "the backup did not read them, so the snapshot lacks what only they have.",
        remedy or "Enter it in the target by hand.",
    )


def _files(lacking: Lacking) -> Loss:
    words = ", ".join(
        counted(number, noun) for number, noun in ((lacking.files, "file"), (lacking.covers, "cover")) if number
    )
    why = "the snapshot lacks the content, or has it packed."
    remedy = f"The next backup tries to fetch what is lacking; {WORKBOOK} names each."
    return Loss(ReasonKind.FILES, lacking.files + lacking.covers, words, why, remedy)


def _named(counts: Mapping[str, int], named: int, *, numbers: bool = True) -> str:
    """The most frequent fields, each with its count if `numbers` are wanted."""
    most = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    more = f" and {len(counts) - named:,} more" if len(counts) > named else ""
    return ", ".join(f"{field} ({count:,})" if numbers else field for field, count in most[:named]) + more
