"""Compares the publications of a plan with a later reading of the target: missing, differing and duplicated records.

In a database, table against table: every field of every record is compared, and no single record is decoded in Python (I11).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import ComparableLibrary, column_of
from pipelines.migration.model.comparison_database import comparison_database, create_table
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.model.plan import ROWS, Plan
from pipelines.migration.model.reasons import DIFFERING, DUPLICATED, MISSING
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.plan.references.publications import map_references
from pipelines.migration.plan.rows import batches_of
from pipelines.migration.verify.discrepancies import FINDINGS, INSERT, Discrepancies
from pipelines.publication_fields import REFERENCES, WRITTEN
from pipelines.records.tables.description import Column, Table
from pipelines.store.parquet import escaped, json_path, literal, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TEXT, _NUMBER = pa.string(), pa.int64()
_ENTRY = ("resource", "source_id", "kind", "part", "state", "target_id", "asset_id", "held", "message")
ENTRIES = Table(
    "entries",
    "The journal entries of a plan.",
    (),
    tuple(Column(name, _NUMBER if name.endswith("_id") else _TEXT, "As in the journal.") for name in _ENTRY),
)
WRITTEN_IDS = Table(
    "written_ids",
    "The records and files that any plan created in the target.",
    (),
    (Column("target_id", _NUMBER, "The record."), Column("asset_id", _NUMBER, "The file; empty for the record.")),
)

_WITH_REFERENCES = f"""
    CREATE OR REPLACE TEMP VIEW planned AS
    SELECT p.* REPLACE (CASE
        WHEN p.references IS NOT NULL THEN json_merge_patch(coalesce(p.expected, '{{{{}}}}'), {{references}})
        ELSE p.expected
    END AS expected)
    FROM {{rows}} AS p
    LEFT JOIN source AS s ON s.id = p.source_id
    WHERE p.resource = '{PUBLICATIONS}'
"""  # noqa: S608  our own names
"""The plan's rows, with the references to records that did not exist when the plan was made."""


@contextmanager
def compare_with_target(plan: Plan, now: ComparableLibrary, workdir: Path, journal: Journal) -> Iterator[Discrepancies]:
    """Compares the publications, in a database in `workdir` for the length of the block.

    The database has the tables `checked` (source_id, action, target_id, state, message, is_there, fields: one row for each record that
    should be in the target), `entries` and `written_ids`, and the views `planned`, `source`, `before` (the target when the plan was made)
    and `target`.
    """
    with comparison_database(workdir, {"source": plan.source, "before": plan.target, "target": now}) as database:
        contributors, links = map_references(database, plan.source, find_target=journal.target_id_of)
        rows = f"read_parquet({literal(escaped(plan.path(ROWS)))})"
        database.execute(f"CREATE TEMP VIEW planned AS FROM {rows} WHERE resource = '{PUBLICATIONS}'")
        if mapped := (*contributors, *links):
            database.execute(_WITH_REFERENCES.format(rows=rows, references=", ".join(map(_expected_reference, mapped))))
        create_table(database, FINDINGS)
        create_table(database, ENTRIES, batches_of(ENTRIES, journal.columns_of_plan(plan.name, _ENTRY)))
        create_table(database, WRITTEN_IDS, batches_of(WRITTEN_IDS, journal.created_records(PUBLICATIONS)))
        _compare_fields(database, REFERENCES if plan.facts.same_library else contributors, plan.source.names)
        _find_differing(database, plan.source.names)
        _find_duplicated(database)
        _find_missing(database)
        yield Discrepancies(database)


def _expected_reference(name: str) -> str:
    """SQL of a JSON object: the digest of a reference that the plan could not know yet, and no member for any other field."""
    value = f"md5_number(s.{quoted(column_of(name))})::VARCHAR"
    return f"CASE WHEN json_exists(p.references, {json_path(name)}) THEN json_object({literal(name)}, {value}) ELSE '{{}}' END"


