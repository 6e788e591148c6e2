"""Holds the planned files of a plan against those that the target describes: each there once, under its name, with its size (I12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from pipelines.humanize import counted
from pipelines.migration.apply.attachments import is_like
from pipelines.migration.model.actions import FileAction
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.journal import WriteState
from pipelines.migration.model.plan import PlannedFile
from pipelines.migration.plan.files import described_files, part_of
from pipelines.migration.verify.discrepancies import (
    COVER,
    DIFFERING,
    DUPLICATED,
    FILES,
    MISSING,
    Discrepancies,
    Discrepancy,
    fill,
)
from pipelines.records.batches import Row, table_batch, transposed
from pipelines.records.files import ASSET as AN_ASSET
from pipelines.records.files import COVER as A_COVER
from pipelines.records.files import AttachedFile
from pipelines.records.tables.description import Column, Table
from pipelines.service.redaction import outside_text

_TEXT, _NUMBER = pa.string(), pa.int64()
PRESENT = Table(
    "present",
    "One row for each planned file that is there, and whose content is known.",
    (),
    (
        Column("source_id", _NUMBER, "The record in the source."),
        Column("target_id", _NUMBER, "The record in the target."),
        Column("kind", _TEXT, "cover or asset."),
        Column("asset_id", _NUMBER, "The asset in the target."),
        Column("told", _TEXT, "What people call it."),
        Column("sha256", _TEXT, "Of its content."),
        Column("bytes", _NUMBER, "Of its content."),
    ),
)

_PLANNED = msgspec.json.Decoder(list[PlannedFile])

_RECORDS = """
    SELECT c.source_id, c.target_id, p.files, t.files AS now, b.files AS before, e.entries, m.made
    FROM checked AS c
    JOIN planned AS p ON p.source_id = c.source_id AND p.files IS NOT NULL
    JOIN target AS t ON t.id = c.target_id
    LEFT JOIN before AS b ON b.id = c.target_id
    LEFT JOIN (
        SELECT source_id, list({'part': part, 'state': state, 'asset_id': asset_id, 'message': message}) AS entries
        FROM entries WHERE part <> '' GROUP BY ALL
    ) AS e ON e.source_id = c.source_id
    LEFT JOIN (SELECT target_id, list(asset_id) AS made FROM made WHERE asset_id IS NOT NULL GROUP BY ALL) AS m
        ON m.target_id = c.target_id
