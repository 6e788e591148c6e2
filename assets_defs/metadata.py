"""What Dagster shows of a table: rows, bytes, columns and the first rows."""

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

from pipelines.records.tables import MADE_FROM, Table
from pipelines.service.redaction import outside_text
from pipelines.store.snapshots.captures import Capture

MOST_SHOWN = 20
"""Problems that Dagster shows one by one; the commands list more."""

PREVIEW_ROWS = 5
PREVIEW_CHARACTERS = 80
HIDDEN = frozenset({"payload", "residue"})
"""Not previewed: they hold whatever the library does, signed addresses included (I10). Nor is what is personal: a history of runs is no
place for it."""


def column_schema(table: Table) -> dg.TableSchema:
    """The description of a table as Dagster's interface shows it before and after a run."""
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


def column_lineage(tenant: str, table: Table) -> dg.TableColumnLineage:
    """Which column of the raw table each column of a staged table is made from."""
    raw = dg.AssetKey([tenant, MADE_FROM[table.name]])
    return dg.TableColumnLineage(
        {column.name: [dg.TableColumnDep(raw, column.made_from)] for column in table.columns if column.made_from}
    )


def table_metadata(capture: Capture, table: Table, requests: int) -> Mapping[str, Any]:
    """Metadata of one materialized Parquet file, and of the requests that it took."""
    facts = capture.facts.tables[table.name]
    path = capture.path / facts.path
    return {
        "dagster/row_count": facts.rows,
        "dagster/uri": path.as_uri(),
        "bytes": facts.bytes,
        "requests": requests,
        "preview": _first_rows(capture, table),
    }


def preview(names: Iterable[str], rows: Iterable[Iterable[object]]) -> dg.TableMetadataValue:
    """A table to look at. What comes from a library is shown as one short line without secrets (I10, I13)."""
    columns = list(names)
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(zip(columns, map(_cell, row), strict=True))) for row in rows],
        schema=dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in columns]),
    )


def _first_rows(capture: Capture, table: Table) -> dg.TableMetadataValue:
    names = [column.name for column in table.impersonal.columns if column.name not in HIDDEN]
    with capture.open_file(table.name) as file:
        batch = next(file.iter_batches(PREVIEW_ROWS, columns=names), None)
    rows = batch.to_pylist() if batch is not None else []
    return preview(names, (row.values() for row in rows))


def _cell(value: object) -> str:
    return "" if value is None else outside_text(value, PREVIEW_CHARACTERS)
