"""Plans with conflicts, for tests of their page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import SOURCE, TARGET, Plan, PlanRow
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.plan.comparison import write_side
from pipelines.migration.plan.conflicts import RecordDecision, write_conflicts
from pipelines.migration.report.pages import write_pages
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from tests.migration.examples import NOW, example
from tests.migration.sample_plans import row
from tests.report.library import HOSTILE


def differs(number: int, source: str, target: str, field: str = "title", **values: Any) -> PlanRow:
    """A conflict about one field, with the record of the target whose number is a thousand larger."""
    differing = {field: [json.dumps(source), json.dumps(target)]}
    reason = "fields_differ"
    return row(
        number, Action.CONFLICT, **{"target_id": number + 1000, "reason": reason, "differing": differing, **values}
    )


def fits(number: int, *candidates: int, **values: Any) -> PlanRow:
    """A conflict about several records that fit."""
    return row(number, Action.CONFLICT, **{"reason": "several_targets", "candidates": [*candidates], **values})


def usual() -> list[PlanRow]:
    """A few conflicts of every kind, and rows that are none."""
    return [
        row(1, Action.CREATE),
        differs(2, "The history of printing", "A history of printing"),
        differs(3, "Émigré letters", "Emigre letters"),
        differs(4, "2021", "2020", "published_on"),
        fits(5, 51, 52),
        fits(6, 61, reason="several_sources"),
        fits(7, 61, reason="several_sources"),
        fits(8, 81, reason="identifiers_disagree"),
        fits(9, 91, reason="deleted_in_target"),
        fits(10, reason="decided_is_missing"),
        differs(11, "long " * 40 + "ours", "long " * 40 + "theirs", "abstract", reason="edited_in_target"),
        differs(2, "user", "admin", "role", resource="users", title="Lars Librarian"),
        fits(3, 31, 32, resource="authorities", title="Doe, Jane"),
        row(4, Action.UNCHANGED, resource="authorities", target_id=41, candidates=[42, 43], reason="twins"),
    ]


def hostile() -> list[PlanRow]:
    """Conflicts whose every text means harm."""
    texts = (*HOSTILE, "</script><script>document.title='taken'</script>", "<!--", "]]>", "\u2028\u2029", "'1984", '"')
    rows = []
    for number, text in enumerate(texts, start=100):
        rows.append(differs(number, text, f"{text} ", text, title=text))
        rows.append(fits(number + 500, number, number + 1, title=text))
    return rows


def page_of(folder: Path, rows: Sequence[PlanRow], decided: Iterable[RecordDecision] = (), **values: Any) -> Plan:
    """A plan with its table of conflicts and its page."""
    return pages_for(example(folder, rows, **values), decided)


def pages_for(plan: Plan, decided: Iterable[RecordDecision] = ()) -> Plan:
    """Write the table of conflicts of a plan, and its page."""
    decisions = {(decision.resource, decision.source_id): decision for decision in decided}
    write_conflicts(plan, decisions)
    write_pages(plan, now=NOW)
    return plan


def with_records(plan: Plan, source: dict[int, dict[str, Any]], target: dict[int, dict[str, Any]]) -> Plan:
    """Give a plan records of both sides: id → field → value."""
    for side, records in ((plan.side(SOURCE), source), (plan.side(TARGET), target)):
        numbered = ({"id": number, **record} for number, record in records.items())
        write_side(side, numbered, publication_type(STANDARD_KINDS))
    return plan
