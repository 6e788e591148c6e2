"""Staged rows as Arrow: one batch a table, in the schema of its description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pipelines.records.tables import Table
from pipelines.records.values import text_of

Row = tuple[Any, ...]


@dataclass
class StagedBatch:
    """The staged rows of some records, one Arrow batch a table, and in how many records each residue key occurred."""

    tables: dict[str, pa.RecordBatch]
    residue: Counter[str] = field(default_factory=Counter)


def table_batch(table: Table, columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """One Arrow batch of a table from its columns, in the order of its description."""
    schema = table.schema
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def transposed(rows: list[Row], table: Table) -> Sequence[Sequence[Any]]:
    """Rows as columns, all of them also where there is no row."""
    return list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """An Arrow array; text columns take any JSON value, written as JSON where it is not text."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, UnicodeError, OverflowError):
        return pa.array([text_of(value) for value in values], kind)
