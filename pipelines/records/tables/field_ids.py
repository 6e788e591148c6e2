"""The schema of a staged table's Parquet file: its columns, then `tenant` and `snapshot`, each with a field id.

Apache Iceberg finds a column by its field id and never by its name, so that an id must mean the same column in every file, of every night
and every library. It is computed from the column's name and type alone. A column whose type changes is another column there, because
Iceberg cannot read the old values as the new type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import pyarrow as pa

from pipelines.records.tables.description import Table
from pipelines.records.tables.shared_columns import SNAPSHOT_COLUMNS

FIELD_ID = b"PARQUET:field_id"
"""Key of a field's metadata that pyarrow writes as the field id of the Parquet schema."""

FIRST_ID = 1_001
"""The smallest computed id. Smaller ones are for `tenant` and `snapshot`: an Iceberg table is created with them, as its first columns."""

IDS = 1 << 30
"""Number of computed ids. Larger ones stay free for columns that somebody adds to an Iceberg table: it numbers them upwards."""

SNAPSHOT_IDS = {column.name: number for number, column in enumerate(SNAPSHOT_COLUMNS, 1)}
"""The field ids of `tenant` and `snapshot`."""

TYPE_NAMES: Mapping[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.string(): "string",
}
"""Arrow's type → Iceberg's, from the narrowest to the widest."""


def field_id(name: str, type_name: str, attempt: int = 0) -> int:
    """The field id of a column. `attempt`: how many of its ids another column of the table has already."""
    content = f"{name}:{type_name}{f':{attempt}' if attempt else ''}"
    return FIRST_ID + int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big") % IDS


def field_ids(columns: Iterable[tuple[str, pa.DataType]]) -> dict[str, int]:
    """Returns the field ids of a table's columns, by name.

    Two columns of a table with the same id are improbable, but readers would mix them up: the later one takes its next id. Columns keep
    their order from night to night, and with it their ids.
    """
    ids: dict[str, int] = {}
    for name, kind in columns:
        attempt = 0
        while (number := field_id(name, TYPE_NAMES[kind], attempt)) in ids.values():
            attempt += 1
        ids[name] = number
    return ids


def staged_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a staged table's file. `tenant` and `snapshot` are the last columns, where readers also put those of a path."""
    ids = field_ids((column.name, column.type) for column in table.columns) | SNAPSHOT_IDS
    own = [
        pa.field(column.name, column.type, nullable=False, metadata={"comment": column.comment})
        for column in SNAPSHOT_COLUMNS
    ]
    fields = [*table.schema, *own]
    return pa.schema(
        [field.with_metadata({**(field.metadata or {}), FIELD_ID: str(ids[field.name]).encode()}) for field in fields],
        metadata={"comment": table.comment},
    )
