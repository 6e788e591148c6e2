"""Plans the publications: compares both libraries in DuckDB, then makes a row of the plan for each record, in the order of the source.

Memory does not grow with the library: both sides are Parquet files, the comparison is a database beside them, and rows are written while
records are read (I11).
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.migration.model.actions import PRESENT_ACTIONS, Action, FileAction
from pipelines.migration.model.comparable import (
    CONTRIBUTOR,
    RECORDS,
    STEP,
    ComparableLibrary,
    column_of,
    digest,
    sent_json,
)
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WrittenRecord
from pipelines.migration.model.plan import PlannedFile, PlannedReference
from pipelines.migration.model.plan_table import PLAN, PlanTableRow
from pipelines.migration.model.resource_types import PUBLICATIONS, USERS
from pipelines.migration.plan.comparison import DECISIONS, WRITTEN, WrittenRow, compare_libraries
from pipelines.migration.plan.contributors import UNKNOWN, write_contributors
from pipelines.migration.plan.files import described_files, files_of, planned_files, requests_of, unsent_with_files
from pipelines.migration.plan.inputs import PlanInputs
from pipelines.migration.plan.quarantine import NOTHING_TO_SEND
from pipelines.migration.plan.references.publications import PublicationLinks
from pipelines.migration.plan.rows import Totals, as_json, batches_of
from pipelines.publication_fields import REFERENCES
from pipelines.publication_fields import WRITTEN as WRITTEN_FIELDS
from pipelines.records.batches import collector_paused, named_batch
from pipelines.records.files import attached_files
from pipelines.records.residue import bounded, residue_counts, residue_json
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import TableWriter, escaped, literal, quoted, row_batches

if TYPE_CHECKING:
    import duckdb

    from pipelines.migration.plan.conflicts import RecordDecision
    from pipelines.migration.plan.match_store import MatchStore

ORGANIZATION = "organization"

_FOR_MATCHING = frozenset({"fingerprint", "content", "sha256"})
"""Columns of `RECORDS` that no row needs."""

_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


def emptying(there: str | None) -> str:
    """The JSON with which a patch empties a field: an empty list for a list, else null. `there`: the JSON of its value in the target."""
    return "[]" if there is not None and there.startswith("[") else "null"


def plan_publications(
    writer: TableWriter, inputs: PlanInputs, store: MatchStore, *, with_users: bool = False
) -> Totals:
    """Append a row for each publication of the source.

    `store`: knows the target ids of the records to which links lead; also of the source's users, where the users of both libraries were
    read (`with_users`).
    """
    source, journal = inputs.source, inputs.journal
    totals = Totals(source.records, inputs.target.records, source.unfit, inputs.files_with_record)
    if with_users:
        write_contributors(source, store)
    links = PublicationLinks(store, inputs.links)
    links.write(source)
    if any(rule.leads_to == PUBLICATIONS for rule in inputs.links.values()):
        with storage_errors(source.folder), pq.ParquetFile(source.path(RECORDS)) as file:
            store.keep_order(
                cast("list[int]", batch.column("id").to_pylist()) for batch in row_batches(file, ["id"], STEP)
            )
    folder = inputs.folder / "comparison"
    folder.mkdir()
    with compare_libraries(
        source,
        inputs.target,
        folder,
        written=written_batches(journal),
        decisions=_decision_batches(inputs.decisions),
        same_library=inputs.same_library,
        overwrite=inputs.overwrite,
    ) as database:
        references = REFERENCES if inputs.same_library else (CONTRIBUTOR,) if with_users else ()
        fields = [name for name in source.names if name not in REFERENCES or name in references]
        _prepare(database, source, inputs.files, fields, mapped=with_users)
        for batch in batches_of(PLAN, _rows(database, source, journal, totals, fields, links)):
            writer.write(batch)
    shutil.rmtree(folder)
    return totals


def match_publications(inputs: PlanInputs, store: MatchStore) -> None:
    """Only match the publications, because others, or they themselves, refer to them before they are planned."""
    folder = inputs.folder / "matching"
    folder.mkdir()
    with compare_libraries(
        inputs.source,
        inputs.target,
        folder,
        written=written_batches(inputs.journal),
        decisions=_decision_batches(inputs.decisions),
        same_library=inputs.same_library,
        overwrite=inputs.overwrite,
    ) as database:
        rows = f"SELECT '{PUBLICATIONS}' AS resource, source_id, target_id, action FROM merged"  # noqa: S608  our own word
        for batch in database.sql(rows).to_arrow_reader(STEP):
            store.note(batch)
    shutil.rmtree(folder)


def written_batches(journal: Journal, resource: str = PUBLICATIONS) -> Iterator[pa.RecordBatch]:
    """The records that earlier plans wrote, according to the journal."""
    return batches_of(WRITTEN, (_written_row(record) for record in journal.written(resource)))


def _written_row(record: WrittenRecord) -> WrittenRow:
    wanted, after_write = (msgspec.json.encode(digests).decode() for digests in (record.wanted, record.held))
    return WrittenRow(record.source_id, record.target_id, wanted, after_write)


def _decision_batches(decisions: Iterable[RecordDecision]) -> Iterator[pa.RecordBatch]:
    found = [decision for decision in decisions if decision.resource == PUBLICATIONS]
    names = ("source_id", "decision", "target_id")
    yield named_batch(DECISIONS, {name: [getattr(decision, name) for decision in found] for name in names})


def _prepare(
    database: duckdb.DuckDBPyConnection,
    source: ComparableLibrary,
    files: str | None,
    fields: Sequence[str],
    *,
    mapped: bool,
) -> None:
    """Make the table `outcome`: the merged record for each record of the source, in the order of its file, with the contents of its files.

    The table `touched` gets the matched records of the target that are patched or in conflict, and `attached` the files of all of them.
    `mapped`: whether contributors are those of the target.
    """
    content = (
        f"SELECT publication_id, list({{'kind': kind, 'position': position, 'status': status, 'sha256': sha256, 'bytes': bytes, "  # noqa: S608
        f"'problem': problem}}) AS contents FROM read_parquet({literal(escaped(files))}) WHERE publication_id IS NOT NULL GROUP BY ALL"
        if files
        else "SELECT NULL::BIGINT AS publication_id, NULL AS contents WHERE false"
    )
    contributors = f"SELECT id, {CONTRIBUTOR} AS mapped FROM source WHERE {CONTRIBUTOR} IS NOT NULL"  # noqa: S608  our own name
    column, join = (", v.mapped", f"LEFT JOIN ({contributors}) AS v ON v.id = s.id") if mapped else ("", "")
    database.execute(f"""
        CREATE TABLE outcome AS
        SELECT s.file_row_number AS place, c.*, f.contents{column}, {_target_digests(fields)} AS target_digests
        FROM read_parquet({literal(escaped(source.path(RECORDS)))}, file_row_number = true) AS s
        JOIN merged AS c ON c.source_id = s.id
        LEFT JOIN compared_source AS m ON m.id = s.id AND c.target_id IS NOT NULL
        LEFT JOIN compared_target AS t ON t.id = c.target_id
        LEFT JOIN ({content}) AS f ON f.publication_id = s.id
        {join}
    """)  # noqa: S608  our own names, addresses quoted
    database.execute(
        f"CREATE TABLE touched AS SELECT target.* FROM target SEMI JOIN merged AS c ON c.target_id = target.id "  # noqa: S608
        f"AND c.action IN ('{Action.PATCH}', '{Action.CONFLICT}')"
    )
    database.execute(
        "CREATE TABLE attached AS SELECT target.id, target.files FROM target SEMI JOIN merged AS c ON c.target_id = target.id "
        "WHERE target.files IS NOT NULL"
    )


def _target_digests(fields: Sequence[str]) -> str:
    """SQL of a JSON object: digests of what the target has, for fields that need nothing and yet differ from the source.

    For the other fields, Python makes the digest of the source's text faster than DuckDB writes one.
    """
    members = (
        f"CASE WHEN list_contains(c.same, {literal(name)}) AND m.{column} IS DISTINCT FROM t.{column} "
        f"THEN ',\"{name}\":' || coalesce('\"' || t.{column} || '\"', 'null') END"
        for name, column in ((name, quoted(column_of(name))) for name in fields)
    )
    return f"nullif('{{' || substr(concat({', '.join(members)}), 2) || '}}', '{{}}')"


def _rows(  # noqa: PLR0917  the parts of a row
    database: duckdb.DuckDBPyConnection,
    source: ComparableLibrary,
    journal: Journal,
    totals: Totals,
    fields: Sequence[str],
    links: PublicationLinks,
) -> Iterator[PlanTableRow]:
    """Yield the rows of the plan; records and outcomes are read in the same order, `STEP` at a time."""
    outcomes = database.cursor().sql("SELECT * EXCLUDE place FROM outcome ORDER BY place").to_arrow_reader(STEP)
    in_order = (row for batch in outcomes for row in _dicts(batch))
    with storage_errors(source.folder), pq.ParquetFile(source.path(RECORDS)) as file, collector_paused():
        names = [name for name in file.schema_arrow.names if name not in _FOR_MATCHING]
        for batch in row_batches(file, names, STEP):
            records = _dicts(batch)
            rows = [next(in_order) for _ in records]
            matched = [row["target_id"] for row in rows if row["target_id"] is not None]
            touched = {row["id"]: row for row in _of_target(database, "touched", matched)}
            attached = {row["id"]: row["files"] for row in _of_target(database, "attached", matched)}
            written = journal.files_of(PUBLICATIONS, [record["id"] for record in records])
            unsent = Counter[str]()
            for record, row in zip(records, rows, strict=True):
                files = _Files(record, row["contents"], attached.get(row["target_id"]), written.get(record["id"], ()))
                yield _row(record, row, touched.get(row["target_id"]), files, totals, fields, links)
                if record["unsent"] is not None:
                    unsent[record["unsent"]] += 1
            _count_unsent(totals, unsent)


def _dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch, in half the time of `to_pylist`."""
    names = batch.schema.names
    columns = (column.to_pylist() for column in batch.columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _count_unsent(totals: Totals, texts: Counter[str]) -> None:
    """Count the records of each path. Equal texts are counted together, because most records have the same."""
    for text, records in texts.items():
        for path in residue_counts([msgspec.json.decode(text)]):
            totals.unsent[path] += records
    totals.unsent = bounded(totals.unsent)


def _of_target(database: duckdb.DuckDBPyConnection, table: str, ids: Sequence[int]) -> list[dict[str, Any]]:
    """The rows of `touched` or `attached` with these ids."""
    if not ids:
        return []
    found = database.execute(f"SELECT * FROM {table} WHERE id IN (SELECT unnest(?))", [list(ids)])  # noqa: S608  our own names
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


class _Files:
    """The files of one record: as the source describes them, and what is known of them."""

    def __init__(
        self,
        record: dict[str, Any],
        contents: Sequence[dict[str, Any]] | None,
        there: str | None,
        written: Sequence[JournalEntry],
    ) -> None:
        """`contents`: the rows of the snapshot's table; `there`: the files of the target's record; `written`: the journal's entries."""
        self.described = files_of(record["files"])
        self._contents = contents or ()
        self._there = there
        self._written = written

    def planned(self, action: str) -> list[PlannedFile]:
        """What the plan does with each. `action`: with the record."""
        if not self.described:
            return []
        written = self._written if action != Action.CREATE else ()
        return planned_files(attached_files(self.described), self._contents, described_files(self._there), written)


def _row(  # noqa: PLR0917  the parts of a row
    record: dict[str, Any],
    outcome: dict[str, Any],
    target: dict[str, Any] | None,
    attachments: _Files,
    totals: Totals,
    fields: Sequence[str],
    links: PublicationLinks,
) -> PlanTableRow:
    """One row of the plan. `target`: the matched record; `fields`: those that are compared."""
    action, reason = Action(outcome["action"]), outcome["reason"]
    patched = [name for name in fields if name in outcome["fields"]] if outcome["fields"] else []
    references: dict[str, PlannedReference] = {}
    if record[CONTRIBUTOR] is not None or record[ORGANIZATION] is not None:
        references = _map_references(record, outcome.get("mapped"), fields)
    references |= links.map_record(record)
    if attachments.described:
        record["unsent"] = unsent_with_files(record["unsent"], attachments.described)
    empty = _empty_values(record)
    payload, before = _changes(record, target, patched, empty, links) if action == Action.PATCH else ({}, {})
    payload = sent_json(record, fields) if action == Action.CREATE else payload
    if action == Action.CREATE and not payload:
        action, reason = Action.QUARANTINED, NOTHING_TO_SEND
    if references:
        references = {name: reference for name, reference in references.items() if name in payload}
        payload = {name: text for name, text in payload.items() if name not in references}
        totals.count_links(references)
    expected = _expected(record, outcome, payload, fields)
    payload = links.sent(payload) | (empty if action == Action.CREATE else {})
    files = attachments.planned(outcome["action"]) if action in PRESENT_ACTIONS else []
    if action == Action.UNCHANGED and any(file.action == FileAction.UPLOAD for file in files):
        action = Action.PATCH
    totals.count(action, outcome["matched_by"])
    totals.fields.update(patched)
    for file in files:
        totals.files.count(file)
    totals.invalid += record["invalid"]
    at_once = {**payload, **{name: one for name, one in references.items() if not one.later}}
    totals.requests += requests_of(action, at_once, files, together=totals.together)
    columns = {name: column_of(name) for name in outcome["conflicts"]}
    differing = {name: [record[column], target[column] if target else None] for name, column in columns.items()}
    return PlanTableRow(
        resource=PUBLICATIONS,
        source_id=record["id"],
        target_id=outcome["target_id"],
        action=action,
        matched_by=outcome["matched_by"],
        title=None if record["title"] is None else msgspec.json.decode(record["title"]),
        payload="{" + ",".join([f'"{name}":{text}' for name, text in payload.items()]) + "}" if payload else None,
        before=as_json(before),
        expected=as_json(expected),
        differing=as_json(differing),
        reason=reason,
        candidates=as_json(outcome["candidates"]),
        files=as_json(files),
        unsent=record["unsent"],
        references=as_json(references),
    )


def _changes(
    record: dict[str, Any],
    target: dict[str, Any] | None,
    patched: Sequence[str],
    empty: Mapping[str, str],
    links: PublicationLinks,
) -> tuple[dict[str, str], dict[str, msgspec.Raw]]:
    """The new values of the fields that are patched, and those that they replace: field → JSON."""
    new, old = sent_json(record, patched), links.sent(sent_json(target, patched)) if target else {}
    payload = {name: new.get(name) or empty.get(name) or emptying(old.get(name)) for name in patched}
    return payload, {name: msgspec.Raw(old.get(name, "null").encode()) for name in patched}


def _empty_values(record: dict[str, Any]) -> dict[str, str]:
    """Additional field → the JSON of its empty text or list, which equals null in every comparison."""
    if record["empty"] is None:
        return {}
    return {name: str(text, "utf-8") for name, text in _RAW.decode(record["empty"]).items()}


def _expected(
    record: dict[str, Any],
    outcome: dict[str, Any],
    payload: Collection[str],
    fields: Sequence[str],
) -> dict[str, str | None]:
    """Field → digest of the target's value afterwards; a reference to a record that is still to be created has none yet."""
    names = (
        [name for name in fields if name in payload or (name in WRITTEN_FIELDS and name not in REFERENCES)]
        if outcome["action"] == Action.CREATE
        else [*payload, *outcome["same"]]
    )
    differing = msgspec.json.decode(outcome["target_digests"]) if outcome["target_digests"] else {}
    return {name: differing[name] if name in differing else digest(record[column_of(name)]) for name in names}


def _map_references(record: dict[str, Any], mapped: str | None, fields: Sequence[str]) -> dict[str, PlannedReference]:
    """Replace the references of a record by those of the target, and list the others as unsent.

    Returns the references to records that are still to be created. `mapped`: the contributor in the target.
    """
    contributor, unsent = record[CONTRIBUTOR], {}
    if mapped is not None:
        record[CONTRIBUTOR] = mapped
    for name in REFERENCES:
        if record[name] is not None and (name not in fields or record[name] == UNKNOWN):
            unsent[name] = msgspec.json.decode(contributor if name == CONTRIBUTOR else record[name])
            record[name] = None
    if unsent:
        others = msgspec.json.decode(record["unsent"]) if record["unsent"] else {}
        record["unsent"] = residue_json({**others, **unsent})
    if contributor is None or record[CONTRIBUTOR] is None or "source" not in msgspec.json.decode(record[CONTRIBUTOR]):
        return {}
    return {CONTRIBUTOR: PlannedReference(USERS, [msgspec.json.decode(contributor)["id"]], [None], as_object=True)}
