"""Settles creates with a lost response before an apply compares and writes anything (I8).

Publications are found in the listing of the target that apply reads anyway, so that none of them costs a request. Records of other
resources are looked up singly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import RECORDS, Side
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.store.parquet import connect_duckdb, escaped, literal

if TYPE_CHECKING:
    from pipelines.migration.apply.writer import Writer

_SAME_CONTENT = """
    SELECT s.id, s.content, list(n.id ORDER BY n.id)
    FROM read_parquet({source}) AS s
    JOIN read_parquet({now}) AS n USING (content)
    WHERE s.id IN (SELECT unnest(?))
    GROUP BY ALL
    ORDER BY s.id
"""


def reconcile_pending_publications(
    plan: Plan, now: Side, journal: Journal, is_over: Callable[[JournalEntry], bool]
) -> None:
    """Enter as done the pending creates of publications whose exact content is in the target `now`; the others stay pending.

    Records with the same content are interchangeable: each entry takes one that is new, but only once it `is_over`, so that no other one
    may still come. Where more of them are new than were sent, the entries stay pending.
    """
    pending = {source_id: entry for (resource, source_id), entry in _pending(plan, journal) if resource == PUBLICATIONS}
    if not pending:
        return
    paths = {name: literal(escaped(side.path(RECORDS))) for name, side in (("source", plan.source), ("now", now))}
    with connect_duckdb(memory_limit="512MB", threads=2) as database:
        matches = database.execute(_SAME_CONTENT.format(**paths), [list(pending)]).fetchall()
    unmatched = Counter(content for _source_id, content, _ids in matches)
    alone = {content for content, count in unmatched.items() if count == 1}
    for source_id, content, ids in matches:
        if content not in alone and not is_over(pending[source_id]):
            continue
        free = sorted(set(ids) - plan.ids_when_planned(PUBLICATIONS, ids) - journal.known_ids(PUBLICATIONS, ids))
        if free and len(free) <= unmatched[content]:
            entry = pending[source_id]
            journal.done(entry.number, target_id=free[0], held=entry.wanted)
            unmatched[content] -= 1


def reconcile_pending_records(plan: Plan, journal: Journal, writer: Writer) -> None:
    """Look up the pending creates of resources other than publications; those that are not in the target stay pending."""
    pending = {record: entry for record, entry in _pending(plan, journal) if record[0] != PUBLICATIONS}
    for row in plan.rows(Action.CREATE) if pending else ():
        if (entry := pending.get((row.resource, row.source_id))) is not None:
            writer.reconcile_create(row, entry)


def _pending(plan: Plan, journal: Journal) -> list[tuple[tuple[str, int], JournalEntry]]:
    """((resource, id in the source), entry) of each create whose effect is not known."""
    entries = journal.of_plan(plan.name, WriteState.INTENDED, WriteState.PARKED)
    return [((entry.resource, entry.source_id), entry) for entry in entries if entry.kind == WriteKind.CREATE]
