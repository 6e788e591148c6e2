"""Whether a plan still fits the target: worked out again from a new reading, it must come out the same (I8)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pipelines.errors import StopError
from pipelines.migration.apply.reconcile_pending import reconcile_pending_publications
from pipelines.migration.model.comparable import RECORDS, ComparableLibrary
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import CREATE, PATCH, ROWS, Plan
from pipelines.migration.plan.comparison import compare_libraries
from pipelines.migration.plan.publications import written_batches
from pipelines.records.forms import WRITTEN
from pipelines.store.parquet import exactly, literal, quoted

EXAMPLES = 5

_STALE = """
    SELECT p.source_id, p.action, p.target_id, c.action AS now, c.target_id AS now_target, c.candidates
    FROM read_parquet({rows}) AS p
    LEFT JOIN read_parquet({before}) AS b ON b.id = p.target_id
    LEFT JOIN target AS t ON t.id = p.target_id
    LEFT JOIN source AS s ON s.id = p.source_id
    LEFT JOIN classified AS c ON c.source_id = p.source_id
    ANTI JOIN begun ON begun.source_id = p.source_id
    WHERE p.resource = 'publications' AND p.action IN ('{create}', '{patch}')
      AND (CASE
        WHEN p.matched_by = 'decision'
          THEN p.target_id IS NOT NULL AND NOT EXISTS (FROM target WHERE target.id = p.target_id)
        WHEN p.action = '{create}' THEN c.action IS DISTINCT FROM '{create}'
        ELSE c.target_id IS DISTINCT FROM p.target_id
          OR ((p.payload IS NOT NULL OR p.references IS NOT NULL) AND c.action NOT IN ('{patch}', 'unchanged'))
      END
      OR ((p.payload IS NOT NULL OR p.references IS NOT NULL) AND p.action = '{patch}' AND ({edited})))
    ORDER BY p.source_id
"""


def check_fresh(plan: Plan, now: ComparableLibrary, room: Path, *, journal: Journal, begun: Iterable[int]) -> None:
    """Raise `StopError` where the target as it is `now` asks for something else than the plan says.

    Looks at records that are to be written and that nobody has `begun` to write: at what they match, and at the values that are replaced.
    """
    reconcile_pending_publications(plan, now, journal)
    with compare_libraries(
        plan.source,
        now,
        room,
        written=written_batches(journal),
        same_library=plan.facts.same_library,
        overwrite=plan.facts.overwrite,
    ) as database:
        database.execute("CREATE TABLE begun (source_id BIGINT)")
        numbers = list(begun)
        if numbers:
            database.execute("INSERT INTO begun SELECT unnest(?)", [numbers])
        stale = _STALE.format(
            rows=literal(exactly(plan.path(ROWS))),
            before=literal(exactly(plan.target.path(RECORDS))),
            create=CREATE,
            patch=PATCH,
            edited=" OR ".join(map(_edited, WRITTEN)),
        )
        found = database.execute(stale).fetchmany(EXAMPLES)
        if not found:
            return
        (count,) = database.execute(
            f"SELECT count(*) FROM ({stale})"  # noqa: S608  ours
        ).fetchone() or (len(found),)
    facts = plan.facts
    raise StopError(
        f"Plan {plan.name} is stale: '{facts.target.tenant}' changed since it was made, and for {count:,} of its records something else "
        f"would be right now: {'; '.join(_told(*row) for row in found)}. Nothing was written. Make a new plan: `bookferry migrate plan "
        f"{facts.source.tenant} {facts.target.tenant}`."
    )


def _edited(name: str) -> str:
    """Whether a field that is to be patched was changed since the plan was made, into something else than is wanted."""
    before, now, wanted = (f"{side}.{quoted(name)}" for side in "bts")
    differs = f"{now} IS DISTINCT FROM {before} AND {now} IS DISTINCT FROM {wanted}"
    return f"((json_exists(p.payload, '$.{name}') OR json_exists(p.references, '$.{name}')) AND {differs})"


def _told(  # noqa: PLR0917  a row
    source_id: int, action: str, target_id: int | None, now: str | None, now_target: int | None, candidates: list[int]
) -> str:
    if action == CREATE:
        there = [now_target] if now_target is not None else candidates
        shown = f" ({', '.join(map(str, there[:3]))})" if there else ""
        return f"publication {source_id} was to be created, and seems to be there now{shown}"
    if now_target != target_id:
        return f"publication {source_id} was to change {target_id}, which is not there any more, or is another one"
    return f"publication {source_id} was to change {target_id}, and people changed that ({now})"
