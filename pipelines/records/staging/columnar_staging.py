"""The fastest way to stage publications: Arrow reads the JSON of a whole batch into columns, and no record becomes a Python object.

A batch with a record that has not the documented form, or whose undocumented fields are no texts, has to go another way. A property test
compares the results of all ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as _compute
from msgspec.inspect import IntType, ListType, StructType, Type, UnionType, type_info
from pyarrow.json import ParseOptions, ReadOptions, read_json

from pipelines.publication_fields import IDENTIFIER_LIST, PUBLICATION_FIELDS, REFERENCES, TEXT_FIELDS, FieldType
from pipelines.records.batches import StagedBatch
from pipelines.records.files import ASSET, COVER, NOT_FETCHED, FileDescription, address_of, content_key, stored_keys
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import FoundIdentifier
from pipelines.records.residue import residue_counts, residue_json
from pipelines.records.staging.fast_staging import FIELDS
from pipelines.records.tables.description import Table
from pipelines.records.tables.publications import (
    PUBLICATION_AUTHORS,
    PUBLICATION_CATEGORIES,
    PUBLICATION_FILES,
    PUBLICATION_IDENTIFIERS,
    PUBLICATIONS,
)
from pipelines.records.values import Precision, partial_date

_Column = Any
"""An Arrow array; its stubs have a type parameter for each type of values."""

pc: Any = _compute
"""pyarrow's stubs list the types of values that each function takes, and leave some out."""


class IrregularBatchError(Exception):
    """Some record of the batch cannot be staged in this way."""


class ColumnarPublications:
    """Stages batches of regular records. `learn` adds keys that this library has beyond the documented ones; their values are texts."""

    def __init__(self, kinds: Kinds = STANDARD_KINDS) -> None:
        self._kinds = kinds
        flat = [pa.field(field, pa.string()) for field, _kind in kinds.fields]
        self._fields = [*_DOCUMENTED, *flat]
        self._extra: tuple[str, ...] = ()

    def learn(self, keys: Iterable[str]) -> None:
        """Take these keys for residue from now on."""
        self._extra = tuple(keys)

    def stage(self, batch: pa.RecordBatch) -> StagedBatch:
        """Stage a batch with the columns `payload` and `sha256`; each payload is one whole JSON value.

        Raises `IrregularBatchError` if some record is not regular.
        """
        text = _joined(batch.column("payload"))
        extra = self._present(text, batch.num_rows)
        records = self._read(text, batch.num_rows, extra)
        rows = _Rows(records.column)
        residue, counts = _residue(rows, extra, batch.num_rows)
        tables = [
            _publications(rows, residue, batch.column("sha256")),
            _identifiers(rows, self._kinds),
            _entries(rows, PUBLICATION_AUTHORS, "authors", {"name": "name", "type": "type"}),
            _entries(rows, PUBLICATION_CATEGORIES, "categories", {"category_id": "id", "name": "name"}),
            _files(rows),
        ]
        return StagedBatch(dict(tables), counts)

    def _present(self, text: pa.Buffer, rows: int) -> list[str]:
        """The learned keys that every record has. Arrow cannot tell null from a missing key, so a key that only some have is irregular."""
        as_bytes = text.to_pybytes() if self._extra else b""
        found = [(key, as_bytes.count(f'"{key}":'.encode())) for key in self._extra]
        if any(count not in (0, rows) or (count and key in _NESTED) for key, count in found):
            raise IrregularBatchError
        return [key for key, count in found if count]

    def _read(self, text: pa.Buffer, rows: int, extra: Sequence[str]) -> pa.RecordBatch:
        schema = pa.schema([*self._fields, *(pa.field(key, pa.string()) for key in extra)])
        try:
            table = read_json(
                _reader(text),
                ReadOptions(use_threads=False, block_size=text.size + 1),
                ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
            )
        except pa.ArrowException:
            raise IrregularBatchError from None
        if table.num_rows != rows:
            raise IrregularBatchError
        return table.combine_chunks().to_batches()[0]


