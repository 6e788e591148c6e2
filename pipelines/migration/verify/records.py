"""Compares the records of a plan with a later reading of the target, whichever resource they are: missing, differing and duplicated ones.

Where each record should be, and which records are there twice, is found in a database, table against table; each record that is there is
then compared with its row field by field, while both are read in the order of the plan (I11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from pipelines.inventory import noun
from pipelines.migration.model.actions import PRESENT_ACTIONS, Action
from pipelines.migration.model.comparable import STEP, Form, digest
from pipelines.migration.model.comparison_database import comparison_database, create_table, in_steps, scratch_table
from pipelines.migration.model.formatting import display_both, value_of
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind, WriteState
from pipelines.migration.model.plan import SOURCE, TARGET, Plan, PlanRow
from pipelines.migration.model.reasons import DIFFERING, DUPLICATED, MISSING
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.target_reading import TargetNow
from pipelines.migration.plan.field_merge import FieldVerdict, merge_field
from pipelines.migration.verify.discrepancies import FINDINGS, INSERT, MOST_CHARACTERS, Discrepancies
from pipelines.migration.verify.files import check_files
from pipelines.report.rendering import NOT_SHOWN
from pipelines.store.parquet import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TEXT, _NUMBER = pa.string(), pa.int64()
_ENTRY = ("number", "resource", "source_id", "kind", "part", "state", "target_id", "asset_id", "held", "message")
_NUMBERS = frozenset({"number", "source_id", "target_id", "asset_id"})
ENTRIES = scratch_table("entries", {name: _NUMBER if name in _NUMBERS else _TEXT for name in _ENTRY})
"""The journal entries of a plan."""

WRITTEN_IDS = scratch_table("written_ids", {"target_id": _NUMBER, "asset_id": _NUMBER})
"""The records that any plan created in the target, and the files that it attached to them."""

_PLANNED = ("source_id", "target_id", "action", "title", "files")
PLANNED = scratch_table(
    "planned", {"place": _NUMBER, **{name: _NUMBER if name in _NUMBERS else _TEXT for name in _PLANNED}}
)
"""The rows of a plan of records that should be in the target, in their order; without anything of persons but their ids."""

KEPT = "the service keeps it otherwise than an earlier plan sent it"


class RecordVerification:
    """The comparison of a plan with the target as it is now, and how much it compared. `now`: resource → its records."""

    def __init__(
        self, plan: Plan, journal: Journal, now: Mapping[str, TargetNow], discrepancies: Discrepancies
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._now = now
        self._found = discrepancies
        self._database = discrepancies.database
        self.records = self.files = 0

    def run(self) -> None:
        """Add every difference."""
        entries = self._journal.columns_of_plan(self._plan.name, _ENTRY)
        create_table(self._database, ENTRIES, entries)
        for resource in self._plan.facts.resources:
            self._compare(resource, self._now[resource].type)

    def _compare(self, resource: str, resource_type: ResourceType) -> None:
        sides = {"source": SOURCE, "before": TARGET}
        for name, side in (
            *((name, self._plan.side(folder, resource)) for name, folder in sides.items()),
            ("target", self._now[resource].side),
        ):
            for view in side.views(name):
                self._database.execute(view)
        create_table(self._database, PLANNED, self._planned(resource, resource_type))
        create_table(self._database, WRITTEN_IDS, self._journal.created_records(resource))
        _locate(self._database, resource)
        self._find_differing(resource, resource_type)
        _find_duplicated(self._database, resource, resource_type)
        _find_missing(self._database, resource)
        self.records += len(self._database.table("checked"))
        if resource_type.has_files:
            self.files += check_files(self._found, resource)

    def _planned(self, resource: str, resource_type: ResourceType) -> Iterator[tuple[Any, ...]]:
        for place, row in enumerate(self._plan.columns(resource, _PLANNED, *PRESENT_ACTIONS)):
            yield place, *(row if not resource_type.personal else (*row[:3], NOT_SHOWN, None))

    def _find_differing(self, resource: str, resource_type: ResourceType) -> None:
        """Compare each record that is there with its row, field by field."""
        decode = self._now[resource].side.decode
        checked = (
            row
            for batch in self._database.cursor()
            .sql("SELECT c.*, t.form FROM checked AS c LEFT JOIN target AS t ON t.id = c.target_id ORDER BY place")
            .to_arrow_reader(STEP)
            for row in batch.to_pylist()
        )
        rows = self._plan.rows(*PRESENT_ACTIONS, resources=[resource])
        for step in in_steps(zip(rows, checked, strict=True)):
            differing = []
            for row, entry in step:
                form = None if entry["form"] is None else decode(entry["form"])
                if form is not None and (fields := list(self._fields(row, entry, resource_type, form))):
                    differing.append((row, entry, resource_type.compared(form.values), fields))
            self._add(resource_type, differing)
            self._found.add(
                row.finding(DUPLICATED, f"it was to be merged into {row.target_id}", target_id=number)
                for row, entry in step
                if row.action == Action.MERGE and entry["form"] is not None
                for number in sorted(self._now[resource].side.ids_among(row.candidates))
            )

    def _fields(
        self, row: PlanRow, entry: Mapping[str, Any], resource_type: ResourceType, form: Form
    ) -> Iterator[tuple[str, str | None]]:
        """Yield each field that differs from the plan, with the digest that it should have."""
        expected = row.expected
        if row.action == Action.MERGE:  # which may have added to its fields
            expected = msgspec.json.decode(entry["held"]) if entry["held"] else {}
        if row.references:
            expected = expected | {
                name: resource_type.digest_of(name, self._reference(row, name)) for name in row.references
            }
        now = resource_type.compared(form.values)
        planned = resource_type.compared_record(row.payload) if entry["kind"] == WriteKind.ADOPT else {}
        for name, value in expected.items():
            if digest(now.get(name)) != value and not (
                entry["kind"] == WriteKind.ADOPT and _is_contained(resource_type, name, planned, now)
            ):
                yield name, value

    def _reference(self, row: PlanRow, name: str) -> Any:
        """The value of a reference to records that did not exist when the plan was made."""
        reference = row.references[name]
        pairs = zip(reference.source_ids, reference.target_ids, strict=True)
        ids = [
            planned or self._journal.target_id_of(reference.resource, source_id) or 0 for source_id, planned in pairs
        ]
        return reference.value(name, self._now[row.resource].type, ids)

    def _add(
        self,
        resource_type: ResourceType,
        differing: Sequence[tuple[PlanRow, Mapping[str, Any], Mapping[str, str], list[tuple[str, str | None]]]],
    ) -> None:
        """Add the fields that differ. The text of the wanted value is sent, in the source, in the target of before, or was sent earlier."""
        if not differing:
            return
        resource = resource_type.resource
        sources = self._plan.side(SOURCE, resource).forms([row.source_id for row, *_rest in differing])
        before = self._plan.side(TARGET, resource).forms([row.target_id for row, *_rest in differing if row.target_id])
        for row, entry, now, fields in differing:
            sides = [
                resource_type.compared_record(
                    row.payload | {name: self._reference(row, name) for name in row.references}
                )
            ]
            sides += [
                resource_type.compared(form.values)
                for form in (sources.get(row.source_id), before.get(row.target_id or 0))
                if form
            ]
            sides.append({name: sent for name, (sent, _) in row.kept.items() if sent is not None})
            held = msgspec.json.decode(entry["held"]) if entry["held"] else {}
            for name, value in fields:
                planned = next((side[name] for side in sides if name in side and digest(side[name]) == value), None)
                wanted = found = NOT_SHOWN
                if not resource_type.personal:
                    wanted, found = display_both(name, value_of(planned), value_of(now.get(name)), MOST_CHARACTERS)
                why, target_id = _why(row, entry, name, held, now), entry["target_id"]
                self._found.add(
                    [row.finding(DIFFERING, why, target_id=target_id, field=name, wanted=wanted, found=found)]
                )


def _why(
    row: PlanRow,
    entry: Mapping[str, Any],
    name: str,
    held: Mapping[str, str | None],
    now: Mapping[str, str],
) -> str:
    if (
        row.action == Action.PATCH
        and (name in row.payload or name in row.references)
        and entry["state"] != WriteState.DONE
    ):
        return entry["message"] or "it was not changed yet"
    if entry["state"] == WriteState.DONE and name in held and held[name] == digest(now.get(name)):
        return "the service had this value right after it was written"
    return (
        KEPT
        if name in row.kept and row.kept[name][1] == now.get(name)
        else "changed since it was written, or by the service"
    )


def _is_contained(resource_type: ResourceType, name: str, planned: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether a field of an adopted record has at least what the source has, so that a plan would leave it."""
    verdict = merge_field(planned.get(name), now.get(name), is_set=name in resource_type.lists)
    return verdict == FieldVerdict.KEEP


