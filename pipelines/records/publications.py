"""Publications of both versions: from the JSON of a batch of records to the columns of the staged tables.

Total (I7): whatever a record holds, every record becomes exactly one row of `publications`, and each of its keys is mapped, ignored by
name, or residue (I6). v2 has flat identifier fields and v3 the list `identifiers`: both are taken wherever they are. Works column by column
over a batch, because row by row in Python is several times slower; a column that holds a surprise falls back to a slower way that takes
any JSON value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipelines.inventory import IDENTIFIER_LIST
from pipelines.records.batches import Row, StagedBatch, table_batch, transposed
from pipelines.records.files import ASSET, COVER, NOT_FETCHED_ROW, address_of, content_key, cover_address
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.records import claimed, read_entry, read_fields
from pipelines.records.identifiers.verdicts import Identifier
from pipelines.records.residue import (
    ADDRESSES,
    bounded,
    keep_if_changed,
    leave,
    nested_residue,
    residue_counts,
    residue_json,
    unknown_keys,
)
from pipelines.records.tables import (
    PUBLICATION_AUTHORS,
    PUBLICATION_CATEGORIES,
    PUBLICATION_FILES,
    PUBLICATION_IDENTIFIERS,
    PUBLICATIONS,
)
from pipelines.records.values import day, decode_record, text_of, whole_number

REFERENCES = ("contributor", "organization")
"""Records that a publication refers to (service-api.md: "contributor, category, organization references | id")."""

IDENTIFIER_KEYS = frozenset({"type", "value"})
AUTHOR_KEYS = frozenset({"name", "type"})
CATEGORY_KEYS = frozenset({"id", "name"})
REFERENCE_KEYS = frozenset({"id", "name"})
FILE_KEYS = frozenset({"id", "storage", "metadata"})
METADATA_KEYS = frozenset({"size", "filename", "mime_type"})
ASSET_KEYS = frozenset({"id", "publication_id", "name", "content_type", "file"}) | ADDRESSES
STORED_KEYS = FILE_KEYS | ADDRESSES


def stage_publications(payloads: Sequence[bytes], hashes: Sequence[str], kinds: Kinds = STANDARD_KINDS) -> StagedBatch:
    """Stage records: `payloads` is the JSON of each, `hashes` the SHA-256 of each in hexadecimal. Never raises on data."""
    records = [decode_record(payload) for payload in payloads]
    mapped = kinds.record_keys | ADDRESSES  # these have columns or tables of their own, or are ignored by name
    residues: list[dict[str, Any]] = [unknown_keys(record, mapped) for record in records]
    ids = [whole_number(record.get("id")) for record in records]
    keep_if_changed(records, "id", ids, residues)
    children = {
        PUBLICATION_AUTHORS: _authors(records, ids, residues),
        PUBLICATION_CATEGORIES: _categories(records, ids, residues),
        PUBLICATION_FILES: _files(records, ids, residues),
    }
    found = [_identifiers(record, residue, kinds) for record, residue in zip(records, residues, strict=True)]
    published = [record.get("published_on") for record in records]
    columns: list[Sequence[Any]] = [
        ids,
        [record.get("title") for record in records],
        [record.get("publishable_type") for record in records],
        [day(value) if type(value) is str else None for value in published],
        published,
        [record.get("abstract") for record in records],
        [_cover_id(record.get("cover")) for record in records],
        *_references(records, residues),
        [residue_json(residue) for residue in residues],
        hashes,
    ]
    return StagedBatch(
        {
            PUBLICATIONS.name: table_batch(PUBLICATIONS, columns),
            PUBLICATION_IDENTIFIERS.name: identifier_batch(ids, found),
            **{table.name: table_batch(table, transposed(rows, table)) for table, rows in children.items()},
        },
        bounded(residue_counts(residues)),
    )


def _identifiers(record: dict[str, Any], residue: dict[str, Any], kinds: Kinds) -> list[Identifier]:
    found: list[Identifier] = []
    read_fields([record.get(field) for field, _kind in kinds.fields], found, kinds)
    for number, entry in enumerate(_items(record, IDENTIFIER_LIST, residue)):
        where = f"{IDENTIFIER_LIST}[{number}]"
        if type(entry) is dict:
            nested_residue(entry, IDENTIFIER_KEYS, where, residue)
        kind, raw = claimed(entry)
        if not read_entry(kind, raw, found, kinds) and kind:
            leave(residue, f"{where}.type", entry["type"])
    return found


def identifier_batch(ids: Sequence[int | None], found: Sequence[Sequence[Identifier]]) -> pa.RecordBatch:
    """The rows of publication_identifiers: what was found in each record."""
    every = [one for identifiers in found for one in identifiers]
    types, values, raws, fields, positions, verdicts, rules = zip(*every, strict=True) if every else [()] * 7
    owners = [publication_id for publication_id, identifiers in zip(ids, found, strict=True) for _one in identifiers]
    columns = [owners, positions, types, values, raws, fields, verdicts, [rule or None for rule in rules]]
    return table_batch(PUBLICATION_IDENTIFIERS, columns)


def _references(records: list[dict[str, Any]], residues: list[dict[str, Any]]) -> Iterator[Sequence[Any]]:
    """The columns id and name of each record that publications refer to."""
    for key in REFERENCES:
        found = [_reference(record, key, residue) for record, residue in zip(records, residues, strict=True)]
        yield [reference_id for reference_id, _name in found]
        yield [name for _id, name in found]


def _reference(record: dict[str, Any], key: str, residue: dict[str, Any]) -> Row:
    """Id and name of `{id, name}`; what is no such object stays whole in the residue."""
    found = record.get(key)
    if type(found) is not dict:
        if found is not None:
            residue[key] = found
        return None, None
    reference_id = whole_number(found.get("id"))
    known = REFERENCE_KEYS if reference_id is not None or found.get("id") is None else {"name"}
    nested_residue(found, known, key, residue)
    return reference_id, found.get("name")


def _authors(records: list[dict[str, Any]], ids: list[int | None], residues: list[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        for position, author in enumerate(_items(record, "authors", residue)):
            if type(author) is dict:
                rows.append((publication_id, position, author.get("name"), author.get("type")))
                nested_residue(author, AUTHOR_KEYS, f"authors[{position}]", residue)
            else:
                rows.append((publication_id, position, text_of(author), None))
    return rows


def _categories(records: list[dict[str, Any]], ids: list[int | None], residues: list[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        for position, category in enumerate(_items(record, "categories", residue)):
            if type(category) is dict:
                category_id = whole_number(category.get("id"))
                rows.append((publication_id, position, category_id, category.get("name")))
                known = CATEGORY_KEYS if category_id is not None or category.get("id") is None else {"name"}
                nested_residue(category, known, f"categories[{position}]", residue)
            else:
                rows.append((publication_id, position, None, text_of(category)))
    return rows


def _files(records: list[dict[str, Any]], ids: list[int | None], residues: list[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        cover = record.get("cover")
        if type(cover) is dict:
            stored = _stored_file(cover, "cover", residue)
            address = cover_address(cover)
            content = (address is not None, content_key(COVER, publication_id, stored, address), *NOT_FETCHED_ROW)
            rows.append((publication_id, COVER, 0, None, None, None, *stored, *content))
        elif cover is not None:
            residue["cover"] = cover
        for position, asset in enumerate(_items(record, "assets", residue)):
            if type(asset) is not dict:
                leave(residue, f"assets[{position}]", asset)
                continue
            where = f"assets[{position}]"
            nested_residue(asset, ASSET_KEYS, where, residue)
            asset_id = whole_number(asset.get("id"))
            if asset_id is None and asset.get("id") is not None:
                leave(residue, f"{where}.id", asset["id"])
            owner = asset.get("publication_id")
            if owner is not None and (type(owner) is not int or owner != publication_id):
                leave(residue, f"{where}.publication_id", owner)
            file = asset.get("file")
            if type(file) is not dict and file is not None:
                leave(residue, f"{where}.file", file)
            file = file if type(file) is dict else {}
            stored = _stored_file(file, f"{where}.file", residue)
            address = address_of(asset.get("url"), file.get("url"))
            content = (address is not None, content_key(ASSET, asset_id, stored, address), *NOT_FETCHED_ROW)
            shown = (asset_id, asset.get("name"), asset.get("content_type"))
            rows.append((publication_id, ASSET, position, *shown, *stored, *content))
    return rows


def _stored_file(
    file: dict[str, Any], where: str, residue: dict[str, Any]
) -> tuple[object, object, object, object, object]:
    """file_id, storage, filename, mime_type and size of `{id, storage, metadata}`."""
    nested_residue(file, STORED_KEYS, where, residue)
    metadata = file.get("metadata")
    if type(metadata) is not dict:
        if metadata is not None:
            leave(residue, f"{where}.metadata", metadata)
        return file.get("id"), file.get("storage"), None, None, None
    nested_residue(metadata, METADATA_KEYS, f"{where}.metadata", residue)
    size = whole_number(metadata.get("size"))
    if size is None and metadata.get("size") is not None:
        leave(residue, f"{where}.metadata.size", metadata["size"])
    return file.get("id"), file.get("storage"), metadata.get("filename"), metadata.get("mime_type"), size


def _items(record: dict[str, Any], key: str, residue: dict[str, Any]) -> Sequence[Any]:
    value = record.get(key)
    if type(value) is list:
        return value
    if value is not None:
        residue[key] = value
    return ()


def _cover_id(cover: object) -> Any:
    return cover.get("id") if type(cover) is dict else None
