"""What is to be done with each record of the source, field by field: create, patch, nothing, or ask a person.

A patch adds what the target lacks. It replaces a value only where the journal shows that the value is ours and that nobody has touched it
since; whatever else differs is a conflict for a person (service-api.md knows no version of a record that a write could name).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import Field
from pipelines.store.parquet import literal, quoted

if TYPE_CHECKING:
    import duckdb


def merge_three_ways(
    database: duckdb.DuckDBPyConnection,
    fields: Sequence[Field],
    *,
    overwrite: bool = False,
    kept: Mapping[str, str] | None = None,
) -> None:
    """Make the table `classified`: source_id, target_id, action, matched_by, fields, conflicts, same, reason, candidates.

    Reads the tables of `matching.match` and those of its result. `source` and `target` have one column of compact JSON for each of the
    fields, null where there is nothing; `written` has `wanted` and `held`, JSON objects of field → `digest` of what was sent and of what
    the service then held. `same` are the fields that need nothing, `fields` those that are patched.
    `overwrite`: the source's value counts wherever it has one. `kept`: field → value of the source that leaves what stands in the target.
    """
    kept = kept or {}
    _digest_sides(database, fields)
    verdicts = ", ".join(
        f"{literal(one.name)}: {_verdict(one, kept.get(one.name), overwrite=overwrite)}" for one in fields
    )
    database.execute(f"""
        CREATE OR REPLACE TABLE classified AS
        SELECT
            source_id, target_id,
            CASE
                WHEN len(conflicts) > 0 THEN '{Action.CONFLICT}'
                WHEN len(fields) > 0 THEN '{Action.PATCH}'
                ELSE '{Action.UNCHANGED}'
            END AS action,
            matched_by, fields, conflicts,
            [one.key for one in map_entries(verdicts) if one.value = 'same'] AS same,
            CASE
                WHEN list_contains(map_values(verdicts), 'edited') THEN 'edited_in_target'
                WHEN len(conflicts) > 0 THEN 'fields_differ'
            END AS reason,
            []::BIGINT[] AS candidates
        FROM (
            SELECT
                *,
                [one.key for one in map_entries(verdicts) if one.value = 'patch'] AS fields,
                [one.key for one in map_entries(verdicts) if one.value IN ('conflict', 'edited')] AS conflicts
            FROM (
                SELECT m.source_id, m.target_id, m.matched_by, MAP {{{verdicts}}} AS verdicts
                FROM matched AS m
                JOIN compared_source AS s ON s.id = m.source_id
                JOIN compared_target AS t ON t.id = m.target_id
                LEFT JOIN written AS w ON w.source_id = m.source_id AND w.target_id = m.target_id
                LEFT JOIN decisions AS d ON d.source_id = m.source_id
            )
        )
        UNION ALL
        SELECT source_id, NULL, '{Action.CONFLICT}', NULL, [], [], [], reason, candidates FROM unclear
        UNION ALL
        SELECT
            id, NULL, CASE WHEN decision = 'skip' THEN '{Action.SKIPPED}' ELSE '{Action.CREATE}' END,
            CASE WHEN decision IS NOT NULL THEN 'decision' END, [], [], [], NULL, []
        FROM source
        LEFT JOIN decisions ON decisions.source_id = source.id
        ANTI JOIN matched ON matched.source_id = source.id
        ANTI JOIN unclear ON unclear.source_id = source.id
    """)  # noqa: S608  names of our own fields, quoted


def _digest_sides(database: duckdb.DuckDBPyConnection, fields: Sequence[Field]) -> None:
    """The tables `compared_source` and `compared_target`: what is compared, as digests."""
    for side in ("source", "target"):
        digests = ", ".join(f"md5_number({quoted(one.name)}) AS {quoted(one.name)}" for one in fields)
        texts = "".join(f", {quoted(one.name)} AS {quoted(one.name + _TEXT)}" for one in fields if one.is_set)
        database.execute(f"CREATE OR REPLACE TABLE compared_{side} AS SELECT id, {digests}{texts} FROM {side}")  # noqa: S608


_TEXT = ":text"
"""Behind the name of a field: its JSON itself, where a digest does not do."""


def _verdict(field: Field, kept: str | None, *, overwrite: bool) -> str:
    """same, patch, kept (the target's is left), edited (somebody changed what we wrote), or conflict."""
    ours, theirs = f"s.{quoted(field.name)}", f"t.{quoted(field.name)}"
    ours_as_before, theirs_as_before = (
        f"coalesce({value}::VARCHAR, '') = coalesce(w.{before} ->> {literal(field.name)}, '')"
        for value, before in ((ours, "wanted"), (theirs, "held"))
    )
    more = ""
    overruled = f" OR {ours} IS NOT NULL" if overwrite else ""
    if field.is_set:
        mine, other = (f"from_json({side}.{quoted(field.name + _TEXT)}, '[\"JSON\"]')" for side in "st")
        more = f"WHEN list_has_all({other}, {mine}) THEN 'kept' WHEN list_has_all({mine}, {other}) THEN 'patch'"
    left = "" if kept is None else f"WHEN {ours} = md5_number({literal(kept)}) THEN 'kept'"
    return f"""CASE
        {left}
        WHEN {ours} IS NOT DISTINCT FROM {theirs} THEN 'same'
        WHEN d.decision = 'source'{overruled} THEN 'patch'
        WHEN d.decision = 'target' THEN 'kept'
        WHEN w.held IS NOT NULL AND {theirs_as_before} THEN CASE WHEN {ours_as_before} THEN 'same' ELSE 'patch' END
        WHEN w.held IS NOT NULL AND {ours_as_before} THEN 'edited'
        WHEN w.held IS NOT NULL THEN 'conflict'
        WHEN {theirs} IS NULL THEN 'patch'
        WHEN {ours} IS NULL THEN 'kept'
        {more}
        ELSE 'conflict'
    END"""
