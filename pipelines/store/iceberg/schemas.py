"""The schemas of Iceberg tables, from the footers of staged files. Columns are found by field id (records/tables/field_ids.py).

A table has the columns of all files that were ever registered. A name that stands for several types is one column for each type: the widest
has the name, the others the name and their type, such as `shelf_long`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestamptzType,
)

from pipelines.errors import StorageError
from pipelines.records.tables.field_ids import FIELD_ID, SNAPSHOT_IDS, TYPE_NAMES
from pipelines.records.tables.shared_columns import SNAPSHOT_COLUMNS

_TYPES: dict[str, PrimitiveType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamptz": TimestamptzType(),
    "string": StringType(),
}

_RANKS = [*TYPE_NAMES.values()]
"""Types from the narrowest to the widest."""

FIRST_SCHEMA = Schema(
    *(
        NestedField(SNAPSHOT_IDS[column.name], column.name, StringType(), required=False, doc=column.comment)
        for column in SNAPSHOT_COLUMNS
    )
)
"""The columns with which a table is created: catalogues number the columns of a new table themselves, from 1."""

PARTITIONS = PartitionSpec(
    *(PartitionField(number, 999 + number, IdentityTransform(), name) for name, number in SNAPSHOT_IDS.items())
)
"""By library and snapshot: a snapshot is removed by its partition, without a look into a file."""


class FileColumn(NamedTuple):
    """One column of a staged file."""

    id: int
    name: str
    type: str
    comment: str


def file_columns(schema: pa.Schema, address: str) -> list[FileColumn]:
    """The columns of the staged file at `address`. Raises `StorageError` where they have no field ids."""
    columns = []
    for field in schema:
        metadata = field.metadata or {}
        if FIELD_ID not in metadata:
            raise StorageError(
                f"{address} is of an earlier format, without field ids, and cannot be in Iceberg tables. Remove its snapshot, or name a "
                "later one: `bookferry stage TENANT --snapshot ID`."
            )
        comment = metadata.get(b"comment", b"").decode()
        columns.append(FileColumn(int(metadata[FIELD_ID]), field.name, TYPE_NAMES[field.type], comment))
    return columns


def extended(schema: Schema, columns: Iterable[FileColumn], number: int) -> Schema | None:
    """The schema with these columns as schema `number` of its table, or None if it has them all."""
    fields = {field.field_id: field for field in schema.fields}
    for column in columns:
        field = fields.get(column.id)
        if field is None:
            _add(fields, column)
        elif field.field_type != _TYPES[column.type]:
            raise StorageError(
                f"The Iceberg table's column {field.name} has the field id {column.id} and the type {field.field_type}; "
                f"{column.name} of the file has the same id and is {column.type}. The file cannot be registered."
            )
    return Schema(*fields.values(), schema_id=number) if len(fields) > len(schema.fields) else None


def _add(fields: dict[int, NestedField], column: FileColumn) -> None:
    ids = {field.name.casefold(): number for number, field in fields.items()}
    name = column.name
    if (holder := ids.get(name.casefold())) is not None:
        other = fields[holder]
        if _RANKS.index(column.type) > _RANKS.index(str(other.field_type)):
            fields[holder] = _field(holder, _free(f"{other.name}_{other.field_type}", ids), other.field_type, other.doc)
        else:
            name = _free(f"{name}_{column.type}", ids)
    fields[column.id] = _field(column.id, name, _TYPES[column.type], column.comment)


def _field(number: int, name: str, kind: Any, comment: str | None) -> NestedField:
    return NestedField(number, name, kind, required=False, doc=comment)


def _free(name: str, taken_names: Iterable[str]) -> str:
    free, number = name, 1
    while free.casefold() in taken_names:
        number += 1
        free = f"{name}_{number}"
    return free