def _typed(found: Type) -> pa.DataType:
    """The Arrow type of a member; of several types, the object."""
    if isinstance(found, UnionType):
        kinds = [one for one in found.types if type(one).__name__ != "NoneType"]
        return _typed(next((one for one in kinds if isinstance(one, StructType)), kinds[0]))
    if isinstance(found, StructType):
        return pa.struct([pa.field(member.encode_name, _typed(member.type)) for member in found.fields])
    if isinstance(found, ListType):
        return pa.list_(_typed(found.item_type))
    return pa.int64() if isinstance(found, IntType) else pa.string()


_DOCUMENTED = [pa.field(name, _typed(type_info(kind))) for name, kind, _default in FIELDS]


def _nulls(count: int, kind: pa.DataType) -> _Column:
    """Empty values; the stubs of `pa.nulls` know no type in general."""
    return pa.nulls(count).cast(kind)


def _names_within(kind: pa.DataType) -> set[str]:
    if pa.types.is_list(kind):
        return _names_within(kind.value_type)
    if not pa.types.is_struct(kind):
        return set()
    return {name for member in kind for name in ({member.name} | _names_within(member.type))}


_NESTED = frozenset(name for field in _DOCUMENTED for name in _names_within(field.type))
"""Names of members of nested objects."""


_reader: Any = pa.BufferReader
"""`read_json` takes a reader of Arrow's own, too, which its stubs do not say; that saves a copy of the batch."""


_BRACE = ord("{")


def _joined(payloads: _Column) -> pa.Buffer:
    """All payloads as one text: JSON values that follow each other."""
    if payloads.null_count or not len(payloads):
        raise IrregularBatchError
    _validity, ends, text = payloads.buffers()
    offsets = np.frombuffer(ends, np.int32)[payloads.offset : payloads.offset + len(payloads) + 1]
    begin, end = int(offsets[0]), int(offsets[-1])
    if not np.diff(offsets).all() or (np.frombuffer(text, np.uint8)[offsets[:-1]] != _BRACE).any():
        raise IrregularBatchError  # a `null` between the records would end the process (Arrow 26)
    joined: pa.Buffer = text.slice(begin, end - begin)
    return joined


class _Rows:
    """The columns of a batch of records."""

    def __init__(self, column: Callable[[str], _Column]) -> None:
        self.column = column
        self.ids = column("id")

    def entries(self, name: str) -> tuple[_Column, Any, Any]:
        """The entries of a list, and for each of them its record (its index in the batch) and its position."""
        lists = self.column(name)
        entries = lists.flatten()
        if entries.null_count:
            raise IrregularBatchError
        sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        owners = np.repeat(np.arange(len(sizes)), sizes)
        return entries, owners, _positions(owners, sizes)


def _positions(owners: Any, sizes: Any) -> Any:
    """The position of each entry within its record, of entries in the order of records."""
    starts = np.cumsum(sizes) - sizes
    return np.arange(len(owners)) - starts[owners]


def _in_rows(columns: Mapping[str, _Column], rows: Any) -> dict[str, _Column]:
    """These rows of some columns, taken together: each call of Arrow costs as much as a hundred values."""
    taken = pa.RecordBatch.from_arrays([*columns.values()], names=[*columns]).take(pa.array(rows))
    return dict(zip(columns, taken.columns, strict=True))


def _batch(table: Table, columns: Mapping[str, Any]) -> tuple[str, pa.RecordBatch]:
    arrays = []
    for field in table.schema:
        values = columns[field.name]
        values = values if isinstance(values, pa.Array) else pa.array(values, field.type)
        arrays.append(values if values.type == field.type else values.cast(field.type))
    return table.name, pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def _publications(rows: _Rows, residue: _Column, hashes: _Column) -> tuple[str, pa.RecordBatch]:
    columns: dict[str, Any] = {"id": rows.ids, **{name: rows.column(name) for name in TEXT_FIELDS}}
    for field in PUBLICATION_FIELDS:
        if field.type is FieldType.DATE:
            columns |= zip(field.columns, _date_columns(rows.column(field.name)), strict=True)
    for name in REFERENCES:
        reference = rows.column(name)
        columns |= {f"{name}_{member}": pc.struct_field(reference, member) for member in ("id", "name")}
    columns |= {"cover_id": pc.struct_field(rows.column("cover"), "id"), "residue": residue, "sha256": hashes}
    return _batch(PUBLICATIONS, columns)