def _compare_fields(database: DuckDBPyConnection, references: Sequence[str], fields: Sequence[str]) -> None:
    """Creates `checked`: where each record should be, and which of its fields differ from the plan, for fields that the plan expects.

    A record that equals the source's is as planned. Digests, which take long to write as text, are compared for the others only.
    """
    whole = ("content", *references, *(column_of(name) for name in fields if name not in WRITTEN))
    same = " AND ".join(f"s.{quoted(name)} IS NOT DISTINCT FROM t.{quoted(name)}" for name in whole)
    columns = ", ".join(map(quoted, ("id", *whole)))
    paths = ", ".join(map(json_path, fields))
    found = (f"coalesce('\"' || md5_number({quoted(column_of(name))}) || '\"', 'null')" for name in fields)
    differing = ", ".join(
        f"CASE WHEN wanted[{place}]::VARCHAR <> {value} THEN {literal(name)} END"
        for place, (name, value) in enumerate(zip(fields, found, strict=True), 1)
    )
    database.execute(f"""
        CREATE TABLE located AS
        SELECT p.*, t.id IS NOT NULL AS is_there, s.id IS NOT NULL AND {same} AS is_same
        FROM (
            SELECT
                p.source_id, p.action, e.state, e.message,
                CASE
                    WHEN p.action <> '{Action.CREATE}' THEN p.target_id
                    WHEN e.state = '{WriteState.DONE}' THEN e.target_id
                END AS target_id
            FROM planned AS p
            LEFT JOIN entries AS e ON e.resource = p.resource AND e.source_id = p.source_id
                AND e.kind = CASE p.action WHEN '{Action.CREATE}' THEN '{WriteKind.CREATE}' ELSE '{WriteKind.PATCH}' END
            WHERE p.action IN ('{Action.CREATE}', '{Action.PATCH}', '{Action.UNCHANGED}')
        ) AS p
        LEFT JOIN (SELECT {columns} FROM source) AS s ON s.id = p.source_id
        LEFT JOIN (SELECT {columns} FROM target) AS t ON t.id = p.target_id;

        CREATE TABLE differing_fields AS
        SELECT source_id, [name for name in [{differing}] if name IS NOT NULL] AS fields
        FROM (
            SELECT p.source_id, json_extract(r.expected, [{paths}]) AS wanted, t.*
            FROM (FROM located WHERE is_there AND NOT is_same) AS p
            JOIN planned AS r ON r.source_id = p.source_id
            JOIN target AS t ON t.id = p.target_id
        );

        CREATE TABLE checked AS
        SELECT p.* EXCLUDE is_same, coalesce(d.fields, []) AS fields
        FROM located AS p
        LEFT JOIN differing_fields AS d ON d.source_id = p.source_id;
    """)  # noqa: S608  our own names


def _find_differing(database: DuckDBPyConnection, fields: Sequence[str]) -> None:
    """One finding for each field. The text of the wanted value is in the source, or in the target of before where the plan left it."""

    def value_in(side: str) -> str:
        columns = ((literal(name), quoted(column_of(name))) for name in fields)
        return f"CASE field {' '.join(f'WHEN {name} THEN {side}.{column}' for name, column in columns)} END"

    database.execute(f"""
        {INSERT}
        SELECT
            '{DIFFERING}', source_id, target_id, field,
            CASE wanted WHEN md5_number(in_source)::VARCHAR THEN in_source WHEN md5_number(earlier)::VARCHAR THEN earlier END,
            found,
            CASE
                WHEN action = '{Action.PATCH}' AND wanted IS NOT DISTINCT FROM md5_number(in_source)::VARCHAR
                    AND wanted IS DISTINCT FROM md5_number(earlier)::VARCHAR AND state IS DISTINCT FROM '{WriteState.DONE}'
                    THEN coalesce(message, 'it was not changed yet')
                WHEN state = '{WriteState.DONE}' AND held ->> field IS NOT DISTINCT FROM md5_number(found)::VARCHAR
                    AND list_contains(json_keys(held), field)
                    THEN 'the service had this value right after it was written'
                WHEN json_exists(kept, '$."' || field || '"') THEN 'the service keeps it otherwise than an earlier plan sent it'
                ELSE 'changed since it was written, or by the service'
            END
        FROM (
            SELECT
                c.*, p.expected ->> c.field AS wanted, e.held, p.kept,
                {value_in("s")} AS in_source, {value_in("b")} AS earlier, {value_in("t")} AS found
            FROM (SELECT * EXCLUDE fields, unnest(fields) AS field FROM checked WHERE len(fields) > 0) AS c
            JOIN planned AS p ON p.source_id = c.source_id
            JOIN target AS t ON t.id = c.target_id
            LEFT JOIN source AS s ON s.id = c.source_id
            LEFT JOIN before AS b ON b.id = c.target_id
            LEFT JOIN entries AS e ON e.resource = '{PUBLICATIONS}' AND e.source_id = c.source_id
                AND e.kind = CASE c.action WHEN '{Action.CREATE}' THEN '{WriteKind.CREATE}' ELSE '{WriteKind.PATCH}' END
        )
    """)  # noqa: S608


