"""Makes a plan from a snapshot of the source and one reading of the target: set against set, then row by row in the source's order.

Nothing of a library is held in memory: both sides are Parquet files, the comparison is a database beside them, and the rows of the plan go
out as those of the source come in (I11).
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.migration.model.comparable import CONTRIBUTOR, RECORDS, STEP, ComparableLibrary, digest, sent_json
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import (
    CONFLICT,
    CREATE,
    PATCH,
    PRESENT_ACTIONS,
    QUARANTINED,
    UNCHANGED,
    UPLOAD,
    FileCounts,
    PlannedFile,
    PlannedReference,
)
from pipelines.migration.model.plan_table import PLAN
from pipelines.migration.model.resource_types import PUBLICATIONS, USERS
from pipelines.migration.plan.comparison import DECISIONS, WRITTEN, compare_libraries
from pipelines.migration.plan.contributors import UNKNOWN, note_contributors
from pipelines.migration.plan.files import described_files, planned_files, requests_of, unsent_with_files
from pipelines.records.batches import Row, table_batch, transposed
from pipelines.records.forms import WRITTEN as FORM_FIELDS
from pipelines.records.publications import REFERENCES
from pipelines.records.residue import bounded, residue_counts, residue_json
from pipelines.service_limits import PER_PAGE
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import TableWriter, exactly, literal, quoted, row_batches

if TYPE_CHECKING:
    import duckdb

    from pipelines.migration.plan.conflicts import Decision
    from pipelines.migration.plan.match_store import MatchStore

ORGANIZATION = "organization"

NOTHING_TO_SEND = "nothing_to_send"
"""Reason of a quarantined record: nothing of it can be sent."""

NOTHING: dict[str, Any] = {"authors": [], "identifiers": [], "categories": []}
"""What empties a field; null does it for the others."""


@dataclass
class Totals:
    """What the rows of a plan add up to."""

    source: int
    """Records of the source; `target` likewise."""
    target: int
    unfit: int
    together: bool
    """Whether files go with the record that is created."""
    actions: Counter[str] = field(default_factory=Counter)
    matched_by: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    unsent: Counter[str] = field(default_factory=Counter)
    files: FileCounts = field(default_factory=FileCounts)
    invalid: int = 0
    requests: int = 0
    mails: int = 0
    """Persons for whom an account is made (trap A16)."""


def plan_publications(
    writer: TableWriter,
    source: ComparableLibrary,
    target: ComparableLibrary,
    folder: Path,
    *,
    journal: Journal,
    files: str | None,
    decisions: Iterable[Decision] = (),
    same_library: bool = False,
    overwrite: bool = False,
    together: bool = False,
    users: MatchStore | None = None,
) -> Totals:
    """Append a row for each publication of the source. `files`: address of the snapshot's table publication_files, if it has one.

    `users`: knows what users of the source become, where those of both libraries were read.
    """
    totals = Totals(source.records, target.records, source.unfit, together)
    if users is not None:
        note_contributors(source, users)
    room = folder / "comparison"
    room.mkdir()
    with compare_libraries(
        source,
        target,
        room,
        written=written_batches(journal),
        decisions=_decision_batches(decisions),
        same_library=same_library,
        overwrite=overwrite,
    ) as database:
        references = REFERENCES if same_library else (CONTRIBUTOR,) if users is not None else ()
        told = [name for name in FORM_FIELDS if name not in REFERENCES or name in references]
        _prepare(database, source, files, told, led=users is not None)
        rows = _rows(database, source, journal, totals, told)
        for batch in batched(rows, STEP):
            writer.write(table_batch(PLAN, transposed(batch, PLAN)))
    shutil.rmtree(room)
    return totals


def written_batches(journal: Journal, resource: str = PUBLICATIONS) -> Iterator[pa.RecordBatch]:
    """What the journal tells of the records that were written before."""
    rows = (
        (one.source_id, one.target_id, msgspec.json.encode(one.wanted).decode(), msgspec.json.encode(one.held).decode())
        for one in journal.written(resource)
    )
    for batch in batched(rows, STEP):
        yield table_batch(WRITTEN, transposed(batch, WRITTEN))


def _decision_batches(decisions: Iterable[Decision]) -> Iterator[pa.RecordBatch]:
    rows = [(one.source_id, one.decision, one.target_id) for one in decisions if one.resource == PUBLICATIONS]
    yield table_batch(DECISIONS, transposed(rows, DECISIONS))


def _prepare(
    database: duckdb.DuckDBPyConnection, source: ComparableLibrary, files: str | None, told: Sequence[str], *, led: bool
) -> None:
    """The table `outcome`: what was found of each record of the source, in the order of its file, with its files' contents."""
    content = (
        f"SELECT publication_id, list({{'kind': kind, 'position': position, 'status': status, 'sha256': sha256, 'bytes': bytes, "  # noqa: S608
        f"'problem': problem}}) AS contents FROM read_parquet({literal(exactly(files))}) WHERE publication_id IS NOT NULL GROUP BY ALL"
        if files
        else "SELECT NULL::BIGINT AS publication_id, NULL AS contents WHERE false"
    )
    contributors = f"SELECT id, {CONTRIBUTOR} AS led FROM source WHERE {CONTRIBUTOR} IS NOT NULL"  # noqa: S608  a name of ours
    shown, joined = (", v.led", f"LEFT JOIN ({contributors}) AS v ON v.id = s.id") if led else ("", "")
    database.execute(f"""
        CREATE TABLE outcome AS
        SELECT s.file_row_number AS place, c.*, f.contents{shown}, {_held(told)} AS held
        FROM read_parquet({literal(exactly(source.path(RECORDS)))}, file_row_number = true) AS s
        JOIN classified AS c ON c.source_id = s.id
        LEFT JOIN compared_source AS m ON m.id = s.id AND c.target_id IS NOT NULL
        LEFT JOIN compared_target AS t ON t.id = c.target_id
        LEFT JOIN ({content}) AS f ON f.publication_id = s.id
        {joined}
    """)  # noqa: S608  names of ours, addresses quoted
    database.execute(
        f"CREATE TABLE touched AS SELECT target.* FROM target SEMI JOIN classified AS c ON c.target_id = target.id "  # noqa: S608
        f"AND (c.action IN ('{PATCH}', '{CONFLICT}') OR target.files IS NOT NULL)"
    )


