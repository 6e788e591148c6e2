"""Compares the records of one resource of two libraries, whichever resource it is: which records are the same, and what each side has.

Whole sets are matched in DuckDB, by their keys and never record by record (I11). The matched records are then read in the order of the
source, with everything that decides what happens to them; the rule itself is `field_merge`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from importlib import resources
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.migration.model.actions import Decision
from pipelines.migration.model.comparable import KEYS, RECORDS, STEP, Form, Side
from pipelines.migration.model.comparison_database import create_table, create_views, in_steps, scratch_table
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WrittenFile
from pipelines.migration.model.plan import ROWS, Plan
from pipelines.migration.model.resource_types import MERGEABLE, ResourceType, Stage
from pipelines.migration.model.target_reading import numbered
from pipelines.migration.plan.mapped_references import FindTarget, MappedForm, mapped
from pipelines.migration.plan.target_ids import Merged
from pipelines.records.batches import Row, batch_of_rows
from pipelines.records.values import RecordId, id_order, ids_of, record_id
from pipelines.store.parquet import escaped, literal, table_writer

if TYPE_CHECKING:
    import duckdb

    from pipelines.migration.plan.conflicts import Decisions

CANDIDATES = 20
"""Records of the target that are named at most where several may be one."""

_NUMBER, _TEXT = pa.int64(), pa.string()
WRITTEN = scratch_table("written", dict.fromkeys(("source_id", "target_id", "wanted", "held"), _TEXT))
"""The records that earlier plans wrote, with JSON: field → digest of what was sent, and of what the service then had."""

WRITTEN_FILES = scratch_table(
    "written_files",
    {
        "source_id": _TEXT,
        "number": _NUMBER,
        "kind": _TEXT,
        "part": _TEXT,
        "state": _TEXT,
        "asset_id": _NUMBER,
        "message": _TEXT,
    },
)
"""The files of records that earlier plans wrote, as in the journal."""

DECISIONS = scratch_table("decisions", dict.fromkeys(("source_id", "decision", "target_id"), _TEXT))
"""What a person decided about conflicts."""

_REMEMBERED = """
    INSERT INTO remembered
    SELECT source_id, coalesce(target_id, json_extract_string(candidates, '$[0]')), coalesce(matched_by, 'name')
    FROM read_parquet({file})
    WHERE resource = '{resource}' AND (
        (target_id IS NOT NULL AND matched_by NOT IN ('journal', 'decision')) OR (target_id IS NULL AND reason = 'deleted_in_target')
    )
"""
"""The records that an earlier plan found in the target by their keys: people may give them other names there."""

_FREE = """
    SELECT source.id
    FROM source
    ANTI JOIN matched ON matched.source_id = source.id
    ANTI JOIN ambiguous ON ambiguous.source_id = source.id
    ANTI JOIN decided ON decided.source_id = source.id
    LIMIT 1
"""
"""Whether the source has a record of which nothing is known yet."""

_GONE = """
    INSERT INTO ambiguous
    SELECT source_id, [target_id], 'deleted_in_target'
    FROM remembered
    SEMI JOIN source ON source.id = remembered.source_id
    ANTI JOIN target ON target.id = remembered.target_id
    ANTI JOIN matched ON matched.source_id = remembered.source_id
    ANTI JOIN ambiguous ON ambiguous.source_id = remembered.source_id
    ANTI JOIN decided ON decided.source_id = remembered.source_id
    ANTI JOIN written ON written.source_id = remembered.source_id
"""
"""Of those, the ones that are gone, and of which nothing else is the same."""

_TWINS = """
    SELECT m.source_id, flatten(list(g.ids)) AS twins
    FROM matched AS m
    JOIN target_keys AS k ON k.id = m.target_id AND k.stage = 'folded'
    JOIN (
        SELECT value, list(id ORDER BY id)[:{most}] AS ids FROM target_keys
        ANTI JOIN matched ON matched.target_id = target_keys.id WHERE stage = 'folded' GROUP BY value
    ) AS g ON g.value = k.value
    GROUP BY m.source_id
"""
"""Other records of the target with the name of a match, as far as no record of the source is matched with them."""

_CONTENTS = """
    SELECT CAST(publication_id AS VARCHAR) AS publication_id, list({{'kind': kind, 'position': position, 'status': status,
        'sha256': sha256, 'bytes': bytes, 'problem': problem}}) AS contents FROM {files} WHERE publication_id IS NOT NULL GROUP BY ALL
"""
_PLACES = """
    CREATE OR REPLACE TABLE places AS
    SELECT s.place, s.id, m.target_id, m.matched_by FROM source AS s LEFT JOIN matched AS m ON m.source_id = s.id
"""
_AS_WRITTEN = "SET disabled_optimizers = 'join_order,build_side_probe_side'"
"""The target's records, by far the widest rows, stream past the table of places. DuckDB would hold them instead."""

