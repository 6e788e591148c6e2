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

from pipelines.records.values import compact_json, decode_record, valid_text, whole_number

_Json = dict[str, Any]

ASSET = "asset"
COVER = "cover"

PRESIGN = {ASSET: "assets/presign", COVER: "publications/cover/presign"}
"""Kind of a file → the documented path that signs the form of its upload (service.md#presign)."""

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
    status: str = NOT_FETCHED
    """This and what follows are of the content, for which no backup has asked yet."""
    sha256: str | None = None
    bytes: int | None = None
    etag: str | None = None
    problem: str | None = None


def _files(record: Mapping[str, Any]) -> Iterator[tuple[str, int, _Json, _Json]]:
    """The cover and the assets of a publication, in its order: kind, position, the entry around the file (empty for a cover), the file."""
    cover, assets = record.get("cover"), record.get("assets")
    if type(cover) is dict:
        yield COVER, 0, {}, cover
    for position, asset in enumerate(assets if type(assets) is list else ()):
        if type(asset) is dict:
            yield ASSET, position, asset, _object(asset.get("file"))


def _object(value: object) -> _Json:
    return value if type(value) is dict else {}


def _file(
    publication_id: int | None, kind: str, position: int, asset: _Json, file: _Json
) -> tuple[FileRow, str | None]:
    """The row of a file, and its address."""
    metadata = _object(file.get("metadata"))
    asset_id, size, address = whole_number(asset.get("id")), whole_number(metadata.get("size")), _address(asset, file)
    description = (file.get("id"), file.get("storage"), metadata.get("filename"), metadata.get("mime_type"), size)
    key = content_key(kind, publication_id if kind == COVER else asset_id, description, address)
    name, content_type = asset.get("name"), asset.get("content_type")
    return (
        FileRow(publication_id, kind, position, asset_id, name, content_type, *description, address is not None, key),
        address,
    )


def file_rows(record: Mapping[str, Any]) -> Iterator[FileRow]:
    """The rows of a publication's files. Never raises on data."""
    publication_id = whole_number(record.get("id"))
    return (_file(publication_id, *file)[0] for file in _files(record))


def attached_files(record: Mapping[str, Any]) -> list[AttachedFile]:
    """The cover and the assets of a publication, in its order. Never raises on data."""
    return [_attached(*file) for file in _files(record)]


def _attached(kind: str, position: int, asset: _Json, file: _Json) -> AttachedFile:
    metadata = _object(file.get("metadata"))
    return AttachedFile(
        kind,
        position,
        whole_number(asset.get("id")),
        _name(asset.get("name")),
        _name(asset.get("content_type")) or None,
        _name(metadata.get("filename")),
        _name(metadata.get("mime_type")) or None,
        _size(whole_number(metadata.get("size"))),
    )


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
    record = decode_record(payload)
    publication_id = whole_number(record.get("id"))
    return [_reference(*_file(publication_id, *file)) for file in _files(record)]


def asset_reference(payload: bytes, publication_id: int | None) -> FileReference | None:
    """The file in the JSON of a single asset, the response of `GET /assets/:id` (service.md#assets)."""
    record = decode_record(payload)
    file = _object(record.get("file"))
    return None if "(record)" in record else _reference(*_file(publication_id, ASSET, 0, record, file))


def _reference(row: FileRow, address: str | None) -> FileReference:
    return FileReference(row.content_key, row.kind, row.publication_id, row.asset_id, _size(row.size), address)


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


def _address(asset: Mapping[str, Any], file: Mapping[str, Any]) -> str | None:
    """The address of an asset's file, or of a cover, which is no asset; `None` if there is none.

    A cover has it as its `url`, else as the original among its `urls`: the service documents neither (service.md#not-shown).
    """
    urls = None if asset else file.get("urls")
    for address in (asset.get("url"), file.get("url"), urls.get("original") if type(urls) is dict else None):
        if type(address) is str and address:
            return valid_text(address)
    return None


def content_key(
    kind: str, owner: object, description: tuple[Any, Any, Any, Any, int | None], address: str | None
) -> str:
    """A key that identifies the content from night to night: 32 hexadecimal digits, after a `?` if they do not prove enough.

    `owner` is the id of the asset; of a cover, the id of its publication. `description`: id, storage, filename, media type and size.
    The key of a file with an id of its own is made from that id, the storage and the size (service.md#upload). Otherwise it is made from
    everything that is known of the file, with its address but without the signature. Without an id and a size, only the storage can say
    whether the content has changed.
    """
    file_id, storage, filename, mime_type, size = description
    identity: tuple[object, ...]
    if file_id not in (None, ""):
        identity, unsure = (storage, file_id, size), ""
    else:
        place = None if address is None else address.partition("#")[0].partition("?")[0]
        identity, unsure = (kind, owner, size, filename, mime_type, place), "" if size is not None else UNSURE
    return unsure + hashlib.sha256(compact_json(identity).encode()).hexdigest()[:32]


def _size(size: int | None) -> int | None:
    return size if size is not None and size >= 0 else None
