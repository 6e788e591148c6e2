"""Creates whose answer nobody saw, looked up in a listing of the target that is read anyway: no request for any of them (I8)."""

from __future__ import annotations

import duckdb

from pipelines.migration.model.comparable import RECORDS, ComparableLibrary
from pipelines.migration.model.journal import Journal, WriteKind, WriteState
from pipelines.migration.model.plan import Plan
from pipelines.store.parquet import escaped, literal

PUBLICATIONS = "publications"

_ALIKE = """
    SELECT s.id, s.content, list(n.id ORDER BY n.id)
    FROM read_parquet({source}) AS s
    JOIN read_parquet({now}) AS n USING (content)
    WHERE s.id IN (SELECT unnest(?))
    GROUP BY ALL
    ORDER BY s.id
"""


def reconcile_pending_publications(plan: Plan, now: ComparableLibrary, journal: Journal) -> None:
    """Enter what an earlier process began to create and is there, word for word; what is not stays in doubt, and is looked up in its turn.

    Records that say the same cannot be told apart, and need not be: each takes one that nobody knew before. Where there are more of them
    than were sent, a person must look.
    """
    entries = journal.of_plan(plan.name, WriteState.INTENDED, WriteState.PARKED)
    doubtful = {one.source_id: one for one in entries if one.kind == WriteKind.CREATE and one.resource == PUBLICATIONS}
    if not doubtful:
        return
    sides = {"source": plan.source, "now": now}
    sql = _ALIKE.format(**{name: literal(escaped(side.path(RECORDS))) for name, side in sides.items()})
    with duckdb.connect(config={"memory_limit": "512MB", "threads": 2}) as database:
        found = database.execute(sql, [list(doubtful)]).fetchall()
    waiting: dict[str, int] = {}
    for _source_id, content, _ids in found:
        waiting[content] = waiting.get(content, 0) + 1
    for source_id, content, ids in found:
        free = sorted(set(ids) - plan.ids_when_planned(PUBLICATIONS, ids) - journal.known_ids(PUBLICATIONS, ids))
        if free and len(free) <= waiting[content]:
            entry = doubtful[source_id]
            journal.done(entry.number, target_id=free[0], held=entry.wanted)
            waiting[content] -= 1
