"""Files that records name: where their bytes are to be had, and what tells one content from another without asking anybody.

Total (I7): whatever a record holds, each of its files has a content key, and none is left out. The same rule makes the column
`content_key` of `publication_files` and the work list of the transfers, so that the two meet in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pipelines.records.values import compact_json, decode_record, parse_float, valid_text, whole_number

ASSET = "asset"
COVER = "cover"

KEPT = "kept"
FAILED = "failed"
NOT_FETCHED = "not_fetched"
"""States of a file's content in `publication_files`."""

NOT_FETCHED_ROW = (NOT_FETCHED, None, None, None, None)
"""status, sha256, bytes, etag and problem of a file that nobody has asked for yet."""

UNSURE = "?"
"""How a content key begins that does not tell whether the content is the one of last night: the storage has to be asked."""

_WORTH_READING = b'"url'
"""In the JSON of every record that has an address to fetch from; looking for it costs a tenth of reading the record."""


@dataclass(frozen=True, slots=True)
class FileReference:
    """One file that a record names. `address` is secret where it is signed (I10)."""

    content_key: str
    kind: str
    publication_id: int | None
    asset_id: int | None
    size: int | None
    address: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file of a publication as it is described when it is uploaded. `filename` comes from outside: never a path (I13)."""

    kind: str
    position: int
    asset_id: int | None
    name: str | None
    content_type: str | None
    filename: str | None
    mime_type: str | None
    size: int | None
    content_key: str


def attached_files(record: Mapping[str, Any]) -> list[AttachedFile]:
    """The cover and the assets of a publication, in its order. Never raises on data."""
    found: list[AttachedFile] = []
    cover, assets = record.get("cover"), record.get("assets")
    publication_id = whole_number(record.get("id"))
    if type(cover) is dict:
        found.append(_attached(COVER, 0, publication_id, {}, cover))
    for position, asset in enumerate(assets if type(assets) is list else ()):
        if type(asset) is dict:
            file, asset_id = asset.get("file"), whole_number(asset.get("id"))
            found.append(_attached(ASSET, position, asset_id, asset, file if type(file) is dict else {}))
    return found


def _attached(kind: str, position: int, owner: int | None, asset: dict[str, Any], file: dict[str, Any]) -> AttachedFile:
    stored = _stored(file)
    address = cover_address(file) if kind == COVER else address_of(asset.get("url"), file.get("url"))
    key = content_key(kind, owner, stored, address)
    words = (asset.get("name"), asset.get("content_type"), stored[2], stored[3])
    name, content_type, filename, mime_type = (valid_text(one) if type(one) is str and one else None for one in words)
    asset_id = owner if kind == ASSET else None
    return AttachedFile(kind, position, asset_id, name, content_type, filename, mime_type, _size(stored), key)


def addressed_files(payloads: Iterable[bytes]) -> list[FileReference]:
    """The files of some records that came with an address; made for millions of records without any."""
    return [
        one
        for payload in payloads
        if _WORTH_READING in payload
        for one in file_references(payload)
        if one.address is not None
    ]


def file_references(payload: bytes) -> list[FileReference]:
    """Every file that the JSON of a publication names, with an address or without. Never raises on data."""
    try:
        found = _DECODE(payload)
        record = {"id": found.id, "cover": found.cover, "assets": found.assets}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        record = decode_record(payload)
    return list(_references(record))


def asset_reference(payload: bytes, publication_id: int | None) -> FileReference | None:
    """The file of the JSON of an asset alone, as `GET /assets/:id` answers it."""
    record = decode_record(payload)
    return None if "(record)" in record else _asset(record, publication_id)


def address_of(*places: object) -> str | None:
    """The address in the first of some values that has one."""
    return next((valid_text(one) for one in places if type(one) is str and one != ""), None)


def cover_address(cover: Mapping[str, Any]) -> str | None:
    """Where a cover is fetched; Its `url`, else the original among its `urls`: service-api.md shows neither."""
    urls = cover.get("urls")
    return address_of(cover.get("url"), urls.get("original") if type(urls) is dict else None)


def content_key(
    kind: str,
    owner: object,
    stored: tuple[object, object, object, object, object],
    address: str | None,
) -> str:
    """What tells contents apart from night to night: 32 hexadecimal digits, behind a `?` where they do not tell enough.

    `stored` is file_id, storage, filename, mime_type and size; `owner` the id of the asset, of a cover that of its publication. A file with
    an id of its own is told by that and its size (service-api.md: "The file `id` is the storage key"). Else all that is known of it counts,
    its address without the signature included; without even a size, nobody can tell.
    """
    file_id, storage, filename, mime_type, size = stored
    known: tuple[object, ...]
    if file_id not in (None, ""):
        known, unsure = (storage, file_id, size), ""
    else:
        place = None if address is None else address.partition("#")[0].partition("?")[0]
        known, unsure = (kind, owner, size, filename, mime_type, place), "" if size is not None else UNSURE
    try:
        told = msgspec.json.encode(known)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        told = compact_json(known).encode()
    return unsure + hashlib.sha256(told).hexdigest()[:32]


class _WithFiles(msgspec.Struct, gc=False):
    """What of a publication is about files; the rest is passed over."""

    id: Any = None
    cover: Any = None
    assets: Any = None


_DECODE = msgspec.json.Decoder(_WithFiles, float_hook=parse_float).decode


def _references(record: dict[str, Any]) -> Iterator[FileReference]:
    publication_id = whole_number(record.get("id"))
    cover, assets = record.get("cover"), record.get("assets")
    if type(cover) is dict:
        stored, address = _stored(cover), cover_address(cover)
        key = content_key(COVER, publication_id, stored, address)
        yield FileReference(key, COVER, publication_id, None, _size(stored), address)
    for asset in assets if type(assets) is list else ():
        if type(asset) is dict:
            yield _asset(asset, publication_id)


def _asset(asset: dict[str, Any], publication_id: int | None) -> FileReference:
    file = asset.get("file")
    content: dict[str, Any] = file if type(file) is dict else {}
    asset_id, stored = whole_number(asset.get("id")), _stored(content)
    address = address_of(asset.get("url"), content.get("url"))
    key = content_key(ASSET, asset_id, stored, address)
    return FileReference(key, ASSET, publication_id, asset_id, _size(stored), address)


def _stored(file: dict[str, Any]) -> tuple[object, object, object, object, object]:
    metadata = file.get("metadata")
    known: dict[str, Any] = metadata if type(metadata) is dict else {}
    size = whole_number(known.get("size"))
    return file.get("id"), file.get("storage"), known.get("filename"), known.get("mime_type"), size


def _size(stored: tuple[object, ...]) -> int | None:
    size = stored[-1]
    return size if type(size) is int and size >= 0 else None
