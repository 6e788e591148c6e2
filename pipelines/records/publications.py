"""Publications of v2: from the JSON of a batch of records to the columns of the staged tables.

Total (I7): whatever a record holds, every record becomes exactly one row of `publications`, and each of its keys is mapped, ignored by
name, or residue (I6). Works column by column over a batch, because row by row in Python is several times slower; a column that holds a
surprise falls back to a slower way that takes any JSON value.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa

from pipelines.records.tables import (
    PUBLICATION_AUTHORS,
    PUBLICATION_CATEGORIES,
    PUBLICATION_FILES,
    PUBLICATION_IDENTIFIERS,
    PUBLICATIONS,
    Table,
)

IDENTIFIER_FIELDS = ("doi", "isbn", "issn", "arxiv_id", "pmid")
"""v2's flat identifier fields, in the order in which they are staged (service-api.md: "doi, isbn, pmid, ..."; trap A18)."""

MAPPED = frozenset(
    {
        "id",
        "title",
        "publishable_type",
        "published_on",
        "abstract",
        "authors",
        "categories",
        "cover",
        "assets",
        *IDENTIFIER_FIELDS,
    }
)
"""Keys of a record that have columns or tables of their own."""

AUTHOR_KEYS = frozenset({"name", "type"})
CATEGORY_KEYS = frozenset({"id", "name"})
FILE_KEYS = frozenset({"id", "storage", "metadata"})
METADATA_KEYS = frozenset({"size", "filename", "mime_type"})
ADDRESSES = frozenset({"url", "thumb_url", "preview_url"})
"""Ignored by name in files: signed, so secret, and different in every answer."""

ASSET_KEYS = frozenset({"id", "publication_id", "name", "content_type", "file"}) | ADDRESSES
STORED_KEYS = FILE_KEYS | ADDRESSES

MAX_RESIDUE_KEYS = 1000
"""Different residue keys that are counted one by one; the rest are counted together (I13)."""

MAX_KEY_CHARACTERS = 200
"""Of a residue key, where it is counted (I13); the residue itself has the whole key."""

TOO_DEEP = '"(nested too deeply; the payload has it)"'

Row = tuple[Any, ...]
_INT64 = range(-(2**63), 2**63)


@dataclass
class StagedBatch:
    """The staged rows of some records, one Arrow batch a table, and in how many records each residue key occurred."""

    tables: dict[str, pa.RecordBatch]
    residue: Counter[str] = field(default_factory=Counter)


def stage_publications(payloads: Sequence[str], hashes: Sequence[str]) -> StagedBatch:
    """Stage records: `payloads` is the JSON of each, `hashes` the SHA-256 of each in hexadecimal. Never raises on data."""
    records = [_decode(payload) for payload in payloads]
    residues: list[dict[str, Any]] = [_unknown(record, MAPPED) for record in records]
    ids = [_whole_number(record.get("id")) for record in records]
    _keep_if_changed(records, "id", ids, residues)
    children = {
        PUBLICATION_IDENTIFIERS: _identifiers(records, ids),
        PUBLICATION_AUTHORS: _authors(records, ids, residues),
        PUBLICATION_CATEGORIES: _categories(records, ids, residues),
        PUBLICATION_FILES: _files(records, ids, residues),
    }
    published = [record.get("published_on") for record in records]
    columns: list[Sequence[Any]] = [
        ids,
        [record.get("title") for record in records],
        [record.get("publishable_type") for record in records],
        [day(value) if type(value) is str else None for value in published],
        published,
        [record.get("abstract") for record in records],
        [_cover_id(record.get("cover")) for record in records],
        [residue_json(residue) for residue in residues],
        hashes,
    ]
    return StagedBatch(
        {
            PUBLICATIONS.name: table_batch(PUBLICATIONS, columns),
            **{table.name: table_batch(table, _transposed(rows, table)) for table, rows in children.items()},
        },
        bounded(residue_counts(residues)),
    )


def record_ids(payloads: Iterable[msgspec.Raw | bytes]) -> list[int | None]:
    """The `id` of each record, reading as little as possible; `None` where there is none that is a whole number."""
    return [_record_id(payload) for payload in payloads]