_OUTCOMES = """
    SELECT p.place, p.target_id, p.matched_by, t.form, t.files, w.wanted, w.held, a.reason, a.candidates, d.decision,
        d.target_id AS decided_id, o.twins, c.contents, f.written
    FROM target AS t
    RIGHT JOIN places AS p ON p.target_id = t.id
    LEFT JOIN written AS w ON w.source_id = p.id AND w.target_id = p.target_id
    LEFT JOIN ambiguous AS a ON a.source_id = p.id
    LEFT JOIN decisions AS d ON d.source_id = p.id
    LEFT JOIN twins AS o ON o.source_id = p.id
    LEFT JOIN contents AS c ON c.publication_id = p.id
    LEFT JOIN (
        SELECT source_id, list({'kind': kind, 'part': part, 'state': state, 'asset_id': asset_id, 'message': message} ORDER BY number)
            AS written
        FROM written_files GROUP BY source_id
    ) AS f ON f.source_id = p.id
"""


class Match(NamedTuple):
    """A record of the source with its match in the target, if it has one, and what is known of it."""

    source_id: RecordId
    source: MappedForm
    target_id: RecordId | None
    matched_by: str | None
    target: Form | None
    wanted: dict[str, str | None]
    """Field → digest of what earlier plans sent, and in `held` of what the service then had."""
    held: dict[str, str | None]
    reason: str | None
    """Why the match is ambiguous."""
    candidates: list[RecordId]
    twins: list[RecordId]
    """Other records of the target with the name of the match; for resources whose records can be merged."""
    decision: Decision | None
    decided_id: RecordId | None
    described: str | None
    """The files of the source's record, and of the target's: column `files` of `RECORDS`."""
    in_target: str | None
    contents: list[dict[str, Any]]
    """Rows of the snapshot's publication_files."""
    written: list[WrittenFile]
    """Entries of the journal on its files."""


def write_side(
    side: Side,
    records: Iterable[Mapping[str, Any]],
    resource_type: ResourceType,
    *,
    keyed_by: ResourceType | None = None,
    find_target: FindTarget | None = None,
    merged: Merged | None = None,
) -> None:
    """Write the records of one side that have an id, in comparable form.

    `keyed_by`: the same type as far as its references are known. `find_target`: of the source, whose keys have references as those of the
    target. `merged`: of the target, records that the plan merges into others. Only one batch of rows is in memory (I11).
    """
    side.folder.mkdir(parents=True, exist_ok=True)
    of_person = side.key.digest if resource_type.personal and side.key is not None else None
    keyed_by = keyed_by or resource_type
    lead = find_target if not keyed_by.key_fields.isdisjoint(keyed_by.references) else None

    def rows_of(number: RecordId, record: Mapping[str, Any]) -> tuple[Row, list[Row]]:
        form = resource_type.form(record)
        values = resource_type.redirected(form.values, merged or {})
        content = resource_type.content(resource_type.compared(values))
        if of_person is not None and content is not None:
            content = of_person(content)
        keys = [
            (str(number), stage, kind, value if of_person is None else of_person(value))
            for stage, kind, value in keyed_by.match_keys(mapped(keyed_by, form, lead).values if lead else values)
        ]
        return (str(number), content, resource_type.files(record), side.encode(form)), keys

    with table_writer(side.path(RECORDS), RECORDS) as table, table_writer(side.path(KEYS), KEYS) as key_table:
        for step in in_steps(
            starmap(rows_of, numbered(records))
        ):  # no record is kept: they would be work for the garbage collector
            table.write(batch_of_rows(RECORDS, [row for row, _keys in step]))
            key_table.write(batch_of_rows(KEYS, [key for _row, keys in step for key in keys]))


