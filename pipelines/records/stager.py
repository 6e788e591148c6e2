"""Stages the records of a resource: from the JSON of a batch of records to the columns of its tables.

One way for every resource, driven by the descriptions of its tables. A column takes the value to which its path leads; a table of a list
takes the entries of the list; the fields that no described column takes have the columns that were observed (tables/observed_columns.py).
Identifiers and files are read by the rules of their own modules. Total (I7): whatever a record holds, it becomes exactly one row of the
first table, and each of its values is in a column, ignored by name, or residue under its path (I6).

The work goes member by member over a batch, because record by record in Python is several times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.records.batches import StagedBatch, batch_of_columns, batch_of_rows
from pipelines.records.files import file_rows
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import read_entry, read_fields, type_and_value
from pipelines.records.identifiers.verdicts import Identifier
from pipelines.records.residue import (
    IGNORED,
    keep_nested,
    nested_residue,
    residue_counts,
    residue_json,
    without_addresses,
    without_signatures,
)
from pipelines.records.shapes.observation import ObservedColumn
from pipelines.records.tables.description import Column, Part, Table
from pipelines.records.tables.observed_columns import ColumnType, with_columns
from pipelines.records.tables.publication_fields import IDENTIFIER_KEYS, IDENTIFIER_LIST
from pipelines.records.tables.publications import PUBLICATION_FILES, PUBLICATION_IDENTIFIERS
from pipelines.records.tables.registry import STAGED
from pipelines.records.values import (
    PartialDate,
    Precision,
    compact_json,
    day,
    decode_record,
    partial_date,
    text_of,
    whole_number,
)

RECORDS_PER_STEP = 200
"""Records that are staged together: few enough for the processor's cache and for the young generation of the garbage collector."""

_Json = dict[str, Any]
_Reader = Callable[[Any], Any]
_Values = dict[str, Sequence[Any]]
"""Name of a column → its value in each record or entry."""

_NOTHING: _Json = {}
_MADE_OTHERWISE = frozenset({"residue", "sha256"})
"""Columns of a record that no key fills."""


def in_steps(stager: Stager, payloads: Sequence[bytes], hashes: Sequence[str]) -> Iterator[StagedBatch]:
    """Stage records, `RECORDS_PER_STEP` of them at a time."""
    for start in range(0, len(payloads), RECORDS_PER_STEP):
        step = slice(start, start + RECORDS_PER_STEP)
        yield stager(payloads[step], hashes[step])


class Stager:
    """Stages the records of one resource, batch by batch, into its described tables with the observed columns."""

    def __init__(self, resource: str, observed: Sequence[ObservedColumn] = (), kinds: Kinds = STANDARD_KINDS) -> None:
        described, *lists = STAGED[resource]
        self._table, self._kinds = with_columns(described, observed), kinds
        self._record = _Member(addressed=True)
        self._record.fill(column for column in described.columns if column.name not in _MADE_OTHERWISE)
        for column in observed:
            self._record.at(column.path, addressed=True).columns.append(_Filled(column.name, _OBSERVED[column.type]))
        for table in lists:
            self._record.at((table.entries,)).is_read_elsewhere = True
        self._lists = [_List(table) for table in lists if table.plain]
        self._files = _Files(self._record) if PUBLICATION_FILES in lists else None
        self._has_identifiers = PUBLICATION_IDENTIFIERS in lists
        if self._has_identifiers:
            for name, _kind in kinds.fields:
                self._record.at((name,)).is_read_elsewhere = True

    def __call__(self, payloads: Sequence[bytes], hashes: Sequence[str]) -> StagedBatch:
        """Stage records: `payloads` is the JSON of each, `hashes` the SHA-256 of each in hexadecimal. Never raises on data."""
        batch = _Batch([decode_record(payload) for payload in payloads])
        self._record.read_members(batch.records, _Place(batch.residues), batch.values)
        tables = [entries.stage(batch, self._record.members[entries.table.entries]) for entries in self._lists]
        if self._files is not None:
            tables.append(self._files.stage(batch))
        if self._has_identifiers:
            tables.append(_identifiers(batch, self._kinds))
        columns = {column.name: batch.column(column.name) for column in self._table.columns}
        columns |= {"residue": [residue_json(residue) for residue in batch.residues], "sha256": hashes}
        tables.insert(0, (self._table, batch_of_columns(self._table, columns)))
        return StagedBatch({table.name: rows for table, rows in tables}, residue_counts(batch.residues))


