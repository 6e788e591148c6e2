"""Compares the views in Postgres with those of DuckDB: the same rows under the same names."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pipelines.records.tables.registry import STAGED
from pipelines.store.catalogue import SNAPSHOTS, TABLES_READ, open_catalogue, table_views
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.postgres.conftest import Ask

CHECKSUM = "sha256"
"""In Postgres it is that of the first snapshot that had the row: a checksum that changes alone is no change."""


def assert_same_views(data: DataFolder, ask: Ask, *instants: datetime) -> None:
    """Compare the views of every resource that was read, and its tables of the library `old` as of these instants.

    All snapshots must be loaded.
    """
    read = {resource for snapshot in data.snapshots() for resource in snapshot.manifest.resources}
    tables = [table for resource in STAGED if resource in read for table in STAGED[resource]]
    views = [
        *(SNAPSHOTS.name, TABLES_READ.name, *(f"{STAGED[resource][0].name}_deleted" for resource in read)),
        *(view.name for table in tables for view in table_views(table.impersonal)),
        *(f"{table.name}_as_of('old', '{instant.isoformat()}')" for instant in instants for table in tables),
    ]
    with open_catalogue(data) as duckdb:
        for view in views:
            sql = f"SELECT * FROM {view}"
            expected = duckdb.execute(sql)
            columns, rows = [column[0] for column in expected.description or ()], expected.fetchall()
            residue = columns.index("residue") if "residue" in columns else None
            parsed = [
                tuple(
                    json.loads(value) if place == residue and value else value
                    for place, value in enumerate(row)
                    if columns[place] != CHECKSUM
                )
                for row in rows
            ]
            names = ", ".join(f'"{column}"' for column in columns if column != CHECKSUM)
            postgres_rows = ask(f"SELECT {names} FROM ({sql}) AS shown")
            assert sorted(str([*map(_comparable, row)]) for row in postgres_rows) == sorted(
                str([*map(_comparable, row)]) for row in parsed
            ), view


def _comparable(value: object) -> object:
    """A value in a form that both databases share: JSON parsed, an instant in UTC, and no NUL, which no text in Postgres can have."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return json.dumps(value, sort_keys=True).replace("\\u0000", "\\ufffd") if isinstance(value, dict) else value
