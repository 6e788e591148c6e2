"""Finds what of a plan is missing, differs or is there twice in the target as it is now, whichever resource it is.

The database of the comparison has the records; the text of a value that differs is looked up where the plan has it (I11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.inventory import noun
from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import STEP, digest
from pipelines.migration.model.comparison_database import in_steps
from pipelines.migration.model.field_mapping import several
from pipelines.migration.model.findings import Finding
from pipelines.migration.model.formatting import display_both, value_of
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.model.plan import SOURCE, TARGET
from pipelines.migration.model.reasons import DIFFERING, DUPLICATED, MISSING
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.target_comparison import Located, TargetComparison
from pipelines.migration.verify.discrepancies import MOST_CHARACTERS, Discrepancies
from pipelines.migration.verify.files import check_files
from pipelines.records.values import RecordId, id_order, record_id
from pipelines.report.rendering import NOT_SHOWN

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

KEPT = "the service keeps it otherwise than an earlier plan sent it"
_NOT_TAKEN_OUT = "its list has records that the source does not have, and nothing is taken out of such a list"
_NOT_LED = "it is not linked yet to all records to which it refers"


def check_records(comparison: TargetComparison, discrepancies: Discrepancies) -> tuple[int, int]:
    """Add every difference of records and of what describes files. Returns how many records and files were compared."""
    records = files = 0
    for resource in comparison.plan.facts.resources:
        comparison.locate(resource)
        _find_differing(comparison, discrepancies, resource)
        discrepancies.add(_others(comparison.database, resource))
        records += len(comparison.database.table("checked"))
        if comparison.types[resource].has_files:
            files += check_files(comparison.database, discrepancies, resource)
    return records, files


def _find_differing(comparison: TargetComparison, discrepancies: Discrepancies, resource: str) -> None:
    """Compare each record that is there with its row, field by field."""
    side, resource_type = comparison.now[resource], comparison.types[resource]
    for step in in_steps(comparison.located(resource, "is_there")):
        differing, not_set = [], _not_set(comparison, step)
        for located in step:
            row = located.row
            now = resource_type.compared(located.form.values) if located.form else {}
            if fields := comparison.differing(located, now):
                differing.append((located, now, fields))
            unset = not_set.get(row.source_id, ())
            discrepancies.counts[DIFFERING, False] += bool(unset and not fields)
            problem = "the request of its own that sets it was not answered with success"
            discrepancies.add(
                row.finding(DIFFERING, problem, target_id=located.target_id, field=name) for name in unset
            )
            discrepancies.add(
                row.finding(DUPLICATED, f"it was to be merged into {row.target_id}", target_id=number)
                for number in sorted(side.ids_among(row.candidates if row.action == Action.MERGE else ()), key=id_order)
            )
        _add(comparison, discrepancies, resource_type, differing)


def _not_set(comparison: TargetComparison, step: Sequence[Located]) -> dict[RecordId, list[str]]:
    """Id of a record of the source → the fields that requests of their own were to set in the target, and did not."""
    rows = [located.row for located in step if located.row.after]
    if not rows:
        return {}
    plan, ids = comparison.plan.name, [row.source_id for row in rows]
    done = comparison.step.journal.done_writes(plan, rows[0].resource, ids)
    return {
        row.source_id: [name for name in row.after if (WriteKind.ACTION, name) not in done.get(row.source_id, set())]
        for row in rows
    }


def _add(
    comparison: TargetComparison,
    discrepancies: Discrepancies,
    resource_type: ResourceType,
    differing: list[tuple[Located, dict[str, str], dict[str, str | None]]],
) -> None:
    """Add the fields that differ. The text of the wanted value is sent, in the source, in the target of before, or was sent earlier."""
    plan, resource = comparison.plan, resource_type.resource
    sources = plan.side(SOURCE, resource).forms([located.row.source_id for located, *_rest in differing])
    before = plan.side(TARGET, resource).forms([located.target_id or 0 for located, *_rest in differing])
    for located, now, fields in differing:
        row = located.row
        discrepancies.counts[DIFFERING, False] += 1
        sent = row.payload | {name: comparison.reference(row, name) for name in row.references}
        forms = (sources.get(row.source_id), before.get(located.target_id or 0))
        sides = [
            resource_type.compared_record(sent),
            *(resource_type.compared(form.values) for form in forms if form),
            {name: earlier for name, (earlier, _) in row.kept.items() if earlier is not None},
        ]
        for name, value in fields.items():
            planned = next((side[name] for side in sides if name in side and digest(side[name]) == value), None)
            expected = present = NOT_SHOWN
            if not resource_type.personal:
                expected, present = display_both(name, value_of(planned), value_of(now.get(name)), MOST_CHARACTERS)
            texts = {"field": name, "wanted": expected, "found": present}
            why, is_link = _why(located, name, now), name in row.references
            if is_link and digest(now.get(name)) in comparison.unlinked(located, name):
                why = _NOT_LED
            if name in resource_type.posted and {*several(value_of(planned) or [])} < {
                *several(value_of(now.get(name)))
            }:
                why = _NOT_TAKEN_OUT
            if is_link and not comparison.is_led(row, name):
                texts["wanted"] = ""
            discrepancies.add([row.finding(DIFFERING, why, target_id=located.target_id, **texts)])


def _why(located: Located, name: str, now: Mapping[str, str]) -> str:
    row, is_done = located.row, located.state == WriteState.DONE
    if row.action == Action.PATCH and (name in row.payload or name in row.references) and not is_done:
        return located.message or "it was not changed yet"
    if is_done and name in located.held and located.held[name] == digest(now.get(name)):
        return "the answer of the service to the write shows this already"
    if name in row.kept and row.kept[name][1] == now.get(name):
        return KEPT
    return "changed since it was written, or by the service"


def _others(database: DuckDBPyConnection, resource: str) -> Iterator[Finding]:
    """Yield the records that are there twice, those of the plan that became the same one, and those that are not in the target.

    An unaccounted record that may be a missing one goes with it, and is no duplicate.
    """
    rows = database.execute(f"""
        SELECT
            '{DUPLICATED}', source_id, id,
            'it is unknown who created it, and it is the same as ' || target_id || ', ' || evidence, title
        FROM duplicates
        WHERE is_there
        UNION ALL
        SELECT
            '{DUPLICATED}', source_id, target_id,
            '{noun(resource)} ' || first || ' of the source became the same record', title
        FROM (
            SELECT *, first_value(source_id) OVER (PARTITION BY target_id ORDER BY length(source_id), source_id) AS first
            FROM checked WHERE target_id IS NOT NULL
        )
        WHERE source_id <> first
        UNION ALL
        SELECT '{MISSING}', c.source_id, c.target_id, CASE
            WHEN action <> '{Action.CREATE}' THEN 'it was there when the plan was made, and is not there any more'
            WHEN c.target_id IS NOT NULL THEN 'it was created, and is not there any more'
            WHEN state IS NULL THEN 'it was not created yet'
            WHEN state = '{WriteState.UNDONE}' THEN 'it was created, and taken back'
            WHEN state = '{WriteState.INTENDED}' THEN 'the response to its creation was lost; applying the plan again looks it up'
            ELSE coalesce(message, state)
        END || coalesce('. It is unknown who created ' || d.ids || ', which may be it', ''), c.title
        FROM checked AS c
        LEFT JOIN (SELECT source_id, string_agg(id, ', ' ORDER BY id) AS ids FROM duplicates WHERE NOT is_there GROUP BY ALL) AS d
            ON d.source_id = c.source_id
        WHERE NOT c.is_there
        ORDER BY 1, length(source_id), source_id, 3
    """)  # noqa: S608
    while batch := rows.fetchmany(STEP):
        for code, source_id, target_id, problem, title in batch:
            yield Finding(
                code=code,
                resource=resource,
                source_id=record_id(source_id),
                target_id=record_id(target_id),
                problem=problem,
                title=title or "",
            )