def _date_columns(texts: _Column) -> list[_Column]:
    """The columns of a date in their order: day, text as sent, year, precision. Each different text is read once."""
    encoded = texts.dictionary_encode()
    dates = [partial_date(text) for text in encoded.dictionary.to_pylist()]
    days = [one.first if one is not None and one.precision is Precision.DAY else None for one in dates]
    years = [one.first.year if one is not None else None for one in dates]
    precisions = [one.precision if one is not None else None for one in dates]
    day, year, precision = (
        pa.array(values, kind).take(encoded.indices)
        for values, kind in ((days, pa.date32()), (years, pa.int32()), (precisions, pa.string()))
    )
    return [day, texts, year, precision]


def _residue(rows: _Rows, extra: Sequence[str], count: int) -> tuple[_Column, Counter[str]]:
    """The column `residue`, and its counts."""
    if not extra:
        return _nulls(count, pa.string()), Counter()
    counts = Counter(dict.fromkeys(residue_counts([dict.fromkeys(extra)]), count))
    if len(extra) == 1:  # nearly always, and with few different values
        encoded = rows.column(extra[0]).dictionary_encode("encode")
        texts = [residue_json({extra[0]: value}) for value in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices), counts
    values = zip(*(rows.column(key).to_pylist() for key in extra), strict=True)
    return pa.array([residue_json(dict(zip(extra, row, strict=True))) for row in values], pa.string()), counts


def _entries(rows: _Rows, table: Table, name: str, members: Mapping[str, str]) -> tuple[str, pa.RecordBatch]:
    entries, owners, positions = rows.entries(name)
    columns = {column: pc.struct_field(entries, member) for column, member in members.items()}
    return _batch(table, {"publication_id": rows.ids.take(pa.array(owners)), "position": positions, **columns})


def _identifiers(rows: _Rows, kinds: Kinds) -> tuple[str, pa.RecordBatch]:
    """The rows of publication_identifiers: field by field, then in the order of the records."""
    found: list[FoundIdentifier] = []
    fields, owners, raws = list[str](), list[Any](), list[_Column]()
    for field, kind in kinds.fields:
        texts = rows.column(field)
        filled = np.flatnonzero(pc.fill_null(pc.not_equal(texts, ""), False).to_numpy(zero_copy_only=False))
        values = texts.take(pa.array(filled))
        sizes = _read_all(kind.read_clean, kind.name, values, found, kinds)
        _note(field, filled, values, sizes, (fields, owners, raws))
    entries, records, _positions_there = rows.entries(IDENTIFIER_LIST)
    if len(entries):
        names = pc.fill_null(pc.struct_field(entries, "type"), "").to_pylist()
        values = pc.fill_null(pc.struct_field(entries, "value"), "")
        sizes = []
        for name, value in zip(names, values.to_pylist(), strict=True):
            several = kinds.read(name, value)
            if name and any(one.type != name for one in several):
                raise IrregularBatchError  # the type of the entry is residue
            found += several
            sizes.append(len(several))
        _note(IDENTIFIER_LIST, records, values, sizes, (fields, owners, raws))
    return _in_order(rows, found, fields, owners, raws)


def _read_all(
    read_clean: Callable[[str], FoundIdentifier | None],
    name: str,
    values: _Column,
    found: list[FoundIdentifier],
    kinds: Kinds,
) -> list[int] | None:
    """Add the identifiers of some texts to `found`. Returns how many each text has; `None` if each has one."""
    texts = values.to_pylist()
    quick = list(map(read_clean, texts))
    if None not in quick:
        found += quick  # type: ignore[arg-type]
        return None
    sizes = []
    for text, one in zip(texts, quick, strict=True):
        several = kinds.read(name, text) if one is None else [one]
        found += several
        sizes.append(len(several))
    return sizes


def _note(
    field: str, records: Any, values: _Column, sizes: list[int] | None, into: tuple[list[str], list[Any], list[_Column]]
) -> None:
    """Note the field, the record and the text of each identifier."""
    fields, owners, raws = into
    if sizes is not None:
        records, values = np.repeat(records, sizes), values.take(pa.array(np.repeat(np.arange(len(sizes)), sizes)))
    fields += [field] * len(records)
    owners.append(records)
    raws.append(values)


