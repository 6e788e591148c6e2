"""Checks before an apply that a plan still fits the target: compared again with a new reading, it must come out the same (I8)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from pipelines.errors import StopError
from pipelines.migration.apply.target_lists import TargetLists, read_target_lists
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action, Decision
from pipelines.migration.model.comparable import RECORDS, ComparableLibrary, column_of, digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import ROWS, Plan, PlanRow
from pipelines.migration.model.resource_types import AUTHORITIES, PUBLICATIONS, adopts
from pipelines.migration.model.target_reading import TargetListing
from pipelines.migration.model.wording import plural
from pipelines.migration.plan.comparison import compare_libraries
from pipelines.migration.plan.publications import written_batches
from pipelines.store.parquet import escaped, json_path, literal, quoted

EXAMPLES = 5
"""Records that the message names."""

_STALE = """
    SELECT p.source_id, p.action, p.target_id, c.action AS now, c.target_id AS now_target, c.candidates
    FROM read_parquet({rows}) AS p
    LEFT JOIN read_parquet({before}) AS b ON b.id = p.target_id
    LEFT JOIN target AS t ON t.id = p.target_id
    LEFT JOIN source AS s ON s.id = p.source_id
    LEFT JOIN merged AS c ON c.source_id = p.source_id
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

_DECIDED = f"""
    SELECT
        source_id,
        CASE WHEN action = '{Action.SKIPPED}' THEN '{Decision.SKIP}' WHEN target_id IS NULL THEN '{Decision.CREATE}'
            ELSE '{Decision.MATCH}' END AS decision,
        target_id
    FROM file WHERE resource = '{PUBLICATIONS}' AND matched_by = 'decision'
"""  # noqa: S608  our own words
"""What a person decided about matches, from the rows of the plan: without it, other records would match what these took."""


def check_fresh(plan: Plan, now: ComparableLibrary, workdir: Path, *, journal: Journal, begun: Iterable[int]) -> None:
    """Raise `StopError` where the target as it is `now` needs another plan for its publications.

    Checks the records that are still to be written, without those that an apply has `begun`: their matches, and the values to replace.
    """
    with plan.reading() as rows:
        decisions = rows.sql(_DECIDED).to_arrow_table()
    with compare_libraries(
        plan.source,
        now,
        workdir,
        written=written_batches(journal),
        decisions=decisions.to_batches(),
        same_library=plan.facts.same_library,
        overwrite=plan.facts.overwrite,
    ) as database:
        database.execute("CREATE TABLE begun (source_id BIGINT)")
        numbers = list(begun)
        if numbers:
            database.execute("INSERT INTO begun SELECT unnest(?)", [numbers])
        query = _STALE.format(
            rows=literal(escaped(plan.path(ROWS))),
            before=literal(escaped(plan.target.path(RECORDS))),
            create=Action.CREATE,
            patch=Action.PATCH,
            edited=" OR ".join(map(_edited_condition, plan.source.names)),
        )
        stale = database.execute(query).fetchmany(EXAMPLES)
        if not stale:
            return
        (count,) = database.execute(
            f"SELECT count(*) FROM ({query})"  # noqa: S608  our own query
        ).fetchone() or (len(stale),)
    facts = plan.facts
    raise StopError(
        f"Plan {plan.name} is stale: '{facts.target.tenant}' changed since the plan was made, and {count:,} of its records need another "
        f"plan now: {'; '.join(_publication_problem(*row) for row in stale)}. Nothing was written. Make a new plan: `bookferry migrate "
        f"plan {facts.source.tenant} {facts.target.tenant}`."
    )


def _edited_condition(name: str) -> str:
    """SQL: whether a field that is to be patched was changed since the plan was made, into something else than the plan wants."""
    before, now, wanted = (f"{side}.{quoted(column_of(name))}" for side in "bts")
    differs = f"{now} IS DISTINCT FROM {before} AND {now} IS DISTINCT FROM {wanted}"
    path = json_path(name)
    return f"((json_exists(p.payload, {path}) OR json_exists(p.references, {path})) AND {differs})"


def _publication_problem(  # noqa: PLR0917  the columns of a row
    source_id: int, action: str, target_id: int | None, now: str | None, now_target: int | None, candidates: list[int]
) -> str:
    if action == Action.CREATE:
        matches = [now_target] if now_target is not None else candidates
        ids = f" ({', '.join(map(str, matches[:3]))})" if matches else ""
        return f"publication {source_id} was to be created, and seems to be there now{ids}"
    if now_target != target_id:
        return f"publication {source_id} was to change {target_id}, which is not there any more, or is another record"
    return f"publication {source_id} was to change {target_id}, and people changed that ({now})"


