"""Staged rows as Arrow batches: one batch for each table, in the schema of its description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pipelines.records.tables.description import Table
from pipelines.records.values import text_of

Row = tuple[Any, ...]


@dataclass
class StagedBatch:
    """The staged rows of some records: table → Arrow batch, and residue key → number of records that have it."""

    tables: dict[str, pa.RecordBatch]
    residue: Counter[str] = field(default_factory=Counter)


def batch_of_columns(table: Table, columns: Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
    """One Arrow batch of a table from its columns by name, in any order."""
    schema = table.schema
    return pa.record_batch([_array(columns[field.name], field.type) for field in schema], schema=schema)


def batch_of_rows(table: Table, rows: Sequence[Row]) -> pa.RecordBatch:
    """The same from rows, whose values are in the order of the description."""
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    return batch_of_columns(table, dict(zip(table.schema.names, columns, strict=True)))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """An Arrow array. A text column takes any JSON value and writes it as JSON if it is not text."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, UnicodeError, OverflowError):
        return pa.array([text_of(value) for value in values], kind)
