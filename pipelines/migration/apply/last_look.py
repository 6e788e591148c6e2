"""The last look of an apply: at everything that it sent more than once, after the first requests had time to take effect (I8)."""

from __future__ import annotations

from collections.abc import Collection

from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteState
from pipelines.migration.model.plan import Twin
from pipelines.migration.model.twins import TwinFinder, twin_of


def to_look_at(journal: Journal, plan: str, *, looked_at: bool = False) -> list[JournalEntry]:
    """What a plan sent more than once; what is in doubt or parked is named anyway."""
    states = (WriteState.DONE, WriteState.REFUSED)
    return [entry for entry in journal.repeated(plan, looked_at=looked_at) if entry.state in states]


def look_at(journal: Journal, entries: Collection[JournalEntry], finder: TwinFinder) -> list[Twin]:
    """Returns the twins of entries. An entry without one is done with; one that seemed to have no effect takes its first record."""
    twins: list[Twin] = []
    left = {entry.number for entry in entries}
    for entry, ids, file in finder.find(entries):
        if entry.state == WriteState.REFUSED:
            journal.done(entry.number, target_id=ids[0], held=entry.wanted)
        if entry.state == WriteState.DONE or len(ids) > 1:
            twins.append(twin_of(entry, ids, file))
            left.discard(entry.number)
    for number in left:
        journal.looked_at(number)
    return twins
