"""Staged rows as Arrow batches: one batch for each table, in the schema of its description."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pipelines.records.tables.description import Table
from pipelines.records.values import text_of

Row = tuple[Any, ...]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Python searches for no cycles in this block: millions of rows have none, and each search visits what is in memory."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@dataclass
class StagedBatch:
    """The staged rows of some records: table → Arrow batch, and residue key → number of records that have it."""

    tables: dict[str, pa.RecordBatch]
    residue: Counter[str] = field(default_factory=Counter)


def named_batch(table: Table, columns: Mapping[str, Sequence[Any]]) -> pa.RecordBatch:
    """One Arrow batch of a table from its columns by name, in any order. Raises `ValueError` unless they are exactly the table's."""
    names = [column.name for column in table.columns]
    if columns.keys() != set(names):
        wrong = ", ".join(sorted(columns.keys() ^ set(names)))
        raise ValueError(f"The staged columns of {table.name} differ from its description in: {wrong}")
    return table_batch(table, [columns[name] for name in names])


def table_batch(table: Table, columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """One Arrow batch of a table from its columns, in the order of its description."""
    schema = table.schema
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def transposed(rows: Sequence[tuple[Any, ...]], table: Table) -> Sequence[Sequence[Any]]:
    """Rows as columns; every column of the table even if there are no rows."""
    return list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """An Arrow array. A text column takes any JSON value and writes it as JSON if it is not text."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, UnicodeError, OverflowError):
        return pa.array([text_of(value) for value in values], kind)
