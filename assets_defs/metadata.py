"""Metadata of tables for Dagster: rows, bytes, columns and the first rows."""

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg
import msgspec

from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import MADE_FROM
from pipelines.service.redaction import outside_text
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

MOST_SHOWN = 20
"""Problems that Dagster shows one by one; the commands list more."""

PREVIEW_ROWS = 5
PREVIEW_CHARACTERS = 80
HIDDEN = frozenset({"payload", "residue"})
"""Columns without a preview: they may contain anything, also signed addresses (I10). Personal columns have none, either, because
Dagster stores previews in its history."""


def column_schema(table: Table) -> dg.TableSchema:
    """The columns of a table, which Dagster shows before and after a run."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                str(column.type),
                description=column.comment,
                constraints=dg.TableColumnConstraints(nullable=not column.required),
                tags={"personal": ""} if column.personal else {},
            )
            for column in table.columns
        ]
    )


def one_line_each(sentences: Iterable[str]) -> dg.TextMetadataValue:
    """Sentences as text, which the pages show at once; they hide lists and Markdown behind a link."""
    return dg.MetadataValue.text("\n".join(sentences) or "none")


def single_values(result: object) -> dict[str, Any]:
    """The numbers and texts of a result, by the names in its JSON document."""
    document = msgspec.to_builtins(result)
    return {name: value for name, value in document.items() if isinstance(value, int | float | str)}


def column_lineage(tenant: str, table: Table) -> dg.TableColumnLineage:
    """For each column of a staged table, the column of the raw table that it is made from."""
    raw = dg.AssetKey([tenant, MADE_FROM[table.name]])
    return dg.TableColumnLineage(
        {column.name: [dg.TableColumnDep(raw, column.made_from)] for column in table.columns if column.made_from}
    )


def table_metadata(data: DataFolder, snapshot: Snapshot, table: Table, requests: int) -> Mapping[str, Any]:
    """Metadata of one Parquet file; `requests` is the number of requests that it took."""
    facts = snapshot.manifest.tables[table.name]
    return {
        "dagster/row_count": facts.rows,
        "dagster/uri": f"{snapshot.uri}/{facts.path}",
        "bytes": facts.bytes,
        "requests": requests,
        "preview": _first_rows(data, snapshot, table),
    }


def preview(names: Iterable[str], rows: Iterable[Iterable[object]]) -> dg.TableMetadataValue:
    """A table for the web interface. Each cell becomes one short line without secrets, because it comes from a library (I10, I13)."""
    columns = list(names)
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(zip(columns, map(_cell, row), strict=True))) for row in rows],
        schema=dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in columns]),
    )


def _first_rows(data: DataFolder, snapshot: Snapshot, table: Table) -> dg.TableMetadataValue:
    names = [column.name for column in table.impersonal.columns if column.name not in HIDDEN]
    with data.open_table(snapshot, table.name) as file:
        batch = next(file.iter_batches(PREVIEW_ROWS, columns=names), None)
    rows = batch.to_pylist() if batch is not None else []
    return preview(names, (row.values() for row in rows))


def _cell(value: object) -> str:
    return "" if value is None else outside_text(value, PREVIEW_CHARACTERS)