def _find_duplicated(database: DuckDBPyConnection) -> None:
    """Finds new records of the target that no plan created and that equal one of the plan; and two of the plan that became the same one."""
    same = " UNION ALL ".join(
        f"SELECT n.id, s.id AS source_id, {rank} AS rank, {evidence} AS evidence FROM unaccounted AS n JOIN {source} AS s ON {condition}"  # noqa: S608
        for rank, evidence, source, condition in (
            (1, "'by its ' || s.type || ' ' || s.value", "source_keys", "s.type = n.type AND s.value = n.value"),
            (2, "'by its whole content'", "source", "s.content = n.content"),
            (3, "'by title, year and first author'", "source", "s.fingerprint = n.fingerprint"),
        )
    )
    database.execute(f"""
        CREATE TABLE unaccounted AS
        SELECT t.id, t.content, t.fingerprint, k.type, k.value
        FROM target AS t
        ANTI JOIN before AS b ON b.id = t.id
        ANTI JOIN written_ids AS w ON w.target_id = t.id
        LEFT JOIN target_keys AS k ON k.id = t.id;

        CREATE TABLE duplicates AS
        SELECT id, source_id, is_there, target_id, evidence
        FROM (SELECT s.*, c.is_there, c.target_id FROM ({same}) AS s JOIN checked AS c ON c.source_id = s.source_id)
        QUALIFY row_number() OVER (PARTITION BY id ORDER BY is_there, rank, source_id, evidence) = 1;

        {INSERT}
        SELECT
            '{DUPLICATED}', source_id, id, NULL, NULL, NULL,
            'it is unknown who created it, and it is the same as ' || target_id || ', ' || evidence
        FROM duplicates
        WHERE is_there;

        {INSERT}
        SELECT '{DUPLICATED}', source_id, target_id, NULL, NULL, NULL, 'publication ' || first || ' of the source became the same record'
        FROM (SELECT *, min(source_id) OVER (PARTITION BY target_id) AS first FROM checked WHERE target_id IS NOT NULL)
        WHERE source_id <> first;
    """)  # noqa: S608


def _find_missing(database: DuckDBPyConnection) -> None:
    """Finds records that are not in the target. An unaccounted record that may be one of them goes with it, and is no duplicate."""
    database.execute(f"""
        {INSERT}
        SELECT '{MISSING}', c.source_id, c.target_id, NULL, NULL, NULL, CASE
            WHEN action <> '{Action.CREATE}' THEN 'it was there when the plan was made, and is not there any more'
            WHEN c.target_id IS NOT NULL THEN 'it was created, and is not there any more'
            WHEN state IS NULL THEN 'it was not created yet'
            WHEN state = '{WriteState.UNDONE}' THEN 'it was created, and taken back'
            WHEN state = '{WriteState.INTENDED}' THEN 'the response to its creation was lost; applying the plan again looks it up'
            ELSE coalesce(message, state)
        END || coalesce('. It is unknown who created ' || d.ids || ', which may be it', '')
        FROM checked AS c
        LEFT JOIN (SELECT source_id, string_agg(id, ', ' ORDER BY id) AS ids FROM duplicates WHERE NOT is_there GROUP BY ALL) AS d
            ON d.source_id = c.source_id
        WHERE NOT c.is_there
    """)  # noqa: S608
