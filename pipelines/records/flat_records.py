"""Stages users, hard copies, locations, collections, authorities and tasks.

The service does not document the fields of most of them (service.md#not-shown). A described column takes the key of the same name; a table
of `LISTS` takes the entries of one list; the other fields have the columns that were observed (shapes/columns.py); everything else is
residue (I6). Total (I7): a value that its column cannot hold is residue, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

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
    without_addresses,
    without_signatures,
)
from pipelines.records.shapes.columns import ColumnType, ObservedColumn, with_columns
from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.other_resources import LISTS
from pipelines.records.tables.registry import STAGED
from pipelines.records.values import compact_json, day, decode_record, text_of, whole_number

_STAGING_COLUMNS = frozenset({"residue", "sha256"})
"""Columns that staging fills from no key of the record."""

_Record = dict[str, Any]
_Values = dict[str, list[Any]]


class RecordStager:
    """Stages the records of one resource, batch by batch, into its described tables with the observed columns."""

    def __init__(self, resource: str, observed: Sequence[ObservedColumn] = ()) -> None:
        table, *self._lists = STAGED[resource]
        self._table = with_columns(table, observed)
        self._fields = [column for column in table.columns if column.name not in _STAGING_COLUMNS]
        described = {column.name for column in self._fields}
        self._mapped = described | {LISTS[list_table] for list_table in self._lists} | IGNORED
        self._further = [column for column in self._table.columns if column not in table.columns]
        whole = {column.path[0]: column for column in observed if len(column.path) == 1}
        self._whole = {key: column for key, column in whole.items() if key in self._mapped}
        """Columns beside a described column or a list, with what that does not hold."""
        self._tree = _tree((column for column in observed if column.path[0] not in self._mapped), described)

    def __call__(self, payloads: Sequence[bytes], hashes: Sequence[str]) -> StagedBatch:
        """Stage records: `payloads` is the JSON of each, `hashes` the SHA-256 of each. Never raises on data."""
        records = [decode_record(payload) for payload in payloads]
        residues: list[_Record] = [unknown_keys(record, self._mapped) for record in records]
        columns: _Values = {column.name: self._described(column, records, residues) for column in self._fields}
        ids = columns[self._fields[0].name]
        lists = {table: self._list_rows(table, records, ids, residues) for table in self._lists}
        columns |= {column.name: [None] * len(records) for column in self._further}
        for key, column in self._whole.items():
            columns[column.name] = [_observed(column.type, record.get(key)) for record in records]
        if self._tree.members:
            for number, (record, residue) in enumerate(zip(records, residues, strict=True)):
                _take_record(self._tree, _Row(number, record, columns, residue))
        columns["residue"] = [residue_json(residue) for residue in residues]
        batches = {self._table.name: named_batch(self._table, {**columns, "sha256": hashes})}
        batches |= {table.name: table_batch(table, transposed(rows, table)) for table, rows in lists.items()}
        return StagedBatch(batches, bounded(residue_counts(residues)))

    def _described(self, column: Column, records: list[_Record], residues: list[_Record]) -> list[Any]:
        """The values of a described column; a value that it cannot hold goes into the residue, unless a column beside it takes it."""
        read = _reader(column.type)
        values = [read(record.get(column.name)) for record in records]
        if column.name not in self._whole:
            keep_if_changed(records, column.name, values, residues)
        return values

    def _list_rows(
        self, table: Table, records: list[_Record], ids: Sequence[Any], residues: list[_Record]
    ) -> list[Row]:
        """One row for each entry of the list of `table`."""
        key, value = LISTS[table], table.columns[-1]
        read, member = _reader(value.type), "id" if value.type == pa.int64() else "name"
        rows: list[Row] = []
        for record, owner, residue in zip(records, ids, residues, strict=True):
            entries = record.get(key)
            left_over: _Record = {} if key in self._whole else residue  # the column beside it has the whole list
            if type(entries) is not list:
                if entries is not None:
                    left_over[key] = entries
                continue
            for position, entry in enumerate(entries):
                rows.append((owner, position, _entry(entry, read, member, f"{key}[{position}]", left_over)))
        return rows


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    if kind == pa.int64():
        return whole_number
    return _day if kind == pa.date32() else text_of


def _day(value: object) -> Any:
    return day(value) if type(value) is str else None


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


class _Node:
    """A field, with its column and the fields below it. `fills`: the column is a described one, which a key of its own name fills first."""

    def __init__(self) -> None:
        self.column: ObservedColumn | None = None
        self.fills = False
        self.members: dict[str, _Node] = {}


def _tree(columns: Iterable[ObservedColumn], described: Collection[str]) -> _Node:
    root = _Node()
    for column in columns:
        node = root
        for key in column.path:
            node = node.members.setdefault(key, _Node())
        node.column, node.fills = column, column.name in described
    return root


class _Row(NamedTuple):
    """One record, with the columns that take its values."""

    number: int
    record: _Record
    columns: _Values
    residue: _Record


def _take_record(tree: _Node, row: _Row) -> None:
    """Move the fields of a record from the residue into their columns."""
    for key, value in list(row.residue.items()):
        node = tree.members.get(key)
        if node is not None and _take(node, key, value, row):
            del row.residue[key]


def _take(node: _Node, where: str, value: Any, row: _Row) -> bool:
    """Put a value into its column, or its members into theirs. Return whether a column was there for it."""
    column = node.column
    if column is not None and not (node.fills and column.name in row.record):
        taken = _observed(column.type, value)
        if taken is not None:
            row.columns[column.name][row.number] = taken
            return True
    if type(value) is dict and node.members:
        for key, member in value.items():
            child, path = node.members.get(key), f"{where}.{key}"
            if (
                key not in IGNORED
                and not (child is not None and _take(child, path, member, row))
                and member is not None
            ):
                keep_nested(row.residue, path, member)
        return True
    return value is None


def _observed(column_type: str, value: Any) -> Any:
    """A value as its column has it; None where that cannot hold it."""
    return _READERS[column_type](value)


def _boolean(value: Any) -> Any:
    return value if type(value) is bool else None


def _integer(value: Any) -> Any:
    return whole_number(value) if type(value) is int else None


def _number(value: Any) -> Any:
    return float(value) if type(value) is float or (type(value) is int and whole_number(value) is not None) else None


def _text(value: Any) -> Any:
    return None if value is None or isinstance(value, dict | list) else without_signatures(text_of(value) or "")


def _json(value: Any) -> Any:
    return None if value is None else without_signatures(compact_json(without_addresses(value)))


_READERS: dict[str, Callable[[Any], Any]] = {
    ColumnType.BOOLEAN: _boolean,
    ColumnType.INTEGER: _integer,
    ColumnType.NUMBER: _number,
    ColumnType.DATE: _day,
    ColumnType.TEXT: _text,
    ColumnType.JSON: _json,
}
"""Type of an observed column → the function that reads its values."""
