"""What Dagster shows of a table: rows, bytes, columns and the first rows."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq

from pipelines.records.tables import Table
from pipelines.service.redaction import outside_text

PREVIEW_ROWS = 5
PREVIEW_CHARACTERS = 80
HIDDEN = frozenset({"payload", "residue"})
"""Not previewed: they hold whatever the library does, signed addresses included (I10)."""

PERSONAL = {"users": HIDDEN | {"email", "name"}}
"""Table → what of it is not previewed: names and addresses of people do not belong into a history of runs."""


def column_schema(table: Table) -> dg.TableSchema:
    """The description of a table as Dagster's interface shows it before and after a run."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                str(column.type),
                description=column.comment,
                constraints=dg.TableColumnConstraints(nullable=not column.required),
            )
            for column in table.columns
        ]
    )


def table_metadata(path: Path, table: Table, rows: int, requests: int) -> Mapping[str, Any]:
    """Metadata of one materialized Parquet file, and of the requests that it took."""
    return {
        "dagster/row_count": rows,
        "dagster/uri": path.as_uri(),
        "bytes": path.stat().st_size,
        "requests": requests,
        "preview": _first_rows(path, table),
    }


def preview(names: Iterable[str], rows: Iterable[Iterable[object]]) -> dg.TableMetadataValue:
    """A table to look at. What comes from a library is shown as one short line without secrets (I10, I13)."""
    columns = list(names)
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(zip(columns, map(_cell, row), strict=True))) for row in rows],
        schema=dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in columns]),
    )


def _first_rows(path: Path, table: Table) -> dg.TableMetadataValue:
    names = [column.name for column in table.columns if column.name not in PERSONAL.get(table.name, HIDDEN)]
    with pq.ParquetFile(path) as file:
        batch = next(file.iter_batches(PREVIEW_ROWS, columns=names), None)
    rows = batch.to_pylist() if batch is not None else []
    return preview(names, (row.values() for row in rows))


def _cell(value: object) -> str:
    return "" if value is None else outside_text(value, PREVIEW_CHARACTERS)