def _held(names: Sequence[str]) -> str:
    """SQL of a JSON object: digests of what the target has, where that is as it should be and yet not what the source has.

    Of the others a digest of the source's text is quicker made than one is written by DuckDB.
    """
    members = (
        f"CASE WHEN list_contains(c.same, {literal(name)}) AND m.{quoted(name)} IS DISTINCT FROM t.{quoted(name)} "
        f"THEN ',\"{name}\":' || coalesce('\"' || t.{quoted(name)} || '\"', 'null') END"
        for name in names
    )
    return f"nullif('{{' || substr(concat({', '.join(members)}), 2) || '}}', '{{}}')"


def _rows(
    database: duckdb.DuckDBPyConnection,
    source: ComparableLibrary,
    journal: Journal,
    totals: Totals,
    told: Sequence[str],
) -> Iterator[Row]:
    """Both in the same order, a step at a time."""
    outcomes = database.cursor().sql("SELECT * EXCLUDE place FROM outcome ORDER BY place").to_arrow_reader(STEP)
    found = (row for batch in outcomes for row in _dicts(batch))
    with storage_errors(source.folder), pq.ParquetFile(source.path(RECORDS)) as file:
        for batch in row_batches(file, None, STEP):
            records = _dicts(batch)
            rows = [next(found) for _ in records]
            touched = _touched(database, [row["target_id"] for row in rows if row["target_id"] is not None])
            unsent = Counter[str]()
            for record, row in zip(records, rows, strict=True):
                theirs = touched.get(row["target_id"])
                yield _row(record, row, theirs, journal, totals, told)
                if record["unsent"] is not None:
                    unsent[record["unsent"]] += 1
            _count_unsent(totals, unsent)