def _matches(
    database: duckdb.DuckDBPyConnection,
    resource_type: ResourceType,
    source: Side,
    target: Side,
    find_target: FindTarget,
) -> Iterator[Match]:
    """Yield each record of the source, in its order; `SLICE` are in memory."""
    database.execute(_AS_WRITTEN)
    joined = database.cursor().sql(_OUTCOMES).to_arrow_reader(SLICE)
    database.execute("RESET disabled_optimizers")
    outcomes = (
        row
        for batch in in_places(joined, source.folder)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for (source_id, described, text), (
        _place, target_id, matched_by, of_target, in_target, wanted, held, reason, candidates, decision, decided_id, twins, contents,
        written,
    ) in zip(source.rows("id", "files", "form"), outcomes, strict=True):  # fmt: skip
        form_in_target = None if of_target is None else target.decode(of_target)
        yield Match(
            source_id=source_id,
            source=mapped(resource_type, source.decode(text), find_target, form_in_target),
            target_id=record_id(target_id),
            matched_by=matched_by,
            target=form_in_target,
            wanted=msgspec.json.decode(wanted) if wanted else {},
            held=msgspec.json.decode(held) if held else {},
            reason=reason,
            candidates=sorted(ids_of(candidates), key=id_order),
            twins=sorted(ids_of(twins), key=id_order)[:CANDIDATES],
            decision=None if decision is None else Decision(decision),
            decided_id=record_id(decided_id),
            described=described,
            in_target=in_target,
            contents=contents or [],
            written=[WrittenFile(**file) for file in written or ()],
        )


SLICE = 20_000
"""Records of the source whose rows are put in order together; so many are in memory."""


def in_places(batches: Iterable[pa.RecordBatch], folder: Path) -> Iterator[pa.RecordBatch]:
    """Yield rows in the order of their column `place`, `STEP` at a time, through a file in `folder` for each `SLICE` of places.

    DuckDB's own sort runs out of memory where such wide rows are twice as large as its limit. They are read again at once, so that
    compressing them would cost more than it saves.
    """
    with tempfile.TemporaryDirectory(dir=folder) as unordered, ExitStack() as stack:
        files = dict[str, pa.ipc.RecordBatchStreamWriter]()
        for batch in batches:
            slices = pc.divide(batch["place"], SLICE)
            for number in pc.unique(slices):
                path = str(Path(unordered, f"{number.as_py():09}"))
                if path not in files:
                    files[path] = stack.enter_context(pa.ipc.new_stream(path, batch.schema))
                files[path].write_batch(batch.filter(pc.equal(slices, number)))
        stack.close()
        for path in sorted(files):
            with pa.ipc.open_stream(Path(path).read_bytes()) as rows:
                yield from rows.read_all().sort_by("place").to_batches(STEP)


def compare(
    database: duckdb.DuckDBPyConnection,
    resource_type: ResourceType,
    source: Side,
    target: Side,
    *,
    journal: Journal,
    find_target: FindTarget,
    decisions: Decisions,
    earlier: Plan | None = None,
    same_library: bool = False,
    files: str | None = None,
) -> Iterator[Match]:
    """Match the records of both sides, and yield the matches.

    `database`: its tables are those of this resource until the next one is compared. `earlier`: the newest plan of these records, of no
    persons. `files`: the snapshot's table publication_files. `find_target`: knows the records of the target to which references lead.
    """
    create_views(database, source=source, target=target)
    create_table(database, WRITTEN, _written_rows(journal, resource_type.resource))
    create_table(database, WRITTEN_FILES, journal.written_files(resource_type.resource))
    database.execute("CREATE OR REPLACE TABLE remembered (source_id VARCHAR, target_id VARCHAR, matched_by VARCHAR)")
    if earlier is not None:
        file = literal(escaped(earlier.path(ROWS)))
        database.execute(_REMEMBERED.format(file=file, resource=resource_type.resource))
    chosen = (entry for (resource, _id), entry in decisions.items() if resource == resource_type.resource)
    rows = ((decision.source_id, decision.decision, decision.target_id) for decision in chosen)
    create_table(database, DECISIONS, rows)
    database.execute("CREATE OR REPLACE TABLE same_library AS SELECT ? AS yes", [same_library])
    match(database, resource_type.stages)
    database.execute(_PLACES)
    twins = (
        _TWINS.format(most=CANDIDATES)
        if resource_type.resource in MERGEABLE
        else "SELECT '' AS source_id, []::VARCHAR[] AS twins"
    )
    database.execute(f"CREATE OR REPLACE TABLE twins AS {twins}")
    of_files = (
        _CONTENTS.format(files=f"read_parquet({literal(escaped(files))})")
        if files
        else "SELECT NULL::VARCHAR AS publication_id, NULL AS contents WHERE false"
    )
    database.execute(f"CREATE OR REPLACE TABLE contents AS {of_files}")
    return _matches(database, resource_type, source, target, find_target)


def match(database: duckdb.DuckDBPyConnection, stages: Iterable[Stage]) -> None:
    """Make the tables `matched` and `ambiguous` from the input of sql/migration/match.sql. A record in neither is new.

    The evidence in its order: a person's decision; what earlier plans wrote, according to the journal, or found by its keys; the id,
    within one library; the keys of each stage.
    """
    _run(database, "match")
    for stage in stages:
        if not database.execute(_FREE).fetchall():  # as in most plans but the first
            break
        database.execute(
            "CREATE OR REPLACE TABLE stage AS SELECT ? AS name, ? AS matched_by, ? AS gives_way", list(stage)
        )
        _run(database, "match_by_keys")
    database.execute(_GONE)


def _run(database: duckdb.DuckDBPyConnection, name: str) -> None:
    database.execute(resources.files("sql").joinpath("migration", f"{name}.sql").read_text(encoding="utf-8"))


def _written_rows(journal: Journal, resource: str) -> Iterator[tuple[Any, ...]]:
    for record in journal.written(resource):
        wanted, held = (msgspec.json.encode(digests).decode() for digests in (record.wanted, record.held))
        yield record.source_id, record.target_id, wanted, held