class _Batch:
    """Records that are staged together. `values`: name of a column → its value in each record, once it was read."""

    def __init__(self, records: Sequence[_Json]) -> None:
        self.records = records
        self.residues: list[_Json] = [{} for _ in records]
        self.values: _Values = {}

    def column(self, name: str) -> Sequence[Any]:
        """A column's value in each record; all are empty if nothing filled it."""
        return self.values.get(name) or [None] * len(self.records)

    @property
    def ids(self) -> Sequence[Any]:
        """The id of each record."""
        return self.column("id")


class _Filled(NamedTuple):
    """A column that takes a value. `read`: None where it takes any value as it is."""

    name: str
    read: _Reader | None


class _Place:
    """Where the values of a batch stand: the residue of the record of each, and its path. `positions`: their places in a list."""

    def __init__(
        self, residues: Sequence[_Json], path: str = "", positions: Sequence[int] = (), below: str = ""
    ) -> None:
        self._residues, self._path, self._positions, self._below = residues, path, positions, below

    def member(self, key: str) -> _Place:
        """The place of a member of each value."""
        if self._positions:
            return _Place(self._residues, self._path, self._positions, f"{self._below}.{key}")
        return _Place(self._residues, f"{self._path}.{key}" if self._path else key)

    def keep(self, index: int, value: Any) -> None:
        """Put a value into the residue of its record."""
        path = f"{self._path}[{self._positions[index]}]{self._below}" if self._positions else self._path
        keep_nested(self._residues[index], path, value)


@dataclass
class _Member:
    """A member of an object: the columns that take its value, and the members below it. `addressed`: it has addresses of files."""

    addressed: bool = False
    columns: list[_Filled] = field(default_factory=list)
    members: dict[str, _Member] = field(default_factory=dict)
    is_read_elsewhere: bool = False

    def at(self, path: Iterable[str], *, addressed: bool = False) -> _Member:
        """The member at a path, which is made if there is none."""
        member = self
        for key in path:
            member = member.members.setdefault(key, _Member(addressed))
        return member

    def fill(self, columns: Iterable[Column], prefix: str = "") -> None:
        """Let described columns take the values to which their paths lead."""
        for column in columns:
            self.at(column.source).columns.append(_Filled(prefix + column.name, _reader(column)))

    def read_members(self, objects: Sequence[_Json], place: _Place, values: _Values) -> None:
        """Take what the members of each object hold, and keep what nothing takes."""
        known_keys = self.members.keys() | IGNORED if self.addressed else self.members.keys()
        if not known_keys >= set[str]().union(*objects):
            for index, value in enumerate(objects):
                for key in value:
                    if key not in known_keys:
                        place.member(key).keep(index, value[key])
        for key, member in self.members.items():
            member.read([value.get(key) for value in objects], place.member(key), values)

    def read(self, sent: Sequence[Any], place: _Place, values: _Values) -> None:
        """Take a value of each object into the columns, or its members into theirs; keep what nothing takes."""
        if sent.count(None) == len(sent):
            return
        remaining = sent
        for column in self.columns:
            cells = sent if column.read is None else [None if value is None else column.read(value) for value in sent]
            earlier = values.get(column.name)
            if earlier is None:
                values[column.name] = cells
            else:  # the key of the column's own name comes first
                cells = [value if first is None else None for first, value in zip(earlier, cells, strict=True)]
                values[column.name] = [
                    value if first is None else first for first, value in zip(earlier, cells, strict=True)
                ]
            remaining = [rest if value is None else None for value, rest in zip(cells, remaining, strict=True)]
        if self.is_read_elsewhere:
            return
        if self.members:
            self.read_members([value if type(value) is dict else _NOTHING for value in remaining], place, values)
        for index, value in enumerate(remaining):
            if value is not None and not (self.members and type(value) is dict):
                place.keep(index, value)