"""


class WrittenFile(NamedTuple):
    """What the journal says of one file."""

    state: str
    asset_id: int | None
    message: str | None


class FileProblem(NamedTuple):
    """What is wrong with a file. `found`: what is there instead, or beside it."""

    problem: str
    file: PlannedFile
    found: AttachedFile | None
    why: str


def check_files(discrepancies: Discrepancies) -> int:
    """Add what is wrong with the files of records that are there; how many files were looked at. Makes the table `present`."""
    database = discrepancies.database
    empty = table_batch(PRESENT, transposed([], PRESENT))
    database.register("given", empty)
    database.execute("CREATE TABLE present AS FROM given")
    database.unregister("given")
    checked = 0
    writer = database.cursor()
    found = database.sql(_RECORDS).to_arrow_reader(STEP)
    for batch in found:
        present: list[Row] = []
        for row in batch.to_pylist():
            planned = [one for one in _PLANNED.decode(row["files"]) if one.action != FileAction.MISSING]
            checked += len(planned)
            problems, there = compare_files(
                planned,
                described_files(row["now"]),
                known={one.asset_id for one in described_files(row["before"])} | set(row["made"] or ()),
                written={
                    one["part"]: WrittenFile(one["state"], one["asset_id"], one["message"])
                    for one in row["entries"] or ()
                },
            )
            discrepancies.add(_discrepancy(one, row["source_id"], row["target_id"]) for one in problems)
            present += _present(there, row["source_id"], row["target_id"])
        fill(writer, PRESENT, [table_batch(PRESENT, transposed(present, PRESENT))])
    return checked


def compare_files(
    planned: Sequence[PlannedFile],
    now: Sequence[AttachedFile],
    *,
    known: AbstractSet[int | None],
    written: Mapping[str, WrittenFile],
) -> tuple[list[FileProblem], list[tuple[PlannedFile, AttachedFile]]]:
    """What is wrong with the files of one record, and those that are there.

    `known`: assets of the target that were there before, or that a plan made. `written`: what the journal says of each part.
    A file that people replaced by one of the same name and size is there; what is like a planned one and is left over is a duplicate.
    """
    problems: list[FileProblem] = []
    there: list[tuple[PlannedFile, AttachedFile]] = []
    assets = {one.asset_id: one for one in now if one.kind == AN_ASSET}
    cover = next((one for one in now if one.kind == A_COVER), None)
    gone = []
    for file in planned:
        entry = written.get(part_of(file))
        if file.kind == A_COVER:
            one = cover
        else:
            number = entry.asset_id if entry is not None and entry.state == WriteState.DONE else file.target_asset_id
            one = assets.pop(number, None) if number is not None else None
        if one is None:
            gone.append(file)
        else:
            there.append((file, one))
    free = [one for number, one in assets.items() if number not in known]
    for file in gone:
        same = next((one for one in free if file.kind == AN_ASSET and is_like(file, one)), None)
        if same is None:
            problems.append(FileProblem(MISSING, file, None, _why_missing(file, written.get(part_of(file)))))
        else:
            free.remove(same)
            there.append((file, same))
    problems += (
        FileProblem(DIFFERING, file, one, why)
        for file, one in there
        if file.action == FileAction.UPLOAD and (why := _difference(file, one, written.get(part_of(file))))
    )
    for one in free:
        if double := next((file for file in planned if file.kind == AN_ASSET and is_like(file, one)), None):
            problems.append(
                FileProblem(DUPLICATED, double, one, f"nobody knows who attached {one.asset_id}, which is like it")
            )
    return problems, there


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
        return "the answer when it was attached was never seen; applying the plan again looks it up"
    return entry.message or entry.state


def _difference(file: PlannedFile, one: AttachedFile, entry: WrittenFile | None) -> str:
    """In what a file that is there is not what was sent; the service need not tell everything."""
    pairs = (
        ("size", file.size, one.size),
        ("file name", file.filename, one.filename),
        ("name", file.name if file.kind == AN_ASSET else None, one.name),
    )
    different = [name for name, wanted, found in pairs if None not in (wanted, found) and wanted != found]
    if not different:
        return ""
    when = (
        "it was not set yet"
        if entry is None or entry.state != WriteState.DONE
        else "changed since it was written, or by the service"
    )
    return f"another {' and '.join(different)}: {when}"


def _discrepancy(one: FileProblem, source_id: int, target_id: int) -> Discrepancy:
    found = None if one.found is None else told(one.found.filename or one.found.name, one.found.size)
    field = COVER if one.file.kind == A_COVER else FILES
    return Discrepancy(one.problem, source_id, target_id, field, describe_file_finding(one.file), found, one.why)


def _present(there: Iterable[tuple[PlannedFile, AttachedFile]], source_id: int, target_id: int) -> Iterator[Row]:
    """A cover that was there before the plan may be another one: it was left."""
    for file, one in there:
        if file.sha256 is not None and (file.action == FileAction.UPLOAD or file.kind == AN_ASSET):
            yield source_id, target_id, file.kind, one.asset_id, describe_file_finding(file), file.sha256, file.size


def describe_file_finding(file: PlannedFile) -> str:
    """A planned file, for people."""
    return told(file.filename or file.name, file.size)


def told(name: Any, number: int | None) -> str:
    """A file's name and size, for people."""
    shown = outside_text(name, 120) if name else "(without a name)"
    return shown if number is None else f"{shown} ({counted(number, 'byte')})"
