"""The general way to stage publications of both versions: from the JSON of a batch of records to the columns of the staged tables.

Total (I7): whatever a record holds, it becomes exactly one row of `publications`, and each of its keys is mapped, ignored by name, or
residue (I6). v2 has flat identifier fields and v3 the list `identifiers`; each is read wherever it occurs. The work goes column by column
over a batch, because row by row in Python is several times slower. A column with an unexpected value is converted once more by a slower
way that takes any JSON value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from pipelines.publication_fields import IDENTIFIER_LIST, PUBLICATION_FIELDS, REFERENCES, TEXT_FIELDS, FieldType
from pipelines.records.batches import StagedBatch, named_batch, table_batch, transposed
from pipelines.records.files import FileDescription, FileRow, address_of, asset_row, cover_address, cover_row
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import read_entry, read_fields, type_and_value
from pipelines.records.identifiers.verdicts import Identifier
from pipelines.records.nested_objects import (
    ASSET_KEYS,
    AUTHOR_KEYS,
    CATEGORY_KEYS,
    IDENTIFIER_KEYS,
    METADATA_KEYS,
    REFERENCE_KEYS,
    STORED_KEYS,
)
from pipelines.records.residue import (
    ADDRESSES,
    bounded,
    keep_if_changed,
    keep_nested,
    nested_residue,
    residue_counts,
    residue_json,
    unknown_keys,
)
from pipelines.records.tables.publications import (
    PUBLICATION_AUTHORS,
    PUBLICATION_CATEGORIES,
    PUBLICATION_FILES,
    PUBLICATION_IDENTIFIERS,
    PUBLICATIONS,
)
from pipelines.records.values import Precision, decode_record, partial_date, text_of, whole_number

_Json = dict[str, Any]


class AuthorRow(NamedTuple):
    """A row of `publication_authors`, with its columns in order."""

    publication_id: int | None
    position: int
    name: Any
    type: Any


class CategoryRow(NamedTuple):
    """A row of `publication_categories`, with its columns in order."""

    publication_id: int | None
    position: int
    category_id: int | None
    name: Any


def stage_publications(payloads: Sequence[bytes], hashes: Sequence[str], kinds: Kinds = STANDARD_KINDS) -> StagedBatch:
    """Stage records: `payloads` is the JSON of each, `hashes` the SHA-256 of each in hexadecimal. Never raises on data."""
    records = [decode_record(payload) for payload in payloads]
    mapped = kinds.record_keys | ADDRESSES  # these have columns or tables of their own, or are ignored by name
    residues: list[_Json] = [unknown_keys(record, mapped) for record in records]
    ids = [whole_number(record.get("id")) for record in records]
    keep_if_changed(records, "id", ids, residues)
    children: dict[str, pa.RecordBatch] = {}
    for table, rows in (
        (PUBLICATION_AUTHORS, _authors(records, ids, residues)),
        (PUBLICATION_CATEGORIES, _categories(records, ids, residues)),
        (PUBLICATION_FILES, _files(records, ids, residues)),
    ):
        children[table.name] = table_batch(table, transposed(rows, table))
    identifiers = [_identifiers(record, residue, kinds) for record, residue in zip(records, residues, strict=True)]
    columns = {
        "id": ids,
        **text_and_date_columns(lambda name: [record.get(name) for record in records]),
        "cover_id": [_cover_id(record.get("cover")) for record in records],
        **_references(records, residues),
        "residue": [residue_json(residue) for residue in residues],
        "sha256": hashes,
    }
    return StagedBatch(
        {
            PUBLICATIONS.name: named_batch(PUBLICATIONS, columns),
            PUBLICATION_IDENTIFIERS.name: identifier_batch(ids, identifiers),
            **children,
        },
        bounded(residue_counts(residues)),
    )


def text_and_date_columns(values_of: Callable[[str], list[Any]]) -> dict[str, Sequence[Any]]:
    """The columns of all text and date fields. `values_of` returns the value of a field in each record."""
    columns: dict[str, Sequence[Any]] = {name: values_of(name) for name in TEXT_FIELDS}
    for field in PUBLICATION_FIELDS:
        if field.type is FieldType.DATE:
            columns |= zip(field.columns, _date_columns(values_of(field.name)), strict=True)
    return columns


def _date_columns(values: list[Any]) -> Iterator[list[Any]]:
    """Yield the columns of a date in their order: day, text as sent, year, precision."""
    dates = [partial_date(value) if type(value) is str else None for value in values]
    yield [one.first if one is not None and one.precision is Precision.DAY else None for one in dates]
    yield values
    yield [one.first.year if one is not None else None for one in dates]
    yield [one.precision if one is not None else None for one in dates]


def _identifiers(record: _Json, residue: _Json, kinds: Kinds) -> list[Identifier]:
    found: list[Identifier] = []
    read_fields([record.get(field) for field, _kind in kinds.fields], found, kinds)
    for number, entry in enumerate(_items(record, IDENTIFIER_LIST, residue)):
        where = f"{IDENTIFIER_LIST}[{number}]"
        if type(entry) is dict:
            nested_residue(entry, IDENTIFIER_KEYS, where, residue)
        kind, raw = type_and_value(entry)
        if not read_entry(kind, raw, found, kinds) and kind:
            keep_nested(residue, f"{where}.type", entry["type"])
    return found


def identifier_batch(ids: Sequence[int | None], identifiers: Sequence[Sequence[Identifier]]) -> pa.RecordBatch:
    """The rows of publication_identifiers, from the identifiers of each record."""
    every = [identifier for entries in identifiers for identifier in entries]
    values: Sequence[Sequence[Any]] = list(zip(*every, strict=True)) if every else [()] * len(Identifier._fields)
    columns = dict(zip(Identifier._fields, values, strict=True))
    owners = [publication_id for publication_id, entries in zip(ids, identifiers, strict=True) for _entry in entries]
    rules = [rule or None for rule in columns["rule"]]
    return named_batch(PUBLICATION_IDENTIFIERS, {**columns, "publication_id": owners, "rule": rules})


def _references(records: list[_Json], residues: list[_Json]) -> dict[str, Sequence[Any]]:
    """The columns id and name of each reference."""
    columns: dict[str, Sequence[Any]] = {}
    for name in REFERENCES:
        references = [_reference(record, name, residue) for record, residue in zip(records, residues, strict=True)]
        columns[f"{name}_id"] = [reference_id for reference_id, _name in references]
        columns[f"{name}_name"] = [reference_name for _id, reference_name in references]
    return columns


def _reference(record: _Json, key: str, residue: _Json) -> tuple[int | None, Any]:
    """Id and name of `{id, name}`; anything else stays whole in the residue."""
    reference = record.get(key)
    if type(reference) is not dict:
        if reference is not None:
            residue[key] = reference
        return None, None
    reference_id = whole_number(reference.get("id"))
    nested_residue(reference, _named(REFERENCE_KEYS, reference, reference_id), key, residue)
    return reference_id, reference.get("name")


def _named(keys: frozenset[str], entry: _Json, entry_id: int | None) -> frozenset[str]:
    """The members of an entry that have columns: an id that is not a whole number has none."""
    return keys if entry_id is not None or entry.get("id") is None else keys - {"id"}


def _authors(records: list[_Json], ids: list[int | None], residues: list[_Json]) -> list[AuthorRow]:
    rows: list[AuthorRow] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        for position, author in enumerate(_items(record, "authors", residue)):
            if type(author) is dict:
                rows.append(AuthorRow(publication_id, position, author.get("name"), author.get("type")))
                nested_residue(author, AUTHOR_KEYS, f"authors[{position}]", residue)
            else:
                rows.append(AuthorRow(publication_id, position, text_of(author), None))
    return rows


def _categories(records: list[_Json], ids: list[int | None], residues: list[_Json]) -> list[CategoryRow]:
    rows: list[CategoryRow] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        for position, category in enumerate(_items(record, "categories", residue)):
            if type(category) is dict:
                category_id = whole_number(category.get("id"))
                rows.append(CategoryRow(publication_id, position, category_id, category.get("name")))
                known = _named(CATEGORY_KEYS, category, category_id)
                nested_residue(category, known, f"categories[{position}]", residue)
            else:
                rows.append(CategoryRow(publication_id, position, None, text_of(category)))
    return rows


def _files(records: list[_Json], ids: list[int | None], residues: list[_Json]) -> list[FileRow]:
    rows: list[FileRow] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        cover = record.get("cover")
        if type(cover) is dict:
            description = _description(cover, "cover", residue)
            rows.append(cover_row(publication_id, description, cover_address(cover)))
        elif cover is not None:
            residue["cover"] = cover
        for position, asset in enumerate(_items(record, "assets", residue)):
            if type(asset) is dict:
                rows.append(_asset_row(asset, position, publication_id, residue))
            else:
                keep_nested(residue, f"assets[{position}]", asset)
    return rows


def _asset_row(asset: _Json, position: int, publication_id: int | None, residue: _Json) -> FileRow:
    where = f"assets[{position}]"
    nested_residue(asset, ASSET_KEYS, where, residue)
    asset_id = whole_number(asset.get("id"))
    if asset_id is None and asset.get("id") is not None:
        keep_nested(residue, f"{where}.id", asset["id"])
    owner = asset.get("publication_id")
    if owner is not None and (type(owner) is not int or owner != publication_id):
        keep_nested(residue, f"{where}.publication_id", owner)
    file = asset.get("file")
    if type(file) is not dict:
        if file is not None:
            keep_nested(residue, f"{where}.file", file)
        file = {}
    described = asset_id, asset.get("name"), asset.get("content_type")
    description = _description(file, f"{where}.file", residue)
    return asset_row(publication_id, position, described, description, address_of(asset.get("url"), file.get("url")))


def _description(file: _Json, where: str, residue: _Json) -> FileDescription:
    """The description of `{id, storage, metadata}`."""
    nested_residue(file, STORED_KEYS, where, residue)
    metadata = file.get("metadata")
    if type(metadata) is not dict:
        if metadata is not None:
            keep_nested(residue, f"{where}.metadata", metadata)
        return FileDescription(file.get("id"), file.get("storage"), None, None, None)
    nested_residue(metadata, METADATA_KEYS, f"{where}.metadata", residue)
    size = whole_number(metadata.get("size"))
    if size is None and metadata.get("size") is not None:
        keep_nested(residue, f"{where}.metadata.size", metadata["size"])
    return FileDescription(
        file.get("id"), file.get("storage"), metadata.get("filename"), metadata.get("mime_type"), size
    )


def _items(record: _Json, key: str, residue: _Json) -> Sequence[Any]:
    """The entries of a list; any other value is residue."""
    value = record.get(key)
    if type(value) is list:
        return value
    if value is not None:
        residue[key] = value
    return ()


def _cover_id(cover: object) -> Any:
    return cover.get("id") if type(cover) is dict else None
