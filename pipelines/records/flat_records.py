"""Stages users, hard copies, locations, collections, authorities and tasks from the descriptions of their tables alone.

The service does not document the fields of most of them (service.md#not-shown). A column takes the key of the same name; a table of `LISTS`
takes the entries of one list; everything else is residue (I6). Total (I7): a value that its column cannot hold is residue, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from pipelines.records.batches import Row, StagedBatch, named_batch, table_batch, transposed
from pipelines.records.residue import (
    IGNORED,
    bounded,
    keep_if_changed,
    keep_nested,
    nested_residue,
    residue_counts,
    residue_json,
    unknown_keys,
)
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.other_resources import LISTS
from pipelines.records.tables.registry import STAGED
from pipelines.records.values import day, decode_record, text_of, whole_number

_STAGING_COLUMNS = frozenset({"residue", "sha256"})
"""Columns that staging fills from no key of the record."""

_Record = dict[str, Any]


class RecordStager:
    """Stages the records of one resource, batch by batch, into its described tables."""

    def __init__(self, resource: str) -> None:
        self._table, *self._lists = STAGED[resource]
        self._fields = [column for column in self._table.columns if column.name not in _STAGING_COLUMNS]
        self._mapped = {column.name for column in self._fields} | {LISTS[table] for table in self._lists} | IGNORED

    def __call__(self, payloads: Sequence[bytes], hashes: Sequence[str]) -> StagedBatch:
        """Stage records: `payloads` is the JSON of each, `hashes` the SHA-256 of each. Never raises on data."""
        records = [decode_record(payload) for payload in payloads]
        residues: list[_Record] = [unknown_keys(record, self._mapped) for record in records]
        columns = [_column(column, records, residues) for column in self._fields]
        lists = {table: _list_rows(table, records, columns[0], residues) for table in self._lists}
        named: dict[str, Sequence[Any]] = {
            **{column.name: values for column, values in zip(self._fields, columns, strict=True)},
            "residue": [residue_json(residue) for residue in residues],
            "sha256": hashes,
        }
        batches = {self._table.name: named_batch(self._table, named)}
        batches |= {table.name: table_batch(table, transposed(rows, table)) for table, rows in lists.items()}
        return StagedBatch(batches, bounded(residue_counts(residues)))


def _column(column: Column, records: list[_Record], residues: list[_Record]) -> list[Any]:
    """The values of one column; a value that it cannot hold goes into the residue."""
    read = _reader(column.type)
    values = [read(record.get(column.name)) for record in records]
    keep_if_changed(records, column.name, values, residues)
    return values


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    if kind == pa.int64():
        return whole_number
    return _day if kind == pa.date32() else text_of


def _day(value: object) -> Any:
    return day(value) if type(value) is str else None


def _list_rows(table: Table, records: list[_Record], ids: Sequence[Any], residues: list[_Record]) -> list[Row]:
    """One row for each entry of the list of `table`."""
    key, value = LISTS[table], table.columns[-1]
    read, member = _reader(value.type), "id" if value.type == pa.int64() else "name"
    rows: list[Row] = []
    for record, owner, residue in zip(records, ids, residues, strict=True):
        entries = record.get(key)
        if type(entries) is not list:
            if entries is not None:
                residue[key] = entries
            continue
        for position, entry in enumerate(entries):
            rows.append((owner, position, _entry(entry, read, member, f"{key}[{position}]", residue)))
    return rows


def _entry(entry: Any, read: Callable[[Any], Any], member: str, where: str, residue: _Record) -> Any:
    """The value of a plain entry, or the `id` or `name` of an entry that is an object; the rest goes into the residue."""
    plain = entry
    if type(entry) is dict:
        nested_residue(entry, {member}, where, residue)
        plain, where = entry.get(member), f"{where}.{member}"
    value = read(plain)
    if value is None and plain is not None:
        keep_nested(residue, where, plain)
    return value
