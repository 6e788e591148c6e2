"""Works out what an undo would do, from one reading of the target. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipelines.migration.apply.target_lists import TargetLists
from pipelines.migration.model.comparable import RECORDS, ComparableLibrary, column_of
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.plan.files import described_files
from pipelines.migration.plan.rows import in_steps
from pipelines.migration.undo.inverse_operations import TargetRecord, inverse_operations
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.undo.worklist import worklist
from pipelines.records.identifiers.kinds import Kinds
from pipelines.service.client import LibraryClient
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import connect_duckdb, escaped, literal, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def dry_run(  # noqa: PLR0917  the same as `undo` takes
    plan: Plan,
    journal: Journal,
    kinds: Kinds,
    now: ComparableLibrary,
    target_lists: TargetLists,
    client: LibraryClient,
) -> UndoResult:
    """Returns what an undo would do to the target as it is `now`."""
    result = UndoResult(plan=plan.name, really=False)
    with storage_errors(now.folder), connect_duckdb() as database:
        database.execute("SET threads = 1; SET memory_limit = '256MB'")
        for batch in in_steps(worklist(plan, journal, target_lists)):
            publications = _publications(database, now, [item.target_id for item in batch])
            for item in batch:
                if item.doubt:
                    result.leave(item, [item.doubt])
                    continue
                is_publication = item.row.resource == PUBLICATIONS
                record = publications.get(item.target_id) if is_publication else TargetRecord.of_list(item)
                result.count(item, inverse_operations(item, record, kinds))
    result.requests = client.requests
    return result


def _publications(
    database: DuckDBPyConnection, now: ComparableLibrary, ids: Sequence[int | None]
) -> dict[int | None, TargetRecord]:
    """Id → the record in the target as it is `now`."""
    known = [number for number in ids if number is not None]
    if not known:
        return {}
    names = ", ".join(quoted(column_of(name)) for name in now.names)
    rows = database.execute(
        f"SELECT id, files, {names} FROM read_parquet({literal(escaped(now.path(RECORDS)))}) "  # noqa: S608  our own names
        "WHERE id BETWEEN ? AND ? AND id IN (SELECT unnest(?))",  # the bounds skip most row groups
        [min(known), max(known), known],
    ).fetchall()
    return {
        number: TargetRecord(
            {name: text for name, text in zip(now.names, texts, strict=True) if text is not None},
            described_files(files),
        )
        for number, files, *texts in rows
    }