def _in_order(
    rows: _Rows, found: list[FoundIdentifier], fields: list[str], owners: list[Any], raws: list[_Column]
) -> tuple[str, pa.RecordBatch]:
    every = np.concatenate(owners)
    order = np.argsort(every, kind="stable")
    every = every[order]
    types, values, verdicts, rules = zip(*found, strict=True) if found else ((), (), (), ())
    texts = {
        "type": types,
        "value": values,
        "source_field": fields,
        "verdict": verdicts,
        "rule": [rule or None for rule in rules],
    }
    columns = {name: pa.array(column, pa.string()) for name, column in texts.items()}
    placed = _in_rows({**columns, "raw": pa.concat_arrays(raws)}, order)
    positions = _positions(every, np.bincount(every, minlength=len(rows.ids)))
    return _batch(
        PUBLICATION_IDENTIFIERS,
        {**placed, "publication_id": rows.ids.take(pa.array(every)), "position": positions},
    )


def _files(rows: _Rows) -> tuple[str, pa.RecordBatch]:
    """The rows of publication_files: of each record its cover, then its assets."""
    cover = rows.column("cover")
    covered = cover.is_valid().to_numpy(zero_copy_only=False)
    with_cover = np.flatnonzero(covered)
    assets, owners, positions = rows.entries("assets")
    asset_owners = rows.ids.take(pa.array(owners))
    named = pc.struct_field(assets, "publication_id")
    if not pc.all(pc.or_(pc.is_null(named), pc.fill_null(pc.equal(named, asset_owners), False)), min_count=0).as_py():
        raise IrregularBatchError  # an asset of another publication
    none, every = len(with_cover), len(with_cover) + len(assets)
    records = np.concatenate([with_cover, owners])
    order = np.argsort(records, kind="stable")  # covers come first

    def of_assets(name: str, kind: pa.DataType) -> _Column:
        return pa.concat_arrays([_nulls(none, kind), pc.struct_field(assets, name)])

    stored = pa.concat_arrays([cover.take(pa.array(with_cover)), pc.struct_field(assets, "file")])
    metadata = pc.struct_field(stored, "metadata")
    columns = {
        "publication_id": rows.ids.take(pa.array(records)),
        "kind": pa.concat_arrays([pa.repeat(COVER, none), pa.repeat(ASSET, len(assets))]),
        "position": pa.array(np.concatenate([np.zeros(none, np.int32), positions.astype(np.int32)])),
        "asset_id": of_assets("id", pa.int64()),
        "name": of_assets("name", pa.string()),
        "content_type": of_assets("content_type", pa.string()),
        "file_id": pc.struct_field(stored, "id"),
        "storage": pc.struct_field(stored, "storage"),
        **{name: pc.struct_field(metadata, name) for name in ("filename", "mime_type", "size")},
    }
    addresses = [of_assets("url", pa.string()), pc.struct_field(stored, "url")]
    has_url = [pc.fill_null(pc.not_equal(address, ""), False) for address in addresses]
    columns |= {"has_url": pc.or_(*has_url), "content_key": pa.array(_content_keys(columns, addresses), pa.string())}
    placed = _in_rows(columns, order)
    empty = {field.name: _nulls(every, field.type) for field in PUBLICATION_FILES.schema if field.name not in placed}
    return _batch(PUBLICATION_FILES, {**empty, **placed, "status": pa.repeat(NOT_FETCHED, every)})


def _content_keys(columns: Mapping[str, _Column], addresses: Sequence[_Column]) -> list[str]:
    """The key of each file; for files with ids of their own, without a call for each."""
    ids = columns["file_id"].to_pylist()
    if all(ids):
        return stored_keys(ids, columns["storage"].to_pylist(), columns["size"].to_pylist())
    described = [columns[name].to_pylist() for name in FileDescription._fields]
    names = ("kind", "publication_id", "asset_id")
    files = zip(*(columns[name].to_pylist() for name in names), zip(*described, strict=True), strict=True)
    places = map(address_of, *(address.to_pylist() for address in addresses))
    return [
        content_key(kind, publication_id if kind == COVER else asset_id, FileDescription(*description), place)
        for (kind, publication_id, asset_id, description), place in zip(files, places, strict=True)
    ]