def _locate(database: DuckDBPyConnection, resource: str) -> None:
    """Creates `checked`: where each record should be, and what the journal says of its write."""
    kinds = f"""CASE p.action
        WHEN '{Action.CREATE}' THEN ['{WriteKind.CREATE}', '{WriteKind.ADOPT}']
        WHEN '{Action.MERGE}' THEN ['{WriteKind.MERGE}'] ELSE ['{WriteKind.PATCH}'] END"""
    database.execute(f"""
        CREATE OR REPLACE TABLE checked AS
        SELECT c.*, t.id IS NOT NULL AS is_there
        FROM (
            SELECT
                p.place, p.source_id, p.action, p.title, e.kind, e.state, e.message, e.held,
                CASE
                    WHEN p.action <> '{Action.CREATE}' THEN p.target_id
                    WHEN e.state = '{WriteState.DONE}' THEN e.target_id
                END AS target_id
            FROM planned AS p
            LEFT JOIN entries AS e ON e.resource = '{resource}' AND e.source_id = p.source_id AND list_contains({kinds}, e.kind)
            QUALIFY row_number() OVER (
                PARTITION BY p.source_id ORDER BY (e.state = '{WriteState.DONE}')::INTEGER DESC NULLS LAST, e.number DESC
            ) = 1
        ) AS c
        LEFT JOIN target AS t ON t.id = c.target_id
    """)  # noqa: S608  our own words


