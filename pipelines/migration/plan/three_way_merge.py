"""Merges all matched publications from three sides, field by field, in SQL: create, patch, nothing, or a conflict for a person.

The rule is that of field_merge.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.migration.model.actions import Action, Decision
from pipelines.migration.model.comparable import Field
from pipelines.migration.plan.field_merge import CONFLICTS, FieldVerdict
from pipelines.records.forms import precision_of
from pipelines.store.parquet import json_path, literal, quoted

if TYPE_CHECKING:
    import duckdb


def merge_three_ways(
    database: duckdb.DuckDBPyConnection,
    fields: Sequence[Field],
    *,
    overwrite: bool = False,
    keep_target_at: Mapping[str, str] | None = None,
) -> None:
    """Make the table `merged`: source_id, target_id, action, matched_by, fields, conflicts, same, kept, reason, candidates, target_digests.

    Reads the input tables of `matching.match` and its result. `source` and `target` have a column of compact JSON for each field, null
    where the field is empty; `written` has `wanted` and `held`, JSON objects of field → `digest` of what was sent and of what the service
    then had. In the result, `fields` are patched, `conflicts` wait for a person, and `same` need nothing; `kept` are those of `same` that
    were sent and that the service keeps otherwise; `target_digests` is a JSON object of field → digest of what the target has, of the
    others of `same` that differ. `overwrite`: the source's value counts wherever it has one. `keep_target_at`: field → the value of the
    source with which the target keeps its own.
    """
    keep_target_at = keep_target_at or {}
    _digest_sides(database, fields)
    verdicts = [_verdict(field, keep_target_at.get(field.name), overwrite=overwrite) for field in fields]
    database.execute(f"""
        CREATE OR REPLACE TABLE merged AS
        {_matched_records(fields, verdicts)}
        UNION ALL
        SELECT source_id, NULL, '{Action.CONFLICT}', NULL, [], [], [], [], reason, candidates, NULL FROM ambiguous
        UNION ALL
        SELECT
            id, NULL, CASE WHEN decision = '{Decision.SKIP}' THEN '{Action.SKIPPED}' ELSE '{Action.CREATE}' END,
            CASE WHEN decision IS NOT NULL THEN 'decision' END, [], [], [], [], NULL, [], NULL
        FROM source
        LEFT JOIN decisions ON decisions.source_id = source.id
        ANTI JOIN matched ON matched.source_id = source.id
        ANTI JOIN ambiguous ON ambiguous.source_id = source.id
    """)  # noqa: S608  our own names, quoted


def _matched_records(fields: Sequence[Field], verdicts: Sequence[str]) -> str:
    """SQL of the merged records that have a match; `verdicts`: SQL of the verdict of each field."""
    columns = "".join(
        f", {verdict} AS verdict_{place}, {source} IS DISTINCT FROM {target} AS differs_{place}, {target} AS target_{place}"
        f", coalesce(json_exists(w.wanted, {json_path(fields[place].name)}), false) AS sent_{place}"
        for place, verdict in enumerate(verdicts)
        for source, target in [[f"{side}.{quoted(fields[place].column)}" for side in "st"]]
    )
    kept = ", ".join(
        f"CASE WHEN verdict_{place} = '{FieldVerdict.SAME}' AND differs_{place} AND sent_{place} THEN {literal(field.name)} END"
        for place, field in enumerate(fields)
    )
    reasons = "\n".join(
        f"WHEN list_contains(map_values(verdicts), {literal(verdict)}) THEN {literal(reason)}"
        for verdict, reason in CONFLICTS.items()
    )
    verdict_of = ", ".join(f"{literal(field.name)}: verdict_{place}" for place, field in enumerate(fields))
    return f"""
        SELECT
            source_id, target_id,
            CASE
                WHEN len(conflicts) > 0 THEN '{Action.CONFLICT}'
                WHEN len(fields) > 0 THEN '{Action.PATCH}'
                ELSE '{Action.UNCHANGED}'
            END AS action,
            matched_by, fields, conflicts,
            [entry.key for entry in map_entries(verdicts) if entry.value = '{FieldVerdict.SAME}'] AS same,
            kept,
            CASE
                {reasons}
            END AS reason,
            []::BIGINT[] AS candidates,
            target_digests
        FROM (
            SELECT
                *,
                [entry.key for entry in map_entries(verdicts) if entry.value = '{FieldVerdict.PATCH}'] AS fields,
                [
                    entry.key for entry in map_entries(verdicts)
                    if entry.value IN ({", ".join(map(literal, CONFLICTS))})
                ] AS conflicts
            FROM (
                SELECT
                    source_id, target_id, matched_by, MAP {{{verdict_of}}} AS verdicts, {_target_digests(fields)} AS target_digests,
                    [name for name in [{kept}] if name IS NOT NULL] AS kept
                FROM (
                    SELECT m.source_id, m.target_id, m.matched_by{columns}
                    FROM matched AS m
                    JOIN compared_source AS s ON s.id = m.source_id
                    JOIN compared_target AS t ON t.id = m.target_id
                    LEFT JOIN written AS w ON w.source_id = m.source_id AND w.target_id = m.target_id
                    LEFT JOIN decisions AS d ON d.source_id = m.source_id
                )
            )
        )
    """  # noqa: S608  our own names, quoted


def _target_digests(fields: Sequence[Field]) -> str:
    """SQL of a JSON object: digests of what the target has, for fields that need nothing, were never sent, and yet differ.

    For the other fields, Python makes the digest of the source's text faster than DuckDB writes one.
    """
    members = (
        f"CASE WHEN verdict_{place} = '{FieldVerdict.SAME}' AND differs_{place} AND NOT sent_{place} "
        f"THEN ',\"{field.name}\":' || coalesce('\"' || target_{place} || '\"', 'null') END"
        for place, field in enumerate(fields)
    )
    return f"nullif('{{' || substr(concat({', '.join(members)}), 2) || '}}', '{{}}')"


def _digest_sides(database: duckdb.DuckDBPyConnection, fields: Sequence[Field]) -> None:
    """Make the tables `compared_source` and `compared_target`: the digest of each field, and the JSON of sets."""
    for side in ("source", "target"):
        digests = ", ".join(f"md5_number({quoted(field.column)}) AS {quoted(field.column)}" for field in fields)
        texts = "".join(
            f", {_text(field, side)} AS {quoted(field.column + _TEXT)}"
            for field in fields
            if field.is_set or field.is_date
        )
        database.execute(f"CREATE OR REPLACE TABLE compared_{side} AS SELECT id, {digests}{texts} FROM {side}")  # noqa: S608


def _text(field: Field, side: str) -> str:
    """SQL of what a digest cannot tell: what a set contains, and how a date begins; of the source, the year or month sent as a day."""
    if field.is_date and side == "source":
        return f"unsent ->> {json_path(precision_of(field.name))}"
    return quoted(field.column)


_TEXT = ":text"
"""Suffix of the column with the text of a set or a date."""


def _verdict(field: Field, keep_target_at: str | None, *, overwrite: bool) -> str:
    """SQL of the verdict for one field, in the order of `field_merge.merge_field`."""
    source, target = f"s.{quoted(field.column)}", f"t.{quoted(field.column)}"
    text = quoted(field.column + _TEXT)
    source_unchanged, target_unchanged = (
        f"coalesce({value}::VARCHAR, '') = coalesce(w.{before} ->> {literal(field.name)}, '')"
        for value, before in ((source, "wanted"), (target, "held"))
    )
    overwritten = f"WHEN {source} IS NOT NULL THEN '{FieldVerdict.PATCH}'" if overwrite else ""
    keep = (
        ""
        if keep_target_at is None
        else f"WHEN {source} = md5_number({literal(keep_target_at)}) THEN '{FieldVerdict.KEEP}'"
    )
    is_held, is_wanted = (f"json_exists(w.{side}, {json_path(field.name)})" for side in ("held", "wanted"))
    sets = period = ""
    if field.is_date:  # a day within the year or month of the source says more than its first day
        period = f"""WHEN starts_with(t.{text}, '"' || s.{text}) THEN '{FieldVerdict.KEEP}'"""
    if field.is_set:
        of_source, of_target = (f"from_json({side}.{text}, '[\"JSON\"]')" for side in "st")
        sets = (
            f"WHEN list_has_all({of_target}, {of_source}) THEN '{FieldVerdict.KEEP}' "
            f"WHEN list_has_all({of_source}, {of_target}) THEN '{FieldVerdict.PATCH}'"
        )
    return f"""CASE
        {keep}
        WHEN {source} IS NOT DISTINCT FROM {target} THEN '{FieldVerdict.SAME}'
        {period}
        WHEN d.decision = '{Decision.SOURCE}' THEN '{FieldVerdict.PATCH}'
        WHEN {is_held} AND {target_unchanged} AND {source_unchanged} THEN '{FieldVerdict.SAME}'
        {overwritten}
        WHEN d.decision = '{Decision.TARGET}' THEN '{FieldVerdict.KEEP}'
        WHEN {is_held} AND {target_unchanged} THEN '{FieldVerdict.PATCH}'
        WHEN {is_wanted} AND {source_unchanged} THEN '{FieldVerdict.EDITED}'
        WHEN {is_wanted} THEN '{FieldVerdict.EDITED_IN_BOTH}'
        WHEN {target} IS NULL THEN '{FieldVerdict.PATCH}'
        WHEN {source} IS NULL THEN '{FieldVerdict.KEEP}'
        {sets}
        ELSE '{FieldVerdict.CONFLICT}'
    END"""
