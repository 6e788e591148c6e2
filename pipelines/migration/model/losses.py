"""What of the snapshot will not be in the target after a plan: in numbers, each with the option or the decision that changes it.

The plan on the terminal, its page and its JSON begin with it; the last lines of apply, verify, status and a drill repeat it in a few words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pipelines.humanize import counted
from pipelines.migration.model.actions import Action
from pipelines.migration.model.lacking import LOOK, LackingCounts, lacking_of, reference_fields
from pipelines.migration.model.plan import CONFLICTS, HTML, WORKBOOK, Plan, PlanFacts
from pipelines.migration.model.resource_types import LOCATIONS, PUBLICATIONS
from pipelines.migration.model.unsent_values import is_reference
from pipelines.migration.model.wording import records_in_words
from pipelines.publication_fields import DATE_FIELDS, IDENTIFIER_FIELDS, IDENTIFIER_LIST
from pipelines.records.advice import incomplete_dates
from pipelines.records.forms import precision_of

NAMED = 5
"""Fields that a sentence names."""

_IN_ISSUES = f"{WORKBOOK} says of each why, and what to do."

_POSITIONS = re.compile(r"\[\d+\]")

_IDENTIFIER = re.compile(rf"({'|'.join((*IDENTIFIER_FIELDS, IDENTIFIER_LIST))})(\[\])?'*")
"""The path of an identifier of a publication."""


class Loss(msgspec.Struct, kw_only=True, frozen=True):
    """Values, files or records of one kind that the target will not have."""

    kind: str
    """dates, identifiers, undecided, records, resources, lists, files, references, fields or writes. None is ever renamed."""
    count: int
    words: str
    """The number and what it counts, such as `1,601 dates`."""
    why: str
    remedy: str
    """The option or the decision that changes it."""

    def __str__(self) -> str:
        return f"{self.words}: {self.why} {self.remedy}"


def losses_of(plan: Plan, lacking: LackingCounts | None = None) -> list[Loss]:
    """What the target will not have after a plan. `lacking`: with what the service did not keep, once an apply or a status counted it."""
    facts, lacking = plan.facts, lacking or lacking_of(plan)
    return [
        *_dates(facts),
        *_identifiers(facts),
        *_undecided(facts),
        *_records(facts, lacking),
        *_resources(facts),
        *_lists(facts),
        *_files(lacking),
        *_references(plan, lacking),
        *_fields(plan),
        *_writes(plan, lacking),
    ]


def in_short(losses: Sequence[Loss]) -> str:
    """The end of a last line: `not moved: 1,601 dates, 12 identifiers`; empty where nothing is lost."""
    return f"not moved: {', '.join(loss.words for loss in losses)}" if losses else ""


def counts_by_path(counts: Mapping[str, int]) -> dict[str, int]:
    """Add up the counts of paths that differ only in positions in lists; the most frequent first."""
    totals: dict[str, int] = {}
    for path, count in counts.items():
        key = _POSITIONS.sub("[]", path)
        totals[key] = totals.get(key, 0) + count
    return dict(sorted(totals.items(), key=lambda one: (-one[1], one[0])))


def _dates(facts: PlanFacts) -> Iterator[Loss]:
    count, partial = sum(facts.unsent.get(name, 0) for name in DATE_FIELDS), facts.partial_dates
    if not count:
        return
    remedies = []
    if partial:
        remedies.append("To send their first day, make the plan with --first-days.")
    if count > partial:
        remedies.append(f"Correct those that are no date in the source: {WORKBOOK} lists them.")
    why = f"{incomplete_dates(partial, count - partial)}."
    yield Loss(kind="dates", count=count, words=counted(count, "date"), why=why, remedy=" ".join(remedies))


def _identifiers(facts: PlanFacts) -> Iterator[Loss]:
    if count := facts.invalid_identifiers:
        yield Loss(
            kind="identifiers",
            count=count,
            words=counted(count, "identifier"),
            why=f"{'it breaks' if count == 1 else 'they break'} the rules of their type.",
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


def _records(facts: PlanFacts, lacking: LackingCounts) -> Iterator[Loss]:
    if count := lacking.records:
        reasons = [f"{facts.unfit:,} without an id that is a whole number"] if facts.unfit else []
        if others := count - facts.unfit:
            reasons.append(f"{others:,} that lack what the target demands, or that no program can create there")
        yield Loss(
            kind="records",
            count=count,
            words=f"{counted(count, 'record')} that cannot be sent",
            why=f"{' and '.join(reasons)}.",
            remedy=_IN_ISSUES if others else "Every backup keeps them; enter them in the target by hand.",
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
            words=", ".join(facts.not_read[:NAMED]) + (f" and {count - NAMED:,} more lists" if count > NAMED else ""),
            why="Bookferry does not read them, so the snapshot lacks what only they have.",
            remedy="Enter it in the target by hand.",
        )


def _files(lacking: LackingCounts) -> Iterator[Loss]:
    if count := lacking.files + lacking.covers:
        words = [
            counted(number, noun) for number, noun in ((lacking.files, "file"), (lacking.covers, "cover")) if number
        ]
        yield Loss(
            kind="files",
            count=count,
            words=", ".join(words),
            why="the snapshot lacks the content.",
            remedy=f"The next backup tries to fetch it again; {WORKBOOK} names each.",
        )


def _references(plan: Plan, lacking: LackingCounts) -> Iterator[Loss]:
    if count := lacking.references:
        fields = reference_fields(plan)
        counts = {path: count for path, count in plan.facts.unsent.items() if _is_reference(fields, path)}
        yield Loss(
            kind="references",
            count=count,
            words=counted(count, "reference"),
            why=f"{_named(counts, numbers=False)}. Bookferry does not know which records those are, or they are neither there nor in this "
            "plan.",
            remedy=f"Move it, too (--resources), where that is possible: {_IN_ISSUES}",
        )


def _fields(plan: Plan) -> Iterator[Loss]:
    facts = plan.facts
    references = reference_fields(plan)
    counts = counts_by_path(
        {path: count for path, count in facts.unsent.items() if not _is_said(plan, references, path)}
    )
    if not counts:
        return
    yield Loss(
        kind="fields",
        count=len(counts),
        words=f"the values of {counted(len(counts), 'field')}",
        why=f"{_named(counts)}.",
        remedy=f"{_IN_ISSUES} `bookferry describe {facts.target.tenant}` shows the fields that the target has.",
    )


def _named(counts: Mapping[str, int], *, numbers: bool = True) -> str:
    """The most frequent paths, each with its count if `numbers` are wanted."""
    counts = counts_by_path(counts)
    more = f" and {len(counts) - NAMED:,} more" if len(counts) > NAMED else ""
    shown = [f"{path} ({count:,})" if numbers else path for path, count in counts.items()][:NAMED]
    return ", ".join(shown) + more


def _is_said(plan: Plan, references: Mapping[str, Mapping[str, str]], path: str) -> bool:
    """Whether values of this path are counted among the dates, identifiers or references, or are sent as a first day."""
    if path in {*DATE_FIELDS, *map(precision_of, DATE_FIELDS)}:
        return True
    if _IDENTIFIER.fullmatch(_POSITIONS.sub("[]", path)):
        return plan.facts.invalid_identifiers > 0
    return _is_reference(references, path)


def _is_reference(references: Mapping[str, Mapping[str, str]], path: str) -> bool:
    """Whether values of this path refer to other records. `references`: resource → the fields that do."""
    resource, _, field = path.partition(".")
    if resource not in references or resource == PUBLICATIONS:
        resource, field = PUBLICATIONS, path
    return is_reference(resource, field, None, references[resource])


def _writes(plan: Plan, lacking: LackingCounts) -> Iterator[Loss]:
    if count := lacking.writes:
        yield Loss(
            kind="writes",
            count=count,
            words=counted(count, "incomplete write"),
            why="the service keeps values otherwise than they were sent.",
            remedy=f"`bookferry migrate status {plan.name}` names them. {LOOK}",
        )
