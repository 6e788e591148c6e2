"""Finds what the target has twice, because a request without a response took effect after it had been settled (I8).

A twin equals a record that a plan created, was not there when that was planned, and no write accounts for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pipelines.migration.model.comparable import Side
from pipelines.migration.model.comparison_database import comparison_database, create_table, create_views
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import Plan, Twin
from pipelines.migration.model.target_comparison import WRITTEN_IDS
from pipelines.records.values import ids_of

_TWINS = """
    SELECT n.id, c.source_id, c.target_id, c.plan
    FROM (
        SELECT content, min(target_id) AS target_id, arg_min(source_id, target_id) AS source_id, arg_min(plan, target_id) AS plan
        FROM written_ids AS w JOIN records ON records.id = w.target_id
        WHERE w.source_id IS NOT NULL AND w.asset_id IS NULL
        GROUP BY content
    ) AS c
    JOIN records AS n USING (content)
    ANTI JOIN written_ids AS k ON k.target_id = n.id
    ORDER BY n.id
"""


def find_twins(journal: Journal, folder: Path, resources: Iterable[str], plans: Mapping[str, Plan]) -> Iterator[Twin]:
    """Yield the twins in one reading of the target, whose resources are in `folder`. `plans`: by name, as far as they are there."""
    with comparison_database(folder) as database:
        for resource in resources:
            create_views(database, records=Side(folder, resource))
            create_table(database, WRITTEN_IDS, journal.created_records(resource))
            rows = [(*ids_of(ids), plan) for *ids, plan in database.execute(_TWINS).fetchall()]
            known_ids = journal.known_ids(resource, [number for number, *_ in rows])
            for plan in sorted({plan for *_, plan in rows}):
                ids = {number for number, *_, name in rows if name == plan}
                known_ids |= plans[plan].ids_when_planned(resource, ids) if plan in plans else ids  # nobody knows
            for number, source_id, target_id, _plan in rows:
                if number not in known_ids:
                    yield Twin(resource=resource, source_id=source_id, target_id=target_id, twins=[number])