def bounded(counts: Counter[str], most: int = MAX_RESIDUE_KEYS) -> Counter[str]:
    """The commonest residue keys, the rest under one name: a hostile library must not fill the manifest."""
    if len(counts) <= most:
        return counts
    kept = Counter(dict(counts.most_common(most)))
    kept["(other keys)"] += counts.total() - kept.total()
    return kept


class _OnlyId(msgspec.Struct):
    id: Any = None


def parse_float(text: str) -> float | str:
    """A number; as text where it is too large for one, because no JSON writer can write infinity."""
    number = float(text)
    return number if math.isfinite(number) else text


def _int(text: str) -> int | str:
    """A number; as text where it has more digits than Python converts."""
    try:
        return int(text)
    except ValueError:
        return text


_DECODE_ID = msgspec.json.Decoder(_OnlyId).decode
_DECODE = msgspec.json.Decoder(float_hook=parse_float).decode
_LENIENT = json.JSONDecoder(parse_float=parse_float, parse_int=_int, parse_constant=str).decode
"""Takes what msgspec refuses: lone surrogates, NaN, numbers of any length."""

_NOT_JSON = (msgspec.MsgspecError, ValueError, RecursionError)


def _record_id(payload: msgspec.Raw | bytes) -> int | None:
    try:
        return _whole_number(_DECODE_ID(payload).id)
    except _NOT_JSON:
        return _whole_number(_decode(bytes(payload).decode(errors="replace")).get("id"))


def _decode(payload: str) -> dict[str, Any]:
    """The record as a dictionary. What is not an object, or cannot be read, is kept whole as residue under the key `(record)`."""
    record: object = payload
    for decode in (_DECODE, _LENIENT):
        try:
            record = decode(payload)
            break
        except _NOT_JSON:
            continue
    return record if type(record) is dict else {"(record)": record}


def _whole_number(value: object) -> int | None:
    """A whole number within 64 bits, from an int or from its decimal digits; else `None`."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 19:  # noqa: PLR2004  int64
        value = int(value)
    return value if type(value) is int and value in _INT64 else None


@lru_cache(maxsize=2**16)
def day(text: str) -> date | None:
    """The day that `YYYY-MM-DD` names; `None` for anything else (service-api.md: "string, date YYYY-MM-DD")."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _unknown(record: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    unknown = record.keys() - known
    return {key: record[key] for key in record if key in unknown} if unknown else {}


def _keep_if_changed(
    records: list[dict[str, Any]], key: str, staged: list[Any], residues: list[dict[str, Any]]
) -> None:
    """What a column could not take as it is goes into the residue, so that nothing is lost."""
    for record, value, residue in zip(records, staged, residues, strict=True):
        if value is None and record.get(key) is not None:
            residue[key] = record[key]


def _identifiers(records: list[dict[str, Any]], ids: list[int | None]) -> list[Row]:
    rows: list[Row] = []
    for record, publication_id in zip(records, ids, strict=True):
        position = 0
        for source_field in IDENTIFIER_FIELDS:
            value = record.get(source_field)
            if value is None or value == "":
                continue
            for one in value if type(value) is list else (value,):
                rows.append((publication_id, position, source_field, _text(one) or "", source_field))
                position += 1
    return rows


