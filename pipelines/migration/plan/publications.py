"""Plans the publications: compares both libraries in DuckDB, and prepares what the rows of the plan are made from (publication_rows.py).

Memory does not grow with the library: both sides are Parquet files, the comparison is a database beside them, and rows are written while
records are read (I11).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.migration.model.comparable import CONTRIBUTOR, RECORDS, STEP, ComparableLibrary
from pipelines.migration.model.comparison_database import create_table
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WrittenRecord
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.plan.comparison import DECISIONS, WRITTEN, WRITTEN_FILES, WrittenRow, compare_libraries
from pipelines.migration.plan.inputs import PlanInputs
from pipelines.migration.plan.publication_rows import TOUCHING, PreparedRows, write_rows
from pipelines.migration.plan.references.contributors import write_contributors
from pipelines.migration.plan.references.publications import PublicationLinks
from pipelines.migration.plan.rows import Totals, batches_of
from pipelines.publication_fields import REFERENCES
from pipelines.records.batches import batch_of_columns
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import TableWriter, escaped, literal, row_batches

if TYPE_CHECKING:
    import duckdb

    from pipelines.migration.plan.conflicts import RecordDecision
    from pipelines.migration.plan.match_store import MatchStore


def plan_publications(
    writer: TableWriter, inputs: PlanInputs, store: MatchStore, *, with_users: bool = False
) -> Totals:
    """Append a row for each publication of the source.

    `store`: knows the target ids of the records to which links lead; also of the source's users, where the users of both libraries were
    read (`with_users`).
    """
    source, journal = inputs.source, inputs.journal
    totals = Totals(source.records, inputs.target.records, source.unfit)
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
        create_table(database, WRITTEN_FILES, batches_of(WRITTEN_FILES, journal.written_files(PUBLICATIONS)))
        _prepare(database, source, inputs.files, mapped=with_users)
    write_rows(writer, PreparedRows(source, folder, tuple(fields)), links, totals)
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
    yield batch_of_columns(DECISIONS, {name: [getattr(decision, name) for decision in found] for name in names})


def _prepare(
    database: duckdb.DuckDBPyConnection,
    source: ComparableLibrary,
    files: str | None,
    *,
    mapped: bool,
) -> None:
    """Make the table `outcome`: the merged record for each record of the source, with its place there and what is known of its files.

    Of its files it has the contents, those that earlier plans wrote, and those of the matched record. The table `touched` gets the matched
    records of the target that are patched, in conflict or kept otherwise. `mapped`: whether contributors are those of the target.
    """
    content = (
        f"SELECT publication_id, list({{'kind': kind, 'position': position, 'status': status, 'sha256': sha256, 'bytes': bytes, "  # noqa: S608
        f"'problem': problem}}) AS contents FROM read_parquet({literal(escaped(files))}) WHERE publication_id IS NOT NULL GROUP BY ALL"
        if files
        else "SELECT NULL::BIGINT AS publication_id, NULL AS contents WHERE false"
    )
    written = (
        "SELECT source_id, list({'kind': kind, 'part': part, 'state': state, 'asset_id': asset_id, 'message': message} "
        "ORDER BY number) AS written "
        "FROM written_files GROUP BY source_id"
    )
    contributors = f"SELECT id, {CONTRIBUTOR} AS mapped FROM source WHERE {CONTRIBUTOR} IS NOT NULL"  # noqa: S608  our own name
    column, join = (", v.mapped", f"LEFT JOIN ({contributors}) AS v ON v.id = s.id") if mapped else ("", "")
    database.execute(f"""
        CREATE TABLE outcome AS
        SELECT
            s.file_row_number AS place, c.*, f.contents, w.written, a.files AS there{column}
        FROM read_parquet({literal(escaped(source.path(RECORDS)))}, file_row_number = true) AS s
        JOIN merged AS c ON c.source_id = s.id
        LEFT JOIN (SELECT id, files FROM target WHERE files IS NOT NULL) AS a ON a.id = c.target_id
        LEFT JOIN ({content}) AS f ON f.publication_id = s.id
        LEFT JOIN ({written}) AS w ON w.source_id = s.id
        {join}
    """)  # noqa: S608  our own names, addresses quoted
    database.execute(
        f"CREATE TABLE touched AS SELECT target.* FROM target SEMI JOIN merged AS c ON c.target_id = target.id "  # noqa: S608
        f"AND (c.action IN ({', '.join(map(literal, sorted(TOUCHING)))}) OR len(c.kept) > 0)"
    )