class _Entries:
    """The entries of a list in each record: the id of the record of each, and its place in the list."""

    def __init__(self, batch: _Batch, key: str, residues: Sequence[_Json]) -> None:
        """`residues`: take a value that is no list, and later what is left of the entries."""
        self.values, self.positions, owners = list[Any](), list[int](), list[int]()
        for owner, record in enumerate(batch.records):
            if entries := _items(record, key, residues[owner]):
                self.values += entries
                self.positions += range(len(entries))
                owners += [owner] * len(entries)
        ids = batch.ids
        self.ids = [ids[owner] for owner in owners]
        self.place = _Place([residues[owner] for owner in owners], key, self.positions)
        self.objects = [value if type(value) is dict else _NOTHING for value in self.values]


class _List:
    """A table with a row for each entry of a list: an object with members, or the value of one column itself."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._owner, self._position, *self._columns = table.columns
        self._entry = _Member()
        self._entry.fill(self._columns)
        self._read_plain = next(_reader(column) for column in self._columns if column.name == table.plain)

    def stage(self, batch: _Batch, member: _Member) -> tuple[Table, pa.RecordBatch]:
        """The rows of some records. `member`: the list in the record; a column that has the whole list has what is left of it, too."""
        residues: Sequence[_Json] = batch.residues
        for column in member.columns:
            residues = [
                residue if value is None else {}
                for value, residue in zip(batch.column(column.name), residues, strict=True)
            ]
        entries, values = _Entries(batch, self.table.entries, residues), _Values()
        self._entry.read_members(entries.objects, entries.place, values)
        columns = {column.name: [*values.get(column.name, [None] * len(entries.values))] for column in self._columns}
        plain = columns[self.table.plain]
        for index, value in enumerate(entries.values):
            if value is not None and type(value) is not dict:
                plain[index] = value if self._read_plain is None else self._read_plain(value)
                if plain[index] is None:
                    entries.place.keep(index, value)
        columns |= {self._owner.name: entries.ids, self._position.name: entries.positions}
        return self.table, batch_of_columns(self.table, columns)


class _Files:
    """The rows of `publication_files`, as `file_rows` reads them; what the table's description does not name is residue."""

    def __init__(self, record: _Member) -> None:
        """`record`: a publication, which is to read the description of its cover."""
        described = [column for column in PUBLICATION_FILES.columns if column.path]
        stored = [replace(column, path=column.path[1:]) for column in described if column.path[0] == "file"]
        cover = record.at(("cover",))
        cover.addressed = True
        cover.fill(stored, _COVER)
        self._asset = _Member(addressed=True)
        self._asset.fill(described)
        self._asset.at(("file",)).addressed = True
        self._asset.at(("publication_id",)).is_read_elsewhere = True

    def stage(self, batch: _Batch) -> tuple[Table, pa.RecordBatch]:
        """The rows of some records."""
        entries = _Entries(batch, PUBLICATION_FILES.entries, batch.residues)
        self._asset.read_members(entries.objects, entries.place, {})
        for index, (asset, number) in enumerate(zip(entries.values, entries.ids, strict=True)):
            if type(asset) is not dict:
                entries.place.keep(index, asset)
            elif (owner := asset.get("publication_id")) is not None and (type(owner) is not int or owner != number):
                entries.place.member("publication_id").keep(index, owner)
        rows = [row for record in batch.records for row in file_rows(record)]
        return PUBLICATION_FILES, batch_of_rows(PUBLICATION_FILES, rows)


