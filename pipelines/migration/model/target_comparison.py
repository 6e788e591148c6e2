"""Compares the records of a plan with a later reading of the target, whichever resource they are: before an apply, and to verify it.

Where each record should be, and what the target has besides, is found in a database, table against table. The fields of the records that
are there are then compared one by one, while plan and target are read in the order of the plan (I11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from pipelines.migration.model.actions import PRESENT_ACTIONS, Action
from pipelines.migration.model.comparable import STEP, Form, Side, digest
from pipelines.migration.model.comparison_database import create_table, create_views, scratch_table
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.model.plan import SOURCE, TARGET, PlanRow
from pipelines.migration.model.resource_types import NAMES, ResourceType
from pipelines.migration.model.step import Step
from pipelines.records.values import RecordId, as_id, ids_of, record_id
from pipelines.report.rendering import NOT_SHOWN
from pipelines.store.parquet import escaped, literal, read_parquet, register_key

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TEXT, _NUMBER = pa.string(), pa.int64()
_NUMBERS = frozenset({"number", "asset_id"})
_ENTRY = ("number", "resource", "source_id", "kind", "part", "state", "target_id", "asset_id", "held", "message")
ENTRIES = scratch_table("entries", {name: _NUMBER if name in _NUMBERS else _TEXT for name in _ENTRY})
"""The journal entries of a plan."""

WRITTEN_IDS = scratch_table("written_ids", {"source_id": _TEXT, "target_id": _TEXT, "asset_id": _NUMBER, "plan": _TEXT})
"""The records that any plan created in the target, and the files that it attached to them; the first column only
of plans of this source."""

_PLANNED = f"""
    CREATE OR REPLACE TABLE planned AS
    SELECT file_row_number AS place, source_id, target_id, action, {{title}} AS title, files
    FROM {{rows}}
    WHERE resource = '{{resource}}' AND action IN {tuple(map(str, PRESENT_ACTIONS))}
"""  # noqa: S608  our own words
"""The rows of a plan of records that should be in the target, and their order; of persons without a name."""

_CHECKED = """
    CREATE OR REPLACE TABLE checked AS
    SELECT c.*, t.id IS NOT NULL AS is_there
    FROM (
        SELECT
            p.place, p.source_id, p.action, p.title, e.kind, e.state, e.message, e.held, b.source_id IS NOT NULL AS is_begun,
            CASE
                WHEN p.action <> '{create}' THEN p.target_id
                WHEN e.state = '{done}' THEN e.target_id
            END AS target_id
        FROM planned AS p
        LEFT JOIN entries AS e ON e.resource = '{resource}' AND e.source_id = p.source_id AND list_contains({kinds}, e.kind)
        LEFT JOIN (SELECT DISTINCT source_id FROM entries WHERE resource = '{resource}' AND state <> '{undone}') AS b
            ON b.source_id = p.source_id
        QUALIFY row_number() OVER (PARTITION BY p.source_id ORDER BY (e.state = '{done}')::INTEGER DESC NULLS LAST, e.number DESC) = 1
    ) AS c
    LEFT JOIN target AS t ON t.id = c.target_id
