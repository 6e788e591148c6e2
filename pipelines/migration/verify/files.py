"""Compares the files of a plan with those that the target describes: each must be there once, with its name and size (I12)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from pipelines.humanize import counted
from pipelines.migration.model.actions import FileAction
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.comparison_database import append_rows, create_table, scratch_table
from pipelines.migration.model.file_comparison import described_files, differing_parts, is_like, match_files, part_of
from pipelines.migration.model.findings import Finding
from pipelines.migration.model.journal_entries import WriteState, WrittenFile
from pipelines.migration.model.plan import PlannedFile
from pipelines.migration.model.reasons import DIFFERING, DUPLICATED, FILE, MISSING
from pipelines.migration.verify.discrepancies import Discrepancies, file_finding
from pipelines.records.batches import Row
from pipelines.records.files import ASSET, COVER, AttachedFile
from pipelines.records.values import RecordId, as_id
from pipelines.service.redaction import outside_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TEXT, _NUMBER = pa.string(), pa.int64()
PRESENT = scratch_table(
    "present",
    {
        "source_id": _TEXT,
        "target_id": _TEXT,
        "kind": _TEXT,
        "asset_id": _NUMBER,
        "description": _TEXT,
        "sha256": _TEXT,
        "bytes": _NUMBER,
    },
)
"""The planned files that are in the target and whose content is known. `description`: name and size, for people."""

_PLANNED = msgspec.json.Decoder(list[PlannedFile])

_RECORDS = """
    SELECT c.source_id, c.target_id, p.files, t.files AS now, b.files AS before, e.entries, w.asset_ids
    FROM checked AS c
    JOIN planned AS p ON p.source_id = c.source_id AND p.files IS NOT NULL
    JOIN target AS t ON t.id = c.target_id
    LEFT JOIN before AS b ON b.id = c.target_id
    LEFT JOIN (
        SELECT source_id, list({{'kind': kind, 'part': part, 'state': state, 'asset_id': asset_id, 'message': message}}) AS entries
        FROM entries WHERE resource = '{resource}' AND part <> '' GROUP BY ALL
    ) AS e ON e.source_id = c.source_id
    LEFT JOIN (SELECT target_id, list(asset_id) AS asset_ids FROM written_ids WHERE asset_id IS NOT NULL GROUP BY ALL) AS w
        ON w.target_id = c.target_id
"""


def check_files(database: DuckDBPyConnection, discrepancies: Discrepancies, resource: str) -> int:
    """Add the problems with files of records that are there. Returns how many files were checked. Creates the table `present`."""
    create_table(database, PRESENT)
    checked = 0
    writer = database.cursor()
    for batch in database.sql(_RECORDS.format(resource=resource)).to_arrow_reader(STEP):
        present: list[Row] = []
        for row in batch.to_pylist():
            planned = _PLANNED.decode(row["files"])
            checked += sum(file.action != FileAction.MISSING for file in planned)
            now = described_files(row["now"])
            before = now if row["before"] == row["now"] else described_files(row["before"])
            known_ids = {file.asset_id for file in before} | set(row["asset_ids"] or ())
            entries = {entry["part"]: WrittenFile(**entry) for entry in row["entries"] or ()}
            findings, pairs = compare_files(
                planned,
                now,
                known_ids=known_ids,
                written=entries,
                record=(as_id(row["source_id"]), as_id(row["target_id"])),
            )
            discrepancies.add(findings)
            present += _present(pairs, row["source_id"], row["target_id"])
        append_rows(writer, PRESENT, present)
    return checked


def compare_files(
    planned: Sequence[PlannedFile],
    now: Sequence[AttachedFile],
    *,
    known_ids: AbstractSet[int | None],
    written: Mapping[str, WrittenFile],
    record: tuple[RecordId, RecordId] = (0, 0),
) -> tuple[list[Finding], list[tuple[PlannedFile, AttachedFile]]]:
    """Returns the findings on the files of one record, and each planned file that is there with its file in the target.

    `record`: its ids in the source and in the target. `known_ids`: assets of the target that were there before, or that any plan attached.
    `written`: part → its journal entry. A file that people replaced by one with the same name and size counts as there. An additional file
    that is like a planned one is a duplicate.
    """
    finding, entries = partial(file_finding, record), [written.get(part_of(file)) for file in planned]
    ids = {
        part_of(file): entry.asset_id if entry is not None and entry.state == WriteState.DONE else file.target_asset_id
        for file, entry in zip(planned, entries, strict=True)
    }
    pairs, unknown = match_files(planned, now, ids, known_ids)
    findings, present = list[Finding](), list[tuple[PlannedFile, AttachedFile]]()
    for (file, match), entry in zip(pairs, entries, strict=True):
        if match is None:
            findings.append(_missing(finding, file, entry))
        elif match.kind == COVER or file.action != FileAction.MISSING or match.asset_id not in known_ids:
            present.append((file, match))
            if (file.action == FileAction.UPLOAD or file.kept) and (why := _difference(file, match, entry)):
                findings.append(finding(DIFFERING, file.kind, (_describe(file), _describe(match)), why))
    for asset in unknown:
        if original := next((file for file in planned if file.kind == ASSET and is_like(file, asset)), None):
            why = f"it is unknown who attached {asset.asset_id}, which is like it"
            findings.append(finding(DUPLICATED, original.kind, (_describe(original), _describe(asset)), why))
    return findings, present


def _missing(finding: Callable[..., Finding], file: PlannedFile, entry: WrittenFile | None) -> Finding:
    if file.action == FileAction.MISSING:
        why = f"the plan could not send it: {file.problem or 'it was not fetched'}"
        return finding(FILE, file.kind, (_describe(file), ""), why, lacking=True)
    return finding(MISSING, file.kind, (_describe(file), ""), _why_missing(file, entry))


def _why_missing(file: PlannedFile, entry: WrittenFile | None) -> str:
    if file.action != FileAction.UPLOAD:
        return "it was there when the plan was made, and is not there any more"
    if entry is None:
        return "it was not attached yet"
    if entry.state == WriteState.DONE:
        return "it was attached, and is not there any more"
    if entry.state == WriteState.UNDONE:
        return "it was attached, and taken back"
    if entry.state == WriteState.INTENDED:
        return "the response when it was attached was lost; applying the plan again looks it up"
    return entry.message or entry.state


def _difference(file: PlannedFile, match: AttachedFile, entry: WrittenFile | None) -> str:
    """How a file in the target differs from the planned one, as far as the service shows it; empty where it does not."""
    if not (different := differing_parts(file, match)):
        return ""
    if file.kept:
        when = "the service keeps it otherwise than an earlier plan sent it"
    elif entry is None or entry.state != WriteState.DONE:
        when = "it was not set yet"
    elif entry.message:
        when = "the target did not take it as it is"
    else:
        when = "changed since it was written, or by the service"
    return f"another {different}: {when}"


def _present(
    pairs: Iterable[tuple[PlannedFile, AttachedFile]], source_id: RecordId, target_id: RecordId
) -> Iterator[Row]:
    """Rows of `PRESENT`. Without covers that were there before the plan: they were left, and may be other ones."""
    for file, match in pairs:
        if file.sha256 is not None and (file.action == FileAction.UPLOAD or file.kind == ASSET):
            yield source_id, target_id, file.kind, match.asset_id, _describe(file), file.sha256, file.size


def _describe(file: PlannedFile | AttachedFile) -> str:
    """A file's name and size, for people."""
    name = file.filename or file.name
    text = outside_text(name, 120) if name else "(without a name)"
    return text if file.size is None else f"{text} ({counted(file.size, 'byte')})"