def _dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch, in half the time that `to_pylist` takes."""
    names = batch.schema.names
    columns = (column.to_pylist() for column in batch.columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _count_unsent(totals: Totals, texts: Counter[str]) -> None:
    """Path → records. Most records have the same text, so those are taken together."""
    for text, records in texts.items():
        for path in residue_counts([msgspec.json.decode(text)]):
            totals.unsent[path] += records
    totals.unsent = bounded(totals.unsent)


def _touched(database: duckdb.DuckDBPyConnection, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    if not ids:
        return {}
    found = database.execute("SELECT * FROM touched WHERE id IN (SELECT unnest(?))", [list(ids)])
    names = [column[0] for column in found.description]
    return {row[0]: dict(zip(names, row, strict=True)) for row in found.fetchall()}


def _row(  # noqa: PLR0917  what a row is made of
    record: dict[str, Any],
    outcome: dict[str, Any],
    theirs: dict[str, Any] | None,
    journal: Journal,
    totals: Totals,
    told: Sequence[str],
) -> Row:
    """One row of the plan, in the order of its columns. `told`: the fields that are compared."""
    action, reason = outcome["action"], outcome["reason"]
    patched = [name for name in told if name in outcome["fields"]] if outcome["fields"] else []
    references: dict[str, PlannedReference] = {}
    if record[CONTRIBUTOR] is not None or record[ORGANIZATION] is not None:
        references = _lead(record, outcome.get("led"), told)
    if record["files"] is not None:
        record["unsent"] = unsent_with_files(record["unsent"], record["files"])
    payload: dict[str, str] = {}
    before: dict[str, msgspec.Raw] = {}
    if action == CREATE:
        payload = sent_json(record, told)
        if not payload:
            action, reason = QUARANTINED, NOTHING_TO_SEND
    elif action == PATCH:
        ours, held = sent_json(record, patched), sent_json(theirs, patched) if theirs else {}
        payload = {name: ours.get(name, "[]" if name in NOTHING else "null") for name in patched}
        before = {name: msgspec.Raw(held.get(name, "null").encode()) for name in patched}
    if references:
        references = {name: one for name, one in references.items() if name in payload}
        payload = {name: text for name, text in payload.items() if name not in references}
    expected = _expected(record, outcome, payload, told)
    files = (
        _files(record, outcome, theirs, journal) if action in PRESENT_ACTIONS and record["files"] is not None else []
    )
    if action == UNCHANGED and any(one.action == UPLOAD for one in files):
        action = PATCH
    _count(totals, action, outcome["matched_by"], patched, files)
    totals.invalid += record["invalid"]
    totals.requests += requests_of(action, {**payload, **references}, files, together=totals.together)
    differing = {name: [record[name], theirs[name] if theirs else None] for name in outcome["conflicts"]}
    return (
        PUBLICATIONS,
        record["id"],
        outcome["target_id"],
        action,
        outcome["matched_by"],
        None if record["title"] is None else msgspec.json.decode(record["title"]),
        "{" + ",".join([f'"{name}":{text}' for name, text in payload.items()]) + "}" if payload else None,
        as_json(before),
        as_json(expected),
        as_json(differing),
        reason,
        as_json(outcome["candidates"]),
        as_json(files),
        record["unsent"],
        as_json(references),
    )


def _expected(
    record: dict[str, Any],
    outcome: dict[str, Any],
    payload: Collection[str],
    told: Sequence[str],
) -> dict[str, str | None]:
    """Field → digest of what the target must show; what is still to be created is not known yet."""
    names = (
        [name for name in told if name in payload or name not in REFERENCES]
        if outcome["action"] == CREATE
        else [*payload, *outcome["same"]]
    )
    held = msgspec.json.decode(outcome["held"]) if outcome["held"] else {}
    return {name: held[name] if name in held else digest(record[name]) for name in names}


def _files(
    record: dict[str, Any], outcome: dict[str, Any], theirs: dict[str, Any] | None, journal: Journal
) -> list[PlannedFile]:
    written = journal.of_record(PUBLICATIONS, record["id"]) if outcome["action"] != CREATE else []
    there = described_files(theirs["files"] if theirs else None)
    return planned_files(described_files(record["files"]), outcome["contents"] or [], there, written)


def _lead(record: dict[str, Any], led: str | None, told: Sequence[str]) -> dict[str, PlannedReference]:
    """Let a record refer to what its references became; what nobody knows in the target is told. Those that are still to be created."""
    contributor, unsent = record[CONTRIBUTOR], {}
    if led is not None:
        record[CONTRIBUTOR] = led
    for name in REFERENCES:
        if record[name] is not None and (name not in told or record[name] == UNKNOWN):
            unsent[name] = msgspec.json.decode(contributor if name == CONTRIBUTOR else record[name])
            record[name] = None
    if unsent:
        known = msgspec.json.decode(record["unsent"]) if record["unsent"] else {}
        record["unsent"] = residue_json({**known, **unsent})
    if contributor is None or record[CONTRIBUTOR] is None or "source" not in msgspec.json.decode(record[CONTRIBUTOR]):
        return {}
    return {CONTRIBUTOR: PlannedReference(USERS, [msgspec.json.decode(contributor)["id"]], [None], as_object=True)}


def _count(
    totals: Totals, action: str, matched_by: str | None, patched: Sequence[str], files: Sequence[PlannedFile]
) -> None:
    totals.actions[action] += 1
    if matched_by is not None:
        totals.matched_by[matched_by] += 1
    totals.fields.update(patched)
    for one in files:
        totals.files.count(one)


def requests_to_read(records: int) -> int:
    """Pages of a listing; an empty one takes a request, too."""
    return max(1, math.ceil(records / PER_PAGE))


def as_json(value: Any) -> str | None:
    """A column of JSON, empty where there is nothing."""
    return msgspec.json.encode(value).decode() if value else None


def batched(rows: Iterable[Row], most: int) -> Iterator[list[Row]]:
    """Rows, at most so many at a time."""
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == most:
            yield batch
            batch = []
    if batch:
        yield batch