def check_other_resources_fresh(
    plan: Plan,
    listed: Mapping[str, TargetListing],
    workdir: Path,
    *,
    journal: Journal,
    begun: Collection[tuple[str, int]],
) -> None:
    """Raise `StopError` where the target needs another plan for resources other than publications.

    Checks the records that are still to be written, without those that an apply has `begun`. `listed`: the resources that the plan writes,
    as the target lists them now. Once any publication was written, new authorities may be from the service itself, and are adopted.
    """
    if not listed:
        return
    with read_target_lists(workdir, listed) as lists:
        adopting = adopts(plan.facts.counts) and any(one.resource == PUBLICATIONS for one in journal.of_plan(plan.name))
        may_be_new = {AUTHORITIES} if adopting else set[str]()
        stale = _lost_fields(plan, lists.gone, begun)
        stale = stale or list(islice(_stale_records(plan, lists, journal, listed, begun, may_be_new), EXAMPLES))
    if stale:
        source, target = plan.facts.source.tenant, plan.facts.target.tenant
        raise StopError(
            f"Plan {plan.name} is stale: '{target}' changed since the plan was made: {'; '.join(stale)}. Nothing was written. Make a new "
            f"plan: `bookferry migrate plan {source} {target} --resources {','.join(listed)}`."
        )


def _lost_fields(plan: Plan, gone: Mapping[str, Collection[str]], begun: Collection[tuple[str, int]]) -> list[str]:
    """Fields that the plan is still to write and that no record of the target has any more: the service would refuse or ignore them."""
    resources = [resource for resource, names in gone.items() if names]
    lost = {
        (row.resource, name)
        for row in (plan.rows(Action.CREATE, Action.PATCH, resources=resources) if resources else ())
        if (row.resource, row.source_id) not in begun
        for name in gone[row.resource]
        if name in row.payload or name in row.references
    }
    return [f"{plural(resource)} have no `{name}` any more, and the plan writes it" for resource, name in sorted(lost)]


def _stale_records(  # noqa: PLR0917  both sides, and what does not count
    plan: Plan,
    lists: TargetLists,
    journal: Journal,
    resources: Collection[str],
    begun: Collection[tuple[str, int]],
    may_be_new: Collection[str],
) -> Iterator[str]:
    merged: dict[tuple[str, int], int] = {}
    for row in plan.rows(*WRITTEN_ACTIONS, resources=resources):
        if row.action == Action.MERGE:
            merged |= {(row.resource, number): row.existing_target_id for number in row.candidates}
        if (row.resource, row.source_id) in begun or (row.matched_by == "decision" and row.action == Action.CREATE):
            continue
        if row.action == Action.MERGE:
            yield from _merge_problem(row, lists)
        elif row.action == Action.PATCH:
            if problem := _patch_problem(row, lists, merged):
                yield problem
        elif row.resource not in may_be_new and (matches := lists.new_matches(plan, journal, row)):
            yield f"{row.resource} {row.source_id} was to be created, and seems to be there now ({matches[0]})"


def _merge_problem(row: PlanRow, lists: TargetLists) -> Iterator[str]:
    """Yield why a merge does not fit the records any more: one is gone, or has another key."""
    found = [lists.record(row.resource, number) for number in (row.existing_target_id, *row.candidates)]
    keys = {row.type.key(record) if row.type is not None and record is not None else None for record in found}
    if None in keys or len(keys) > 1:
        ids = ", ".join(map(str, row.candidates))
        yield f"{row.resource} {ids} were to be merged into {row.target_id}, and they are not all there any more, or have other names"


def _patch_problem(row: PlanRow, lists: TargetLists, merged: Mapping[tuple[str, int], int]) -> str | None:
    """Why a patch does not fit the record any more; None where it does. `merged`: records that the plan merges into others."""
    record = lists.record(row.resource, row.existing_target_id)
    change = f"{row.resource} {row.source_id} was to change {row.existing_target_id}"
    if record is None or row.type is None:
        return f"{change}, which is not there any more"
    before, now = row.type.compared(row.before), row.type.compared(row.type.redirected({**record}, merged))
    fits = all(
        now.get(name) == before.get(name) or digest(now.get(name)) == row.expected.get(name, "")
        for name in [*row.payload, *row.references]
    )
    return None if fits else f"{change}, and people changed that"