def _find_duplicated(database: DuckDBPyConnection, resource: str, resource_type: ResourceType) -> None:
    """Finds new records of the target that no plan created and that equal one of the plan; and two of the plan that became the same one."""
    ranks = " ".join(f"WHEN {literal(stage.name)} THEN {place}" for place, stage in enumerate(resource_type.stages))
    database.execute(f"""
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
        QUALIFY row_number() OVER (PARTITION BY n.id ORDER BY c.is_there, n.rank, s.id, n.value) = 1;

        {INSERT}
        SELECT
            '{DUPLICATED}', '{resource}', source_id, id,
            'it is unknown who created it, and it is the same as ' || target_id || ', ' || evidence, title
        FROM duplicates
        WHERE is_there;

        {INSERT}
        SELECT
            '{DUPLICATED}', '{resource}', source_id, target_id,
            '{noun(resource)} ' || first || ' of the source became the same record', title
        FROM (SELECT *, min(source_id) OVER (PARTITION BY target_id) AS first FROM checked WHERE target_id IS NOT NULL)
        WHERE source_id <> first;
    """)  # noqa: S608


def _find_missing(database: DuckDBPyConnection, resource: str) -> None:
    """Finds records that are not in the target. An unaccounted record that may be one of them goes with it, and is no duplicate."""
    database.execute(f"""
        {INSERT}
        SELECT '{MISSING}', '{resource}', c.source_id, c.target_id, CASE
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
    """)  # noqa: S608


@contextmanager
def compare_with_target(
    plan: Plan, now: Mapping[str, TargetNow], workdir: Path, journal: Journal
) -> Iterator[tuple[Discrepancies, RecordVerification]]:
    """Compares the records and the descriptions of files; the database is in `workdir` for the length of the block."""
    with comparison_database(workdir, {}) as database:
        create_table(database, FINDINGS)
        discrepancies = Discrepancies(database)
        verification = RecordVerification(plan, journal, now, discrepancies)
        verification.run()
        yield discrepancies, verification