"""
"""Where each record should be, and what the journal says of its write."""

_KINDS = f"""CASE p.action
    WHEN '{Action.CREATE}' THEN ['{WriteKind.CREATE}']
    WHEN '{Action.MERGE}' THEN ['{WriteKind.MERGE}'] ELSE ['{WriteKind.PATCH}'] END"""

_DUPLICATES = """
    CREATE OR REPLACE TABLE unaccounted AS
    SELECT k.id, k.stage, k.type, k.value, CASE k.stage {ranks} END AS rank
    FROM target_keys AS k
    ANTI JOIN before AS b ON b.id = k.id
    ANTI JOIN written_ids AS w ON w.target_id = k.id
    ANTI JOIN checked AS c ON c.target_id = k.id
    WHERE rank IS NOT NULL;

    CREATE OR REPLACE TABLE duplicates AS
    SELECT n.id, s.id AS source_id, c.is_there, c.target_id, c.title, CASE n.stage
        WHEN 'identifier' THEN 'by its ' || n.type || ' ' || n.value
        WHEN 'content' THEN 'by its whole content'
        WHEN 'fingerprint' THEN 'by title, year and first author'
        ELSE 'by its name' END AS evidence
    FROM unaccounted AS n
    JOIN source_keys AS s ON s.stage = n.stage AND s.type = n.type AND s.value = n.value
    JOIN checked AS c ON c.source_id = s.id
    QUALIFY row_number() OVER (PARTITION BY n.id ORDER BY c.is_there, n.rank, s.id, n.value) = 1
"""
"""New records of the target that no plan created and that equal one of the plan."""

_APPEARED = f"""
    SELECT source_id, list(DISTINCT id ORDER BY id)
    FROM (
        SELECT source_id, id FROM duplicates
        UNION ALL
        SELECT w.source_id, t.id FROM written_ids AS w JOIN target AS t ON t.id = w.target_id ANTI JOIN before AS b ON b.id = t.id
    )
    SEMI JOIN (
        FROM checked WHERE action = '{Action.CREATE}' AND coalesce(state, '') NOT IN ('{WriteState.DONE}', '{WriteState.PARKED}')
    ) AS pending USING (source_id)
    GROUP BY ALL
    ORDER BY source_id
"""  # noqa: S608  our own words

_RENAMED = f"""
    SELECT source_id, target_id
    FROM {{rows}} SEMI JOIN before_keys AS b ON b.id = target_id AND b.stage = '{{stage}}'
    WHERE resource = '{{resource}}' AND matched_by = '{{matched_by}}' AND action IN ('{Action.UNCHANGED}', '{Action.CONFLICT}')
        AND target_id NOT IN (
            SELECT id FROM before_keys JOIN target_keys USING (id, stage, type, value) WHERE stage = '{{stage}}'
        )
    ORDER BY file_row_number
