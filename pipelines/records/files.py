"""Files that records name: the address of the content, and a key that identifies the content before anything is fetched.

Total (I7): whatever a record holds, each of its files has a content key. The same function makes the column `content_key` of
`publication_files` and the work list of the downloads, so the two always agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import msgspec

from pipelines.records.values import compact_json, decode_record, parse_float, valid_text, whole_number

ASSET = "asset"
COVER = "cover"

KEPT = "kept"
FAILED = "failed"
NOT_FETCHED = "not_fetched"
"""States of a file's content in `publication_files`."""

UNSURE = "?"
"""First character of a content key that does not prove that the content is unchanged; the storage has to be asked."""

_MAY_HAVE_ADDRESS = b'"url'
"""Part of the JSON of every record with an address; the search for it costs a tenth of decoding the record."""


@dataclass(frozen=True, slots=True)
class FileReference:
    """One file that a record names. A signed `address` is a secret (I10)."""

    content_key: str
    kind: str
    publication_id: int | None
    asset_id: int | None
    size: int | None
    address: str | None = field(repr=False)


class AttachedFile(NamedTuple):
    """A file of a publication with the description that an upload sends. `filename` comes from outside: never a path (I13)."""

    kind: str
    position: int
    asset_id: int | None
    name: str | None
    content_type: str | None
    filename: str | None
    mime_type: str | None
    size: int | None


class FileDescription(NamedTuple):
    """The service's description of a stored file; any JSON values."""

    file_id: Any
    storage: Any
    filename: Any
    mime_type: Any
    size: Any


class FileRow(NamedTuple):
    """A row of `publication_files`, with its columns in order."""

    publication_id: int | None
    kind: str
    position: int
    asset_id: int | None
    name: Any
    content_type: Any
    file_id: Any
    storage: Any
    filename: Any
    mime_type: Any
    size: Any
    has_url: bool
    content_key: str
    status: str
    sha256: str | None
    bytes: int | None
    etag: str | None
    problem: str | None


_NO_CONTENT = (NOT_FETCHED, None, None, None, None)
"""The last five columns of a file that no backup has asked for yet."""

_new = tuple.__new__
"""Makes a row several times faster than its class does."""


def cover_row(publication_id: int | None, description: FileDescription, address: str | None) -> FileRow:
    """The row of a cover."""
    key = content_key(COVER, publication_id, description, address)
    return _new(
        FileRow, (publication_id, COVER, 0, None, None, None, *description, address is not None, key, *_NO_CONTENT)
    )


def asset_row(
    publication_id: int | None,
    position: int,
    asset: tuple[int | None, Any, Any],
    description: FileDescription,
    address: str | None,
) -> FileRow:
    """The row of an asset with this id, name and content type."""
    key = content_key(ASSET, asset[0], description, address)
    return _new(
        FileRow, (publication_id, ASSET, position, *asset, *description, address is not None, key, *_NO_CONTENT)
    )


def attached_files(record: Mapping[str, Any]) -> list[AttachedFile]:
    """The cover and the assets of a publication, in its order. Never raises on data."""
    files: list[AttachedFile] = []
    cover, assets = record.get("cover"), record.get("assets")
    if type(cover) is dict:
        files.append(_attached(COVER, 0, None, {}, cover))
    for position, asset in enumerate(assets if type(assets) is list else ()):
        if type(asset) is dict:
            file, asset_id = asset.get("file"), whole_number(asset.get("id"))
            files.append(_attached(ASSET, position, asset_id, asset, file if type(file) is dict else {}))
    return files


def _attached(
    kind: str, position: int, asset_id: int | None, asset: dict[str, Any], file: dict[str, Any]
) -> AttachedFile:
    description = _description(file)
    return AttachedFile(
        kind,
        position,
        asset_id=asset_id,
        name=_name(asset.get("name")),
        content_type=_text(asset.get("content_type")),
        filename=_name(description.filename),
        mime_type=_text(description.mime_type),
        size=_size(description),
    )


def _text(value: object) -> str | None:
    return _name(value) or None


def _name(value: object) -> str | None:
    """An empty name is a name, too: what the source has is moved."""
    return valid_text(value) if type(value) is str else None


def addressed_files(payloads: Iterable[bytes]) -> list[FileReference]:
    """The files with an address in the JSON of some records. Fast for the many records without any address."""
    return [
        file
        for payload in payloads
        if _MAY_HAVE_ADDRESS in payload
        for file in file_references(payload)
        if file.address is not None
    ]


