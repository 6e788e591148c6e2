"""The schemas of Iceberg tables, from the footers of staged files. Columns are found by field id (records/tables/field_ids.py).

A table has the columns of all files that were ever registered. A name that stands for several types is one column for each type: the widest
has the name, the others the name and their type, such as `shelf_long`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

from pipelines.errors import StorageError
from pipelines.records.tables.field_ids import FIELD_ID, SNAPSHOT_IDS, TYPE_NAMES
from pipelines.records.tables.shared_columns import SNAPSHOT_COLUMNS

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


def file_schema(footer: Any, address: str) -> Schema:
    """The schema of the file at `address`, from its footer. Raises `StorageError` where it has no field ids."""
    if not all(FIELD_ID in (field.metadata or {}) for field in footer):
        raise StorageError(
            f"{address} is of an earlier format, without field ids, and cannot be in Iceberg tables. Remove its snapshot, or name a "
            "later one: `bookferry stage TENANT --snapshot ID`."
        )
    described = [
        field.with_metadata(field.metadata | {b"doc": field.metadata.get(b"comment", b"")}) for field in footer
    ]
    return pyarrow_to_schema(pa.schema(described))


def extended(schema: Schema, of_file: Schema, number: int) -> Schema | None:
    """The schema with the columns of a file as schema `number` of its table, or None if it has them all."""
    fields = {field.field_id: field for field in schema.fields}
    for column in of_file.fields:
        field = fields.get(column.field_id)
        if field is None:
            _add(fields, column)
        elif field.field_type != column.field_type:
            raise StorageError(
                f"The Iceberg table's column {field.name} has the field id {column.field_id} and the type {field.field_type}; "
                f"{column.name} of the file has the same id and is {column.field_type}. The file cannot be registered."
            )
    return Schema(*fields.values(), schema_id=number) if len(fields) > len(schema.fields) else None


def _add(fields: dict[int, NestedField], column: NestedField) -> None:
    ids = {field.name.casefold(): number for number, field in fields.items()}
    name = column.name
    if (holder := ids.get(name.casefold())) is not None:
        present = fields[holder]
        if _RANKS.index(str(column.field_type)) > _RANKS.index(str(present.field_type)):
            fields[holder] = _named(present, _free(f"{present.name}_{present.field_type}", ids))
        else:
            name = _free(f"{name}_{column.field_type}", ids)
    fields[column.field_id] = _named(column, name)


def _named(column: NestedField, name: str) -> NestedField:
    return NestedField(column.field_id, name, column.field_type, required=False, doc=column.doc)


def _free(name: str, taken_names: Iterable[str]) -> str:
    free, number = name, 1
    while free.casefold() in taken_names:
        number += 1
        free = f"{name}_{number}"
    return free