"""  # noqa: S608  our own words
"""The rows of which nothing is written, but to whose records others may refer: found by names that they do not have any more."""


class Located(NamedTuple):
    """A row of a plan with its record in the target as it is now, and what the journal says of its write."""

    row: PlanRow
    form: Form | None
    """None where the target does not have it."""
    target_id: RecordId | None
    kind: str | None
    state: str | None
    message: str | None
    held: dict[str, str | None]


class TargetComparison:
    """A plan and the target as it is `now`, in a database that has the tables of one resource after the other."""

    def __init__(self, step: Step, now: Mapping[str, Side], database: DuckDBPyConnection) -> None:
        self.step = step
        self.types = step.types
        self.plan = step.plan
        self.now = now
        self.database = database
        create_table(database, ENTRIES, step.journal.columns_of_plan(step.plan.name, _ENTRY))

    def locate(self, resource: str) -> None:
        """Make the tables of a resource."""
        plan, resource_type, database = self.plan, self.types[resource], self.database
        source, before = plan.side(SOURCE, resource), plan.side(TARGET, resource)
        create_views(database, source=source, before=before, target=self.now[resource])
        rows = self._rows_of(resource)
        title = literal(NOT_SHOWN) if resource_type.personal else "title"
        database.execute(_PLANNED.format(rows=rows, resource=resource, title=title))
        create_table(database, WRITTEN_IDS, self.step.journal.created_records(resource))
        words = {"create": Action.CREATE, "done": WriteState.DONE, "undone": WriteState.UNDONE}
        database.execute(_CHECKED.format(resource=resource, kinds=_KINDS, **words))
        stages = enumerate(resource_type.stages)
        ranks = " ".join(f"WHEN {literal(stage.name)} THEN {place}" for place, stage in stages)
        database.execute(_DUPLICATES.format(ranks=ranks))

    def appeared(self) -> list[tuple[RecordId, list[RecordId]]]:
        """The records that are still to be created and that the target seems to have now: in the source, and in the target."""
        rows = self.database.execute(_APPEARED).fetchall()
        return [(as_id(source_id), ids_of(ids)) for source_id, ids in rows]

    def renamed(self, resource: str) -> list[tuple[RecordId, RecordId]]:
        """The records that were found by their names and have others by now, or are gone: in the source, and in the target."""
        query = _RENAMED.format(
            rows=self._rows_of(resource), resource=resource, stage=NAMES[-1].name, matched_by=NAMES[-1].matched_by
        )
        return [
            (as_id(source_id), as_id(target_id)) for source_id, target_id in self.database.execute(query).fetchall()
        ]

    def _rows_of(self, resource: str) -> str:
        """The SQL that reads the plan's table with the rows of a resource."""
        path, key = next(self.plan.tables([resource]))
        register_key(self.database, key)
        return read_parquet([escaped(path)], key.fingerprint if key else "", "file_row_number = true")

    def located(self, resource: str, condition: str = "true") -> Iterator[Located]:
        """Yield the rows of a resource, those of which `checked` fulfils a condition, in their order."""
        rows, decode = self.plan.rows(*PRESENT_ACTIONS, resources=[resource]), self.now[resource].decode
        query = (
            f"SELECT c.*, t.form FROM (FROM checked WHERE {condition}) AS c LEFT JOIN target AS t ON t.id = c.target_id "  # noqa: S608
            "ORDER BY c.place"
        )
        for batch in self.database.cursor().sql(query).to_arrow_reader(STEP):
            for entry in batch.to_pylist():
                row = next(row for row in rows if str(row.source_id) == entry["source_id"])
                form = None if entry["form"] is None else decode(entry["form"])
                held = msgspec.json.decode(entry["held"]) if entry["held"] else {}
                yield Located(
                    row, form, record_id(entry["target_id"]), entry["kind"], entry["state"], entry["message"], held
                )

    def reference(self, row: PlanRow, name: str) -> Any:
        """The value of a reference to records that did not exist when the plan was made."""
        reference = row.references[name]
        ids = [
            planned or self.step.journal.target_id_of(resource, source_id) or 0
            for resource, source_id, planned in reference.records
        ]
        return reference.value(self.types[row.resource].fields[name], ids)

    def is_led(self, row: PlanRow, name: str) -> bool:
        """Whether all records to which a reference leads are in the target by now."""
        return all(
            planned is not None or self.step.journal.target_id_of(resource, source_id) is not None
            for resource, source_id, planned in row.references[name].records
        )

    def unlinked(self, located: Located, name: str) -> set[str | None]:
        """The digests that a reference has before a second request sets it: as the first one sent it, and as the target showed it then."""
        row, held = located.row, located.held
        first = self.types[row.resource].digest_of(name, row.payload.get(name, row.before.get(name)))
        return {first, held.get(name, first)}

    def differing(self, located: Located, compared: Mapping[str, str]) -> dict[str, str | None]:
        """Each field that differs from the plan, with the digest that it should have. `compared`: the record as it is."""
        row, resource_type = located.row, self.types[located.row.resource]
        expected = row.expected
        if located.kind == WriteKind.MERGE:  # which may have added to its fields
            expected = located.held
        expected = expected | {
            name: resource_type.digest_of(name, self.reference(row, name)) for name in row.references
        }
        return {name: value for name, value in expected.items() if digest(compared.get(name)) != value}


def value_before(row: PlanRow, resource_type: ResourceType) -> dict[str, str | None]:
    """Field → what the target had when the plan was made, in compared form, of what the plan changes or cannot change."""
    return {**resource_type.compared_record(row.before)} | {name: kept for name, (_sent, kept) in row.kept.items()}