def file_references(payload: bytes) -> list[FileReference]:
    """Every file in the JSON of a publication, with or without an address. Never raises on data."""
    try:
        found = _DECODE(payload)
        record = {"id": found.id, "cover": found.cover, "assets": found.assets}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        record = decode_record(payload)
    return list(_references(record))


def asset_reference(payload: bytes, publication_id: int | None) -> FileReference | None:
    """The file in the JSON of a single asset, the response of `GET /assets/:id` (service.md#assets)."""
    record = decode_record(payload)
    return None if "(record)" in record else _asset(record, publication_id)


def resolved(file: FileReference, page: str) -> FileReference:
    """The file with a whole address: a relative one counts from the answer at `page` that has it (RFC 3986, 5).

    The content key stays as it is: the same file has it in every answer.
    """
    if file.address is None:
        return file
    try:
        return file if is_whole(file.address) else replace(file, address=urljoin(page, file.address))
    except ValueError:
        return file  # it is no address at all, as the download will say


def is_whole(address: str, *, but_host: bool = False) -> bool:
    """Whether an address means the same in every answer; `but_host`: in every answer of one host."""
    try:
        return bool(urlsplit(address).scheme) or (but_host and address.startswith("/"))
    except ValueError:
        return True


def address_of(*candidates: object) -> str | None:
    """The first of some values that is text; `None` if there is none."""
    return next((valid_text(value) for value in candidates if type(value) is str and value != ""), None)


def cover_address(cover: Mapping[str, Any]) -> str | None:
    """The address of a cover: its `url`, else the original among its `urls`. The service documents neither (service.md#not-shown)."""
    urls = cover.get("urls")
    return address_of(cover.get("url"), urls.get("original") if type(urls) is dict else None)


def content_key(kind: str, owner: object, description: FileDescription, address: str | None) -> str:
    """A key that identifies the content from night to night: 32 hexadecimal digits, after a `?` if they do not prove enough.

    `owner` is the id of the asset; of a cover, the id of its publication. The key of a file with an id of its own is made from that id,
    the storage and the size (service.md#upload). Otherwise it is made from everything that is known of the file, with its address but
    without the signature. Without an id and a size, only the storage can say whether the content has changed.
    """
    file_id, storage, filename, mime_type, size = description
    known: tuple[object, ...]
    if file_id not in (None, ""):
        known, unsure = (storage, file_id, size), ""
    else:
        place = None if address is None else address.partition("#")[0].partition("?")[0]
        known, unsure = (kind, owner, size, filename, mime_type, place), "" if size is not None else UNSURE
    try:
        encoded = _ENCODE(known)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        encoded = compact_json(known).encode()
    return unsure + hashlib.sha256(encoded).hexdigest()[:32]


_ENCODE = msgspec.json.Encoder().encode


class _WithFiles(msgspec.Struct, gc=False):
    """The members of a publication that concern files; the decoder skips the rest."""

    id: Any = None
    cover: Any = None
    assets: Any = None


_DECODE = msgspec.json.Decoder(_WithFiles, float_hook=parse_float).decode


def _references(record: dict[str, Any]) -> Iterator[FileReference]:
    publication_id = whole_number(record.get("id"))
    cover, assets = record.get("cover"), record.get("assets")
    if type(cover) is dict:
        description, address = _description(cover), cover_address(cover)
        key = content_key(COVER, publication_id, description, address)
        yield FileReference(key, COVER, publication_id, None, _size(description), address)
    for asset in assets if type(assets) is list else ():
        if type(asset) is dict:
            yield _asset(asset, publication_id)


def _asset(asset: dict[str, Any], publication_id: int | None) -> FileReference:
    file = asset.get("file")
    content: dict[str, Any] = file if type(file) is dict else {}
    asset_id, description = whole_number(asset.get("id")), _description(content)
    address = address_of(asset.get("url"), content.get("url"))
    key = content_key(ASSET, asset_id, description, address)
    return FileReference(key, ASSET, publication_id, asset_id, _size(description), address)


def _description(file: dict[str, Any]) -> FileDescription:
    metadata = file.get("metadata")
    known: dict[str, Any] = metadata if type(metadata) is dict else {}
    size = whole_number(known.get("size"))
    return FileDescription(file.get("id"), file.get("storage"), known.get("filename"), known.get("mime_type"), size)


def _size(description: FileDescription) -> int | None:
    size = description.size
    return size if type(size) is int and size >= 0 else None