_COVER = "cover."
"""Before the names of the columns of a cover's file, so that they are not those of the publication."""


def _identifiers(batch: _Batch, kinds: Kinds) -> tuple[Table, pa.RecordBatch]:
    """The rows of `publication_identifiers`: what the rules find in the flat fields and in the list."""
    owners, rows = list[int | None](), list[Identifier]()
    for record, residue, publication_id in zip(batch.records, batch.residues, batch.ids, strict=True):
        identifiers = list[Identifier]()
        read_fields(record, identifiers, kinds)
        for number, entry in enumerate(_items(record, IDENTIFIER_LIST, residue)):
            where = f"{IDENTIFIER_LIST}[{number}]"
            if type(entry) is dict:
                nested_residue(entry, IDENTIFIER_KEYS, where, residue)
            kind, raw = type_and_value(entry)
            if not read_entry(kind, raw, identifiers, kinds) and kind:
                keep_nested(residue, f"{where}.type", entry["type"])
        rows += identifiers
        owners += [publication_id] * len(identifiers)
    values: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(Identifier._fields)
    columns = dict(zip(Identifier._fields, values, strict=True))
    columns |= {"publication_id": owners, "rule": [rule or None for rule in columns["rule"]]}
    return PUBLICATION_IDENTIFIERS, batch_of_columns(PUBLICATION_IDENTIFIERS, columns)


def _items(record: _Json, key: str, residue: _Json) -> Sequence[Any]:
    """The entries of a list; any other value is residue."""
    value = record.get(key)
    if type(value) is list:
        return value
    if value is not None:
        keep_nested(residue, key, value)
    return ()


def _reader(column: Column) -> _Reader | None:
    """Reads the value of a described column; it returns None for what the column cannot hold. No function: any value is taken as it is."""
    return _PARTS.get(column.part) or _DESCRIBED.get(column.type)


def _date(value: object) -> PartialDate | None:
    return partial_date(value) if type(value) is str else None


def _day(value: object) -> date | None:
    return day(value) if type(value) is str else None


def _of_date(part: Callable[[PartialDate], Any]) -> _Reader:
    """Reads a part of a date."""
    return lambda value: part(parsed) if (parsed := _date(value)) is not None else None


def _boolean(value: object) -> bool | None:
    return value if type(value) is bool else None


def _integer(value: object) -> int | None:
    return whole_number(value) if type(value) is int else None


def _number(value: object) -> float | None:
    is_exact = type(value) is int and whole_number(value) is not None and int(float(value)) == value
    return float(value) if isinstance(value, float) or (isinstance(value, int) and is_exact) else None


def _text(value: object) -> str | None:
    return None if isinstance(value, dict | list) else without_signatures(text_of(value) or "")


def _json(value: object) -> str:
    return without_signatures(compact_json(without_addresses(value)))


_DESCRIBED: Mapping[pa.DataType, _Reader] = {pa.int64(): whole_number, pa.date32(): _day}
"""Type of a described column → the function that reads its values; a text column takes any value."""

_PARTS: Mapping[Part, _Reader] = {
    Part.DAY: _of_date(lambda parsed: parsed.first if parsed.precision is Precision.DAY else None),
    Part.YEAR: _of_date(lambda parsed: parsed.first.year),
    Part.PRECISION: _of_date(lambda parsed: parsed.precision),
}

_OBSERVED: Mapping[str, _Reader] = {
    ColumnType.BOOLEAN: _boolean,
    ColumnType.INTEGER: _integer,
    ColumnType.NUMBER: _number,
    ColumnType.DATE: _day,
    ColumnType.TEXT: _text,
    ColumnType.JSON: _json,
}
"""Type of an observed column → the function that reads its values. None of them gets null."""