def _authors(records: list[dict[str, Any]], ids: list[int | None], residues: list[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        for position, author in enumerate(_items(record, "authors", residue)):
            if type(author) is dict:
                rows.append((publication_id, position, author.get("name"), author.get("type")))
                _nested_residue(author, AUTHOR_KEYS, f"authors[{position}]", residue)
            else:
                rows.append((publication_id, position, _text(author), None))
    return rows


def _categories(records: list[dict[str, Any]], ids: list[int | None], residues: list[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        for position, category in enumerate(_items(record, "categories", residue)):
            if type(category) is dict:
                category_id = _whole_number(category.get("id"))
                rows.append((publication_id, position, category_id, category.get("name")))
                known = CATEGORY_KEYS if category_id is not None or category.get("id") is None else {"name"}
                _nested_residue(category, known, f"categories[{position}]", residue)
            else:
                rows.append((publication_id, position, None, _text(category)))
    return rows


def _files(records: list[dict[str, Any]], ids: list[int | None], residues: list[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    for record, publication_id, residue in zip(records, ids, residues, strict=True):
        cover = record.get("cover")
        if type(cover) is dict:
            rows.append((publication_id, "cover", 0, None, None, None, *_stored_file(cover, "cover", residue)))
        elif cover is not None:
            residue["cover"] = cover
        for position, asset in enumerate(_items(record, "assets", residue)):
            if type(asset) is not dict:
                _leave(residue, f"assets[{position}]", asset)
                continue
            where = f"assets[{position}]"
            _nested_residue(asset, ASSET_KEYS, where, residue)
            asset_id = _whole_number(asset.get("id"))
            if asset_id is None and asset.get("id") is not None:
                _leave(residue, f"{where}.id", asset["id"])
            owner = asset.get("publication_id")
            if owner is not None and (type(owner) is not int or owner != publication_id):
                _leave(residue, f"{where}.publication_id", owner)
            file = asset.get("file")
            if type(file) is not dict and file is not None:
                _leave(residue, f"{where}.file", file)
            stored = _stored_file(file if type(file) is dict else {}, f"{where}.file", residue)
            rows.append(
                (publication_id, "asset", position, asset_id, asset.get("name"), asset.get("content_type"), *stored)
            )
    return rows


def _stored_file(file: dict[str, Any], where: str, residue: dict[str, Any]) -> Row:
    """file_id, storage, filename, mime_type and size of `{id, storage, metadata}`."""
    _nested_residue(file, STORED_KEYS, where, residue)
    metadata = file.get("metadata")
    if type(metadata) is not dict:
        if metadata is not None:
            _leave(residue, f"{where}.metadata", metadata)
        return file.get("id"), file.get("storage"), None, None, None
    _nested_residue(metadata, METADATA_KEYS, f"{where}.metadata", residue)
    size = _whole_number(metadata.get("size"))
    if size is None and metadata.get("size") is not None:
        _leave(residue, f"{where}.metadata.size", metadata["size"])
    return file.get("id"), file.get("storage"), metadata.get("filename"), metadata.get("mime_type"), size


def _items(record: dict[str, Any], key: str, residue: dict[str, Any]) -> Sequence[Any]:
    value = record.get(key)
    if type(value) is list:
        return value
    if value is not None:
        residue[key] = value
    return ()


def _nested_residue(found: dict[str, Any], known: AbstractSet[str], where: str, residue: dict[str, Any]) -> None:
    if not found.keys() <= known:
        for key, value in found.items():
            if key not in known:
                _leave(residue, f"{where}.{key}", value)


def _leave(residue: dict[str, Any], key: str, value: object) -> None:
    """Keep a nested value under its path; a record whose own key looks like that path does not push it out."""
    while key in residue:
        key += "'"
    residue[key] = value


def _cover_id(cover: object) -> Any:
    return cover.get("id") if type(cover) is dict else None


def table_batch(table: Table, columns: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """One Arrow batch of a table from its columns, in the order of its description."""
    schema = table.schema
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _transposed(rows: list[Row], table: Table) -> Sequence[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """An Arrow array; text columns take any JSON value, written as JSON where it is not text."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, UnicodeError, OverflowError):
        return pa.array([_text(value) for value in values], kind)


def _text(value: object) -> str | None:
    """Any JSON value as text that UTF-8 can hold; a lone surrogate becomes U+FFFD (the payload keeps its escape)."""
    if value is None:
        return None
    return _valid(value if type(value) is str else compact_json(value))


def _valid(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def compact_json(value: object) -> str:
    """JSON that any parser takes."""
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        pass  # a lone surrogate, more than 64 bits, or nested deeply
    try:
        return _valid(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (ValueError, RecursionError):
        return TOO_DEEP


_POSITIONS = re.compile(r"\[\d+\]")


def residue_json(residue: dict[str, Any]) -> str | None:
    """The residue column of one record: its keys in a fixed order, so that equal residues are equal text."""
    return compact_json(dict(sorted(residue.items()))) if residue else None


def residue_counts(residues: Sequence[dict[str, Any]]) -> Counter[str]:
    """Residue key, without positions in lists → in how many records. Most records have the same keys, so those are taken together."""
    counts = Counter[str]()
    for keys, records in Counter(tuple(residue) for residue in residues if residue).items():
        for key in {_valid(_POSITIONS.sub("[]", key[:MAX_KEY_CHARACTERS])) for key in keys}:
            counts[key] += records
    return counts
