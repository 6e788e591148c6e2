"""Makes the rows of publications from the compared libraries, in the order of the source. Memory does not grow with the library (I11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from pipelines.migration.model.comparison_database import read_comparison
from pipelines.migration.model.journal_entries import WrittenFile
from pipelines.migration.model.plan import PlannedFile, PlannedReference
from pipelines.migration.model.plan_table import PLAN, PlanTableRow
from pipelines.migration.model.resource_types import PUBLICATIONS, USERS
from pipelines.migration.plan.files import described_files, files_of, planned_files, requests_of, unsent_with_files
from pipelines.migration.plan.quarantine import NOTHING_TO_SEND
from pipelines.migration.plan.references.contributors import UNKNOWN
from pipelines.migration.plan.references.publications import PublicationLinks
from pipelines.migration.plan.rows import Totals, as_json, batches_of
from pipelines.publication_fields import DATE_FIELDS, REFERENCES
from pipelines.publication_fields import WRITTEN as WRITTEN_FIELDS
from pipelines.records.files import attached_files
from pipelines.records.residue import bounded, residue_counts, residue_json
from pipelines.records.values import partial_date
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import TableWriter, row_batches

if TYPE_CHECKING:
    import duckdb


ORGANIZATION = "organization"

TOUCHING = frozenset({Action.PATCH, Action.CONFLICT})
"""Actions whose rows show what the target has."""

_FOR_MATCHING = frozenset({"fingerprint", "content"})
"""Columns of `RECORDS` that no row needs."""

_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


def emptying(there: str | None) -> str:
    """The JSON with which a patch empties a field: an empty list for a list, else null. `there`: the JSON of its value in the target."""
    return "[]" if there is not None and there.startswith("[") else "null"


@dataclass(frozen=True)
class PreparedRows:
    """What rows are made from: the source, and the tables `outcome` and `touched` of a comparison."""

    source: ComparableLibrary
    comparison: Path
    """The folder of the comparison, whose database is closed."""
    fields: Sequence[str]
    """Those that are compared."""


def write_rows(writer: TableWriter, prepared: PreparedRows, links: PublicationLinks, totals: Totals) -> None:
    """Write the row of each publication of the source, and add it to the totals."""
    for batch in batches_of(PLAN, _rows(prepared, links, totals)):
        writer.write(batch)


def _rows(prepared: PreparedRows, links: PublicationLinks, totals: Totals) -> Iterator[PlanTableRow]:
    """Yield the rows of some records; records and outcomes are read in the same order, `STEP` at a time."""
    source, fields = prepared.source, prepared.fields
    with (
        storage_errors(source.folder),
        pq.ParquetFile(source.path(RECORDS)) as file,
        read_comparison(prepared.comparison) as database,
    ):
        found = database.cursor().sql("SELECT * EXCLUDE place FROM outcome ORDER BY place")
        in_order = (row for batch in found.to_arrow_reader(STEP) for row in _dicts(batch))
        for batch in _batches(file):
            publications = _dicts(batch)
            outcomes = [next(in_order) for _ in publications]
            touched = _touched(database, outcomes)
            unsent = Counter[str]()
            for record, outcome in zip(publications, outcomes, strict=True):
                written = [WrittenFile(**file) for file in outcome["written"] or ()]
                files = _Files(record, outcome["contents"], outcome["there"], written)
                yield _row(record, outcome, touched.get(outcome["target_id"]), files, totals, fields, links)
                if record["unsent"] is not None:
                    unsent[record["unsent"]] += 1
            _count_unsent(totals, unsent)


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """The columns of `RECORDS` that rows need, at most `STEP` rows at a time."""
    names = [name for name in file.schema_arrow.names if name not in _FOR_MATCHING]
    return row_batches(file, names, STEP)


def _dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows of a batch, in half the time of `to_pylist`."""
    names = batch.schema.names
    columns = (column.to_pylist() for column in batch.columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _count_unsent(totals: Totals, texts: Counter[str]) -> None:
    """Count the records of each path. Equal texts are counted together, because most records have the same."""
    for text, records in texts.items():
        values = msgspec.json.decode(text)
        for path in residue_counts([values]):
            totals.unsent[path] += records
        dates = (values.get(name) for name in DATE_FIELDS)
        totals.partial_dates += records * sum(
            isinstance(date, str) and partial_date(date) is not None for date in dates
        )
    totals.unsent = bounded(totals.unsent)


def _touched(database: duckdb.DuckDBPyConnection, outcomes: Iterable[Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """The matched records of the target that are patched, in conflict or kept otherwise, by their ids."""
    ids = [
        row["target_id"]
        for row in outcomes
        if (row["action"] in TOUCHING or row["kept"]) and row["target_id"] is not None
    ]
    if not ids:
        return {}
    found = database.execute("SELECT * FROM touched WHERE id IN (SELECT unnest(?))", [ids])
    names = [column[0] for column in found.description]
    return {row["id"]: row for row in (dict(zip(names, values, strict=True)) for values in found.fetchall())}


class _Files:
    """The files of one record: as the source describes them, and what is known of them."""

    def __init__(
        self,
        record: dict[str, Any],
        contents: Sequence[dict[str, Any]] | None,
        there: str | None,
        written: Sequence[WrittenFile],
    ) -> None:
        """`contents`: the rows of the snapshot's table; `there`: the files of the target's record; `written`: those of the journal."""
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
    totals.requests += requests_of(action, at_once, files)
    differing, kept = (
        {name: [record[column_of(name)], target[column_of(name)] if target else None] for name in outcome[part]}
        for part in ("conflicts", "kept")
    )
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
        kept=as_json(kept),
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
    """Field → digest of the value that the target should have afterwards, also where the service is known to keep another one.

    A reference to a record that is still to be created has none yet.
    """
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
