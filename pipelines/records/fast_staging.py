"""The quick way to stage publications: for batches whose records all look as the service's document says.

A typed decoder reads such records several times faster than a general one, and checks every type while it reads. A record with a surprise
makes `RegularPublications.stage` answer `None`; the batch then goes the general way (`publications.stage_publications`), whose result is
the same for regular records: a property test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec

from pipelines.inventory import IDENTIFIER_LIST
from pipelines.records.batches import Row, StagedBatch, table_batch
from pipelines.records.files import ASSET, COVER, NOT_FETCHED_ROW, address_of, content_key
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.records import read_entry, read_fields
from pipelines.records.identifiers.verdicts import Identifier
from pipelines.records.publications import identifier_batch, stage_publications
from pipelines.records.residue import bounded, leave, residue_counts, residue_json
from pipelines.records.tables import (
    PUBLICATION_AUTHORS,
    PUBLICATION_CATEGORIES,
    PUBLICATION_FILES,
    PUBLICATION_IDENTIFIERS,
    PUBLICATIONS,
    Table,
)
from pipelines.records.values import day, parse_float

MAX_EXTRA_KEYS = 64
"""Keys beyond the document's that the decoder learns; a library with more of them goes the general way."""

_UNLEARNABLE = re.compile(r'["\\\x00-\x1f]')
"""In the name of a key; msgspec has no decoder for such names."""

_Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Exact(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An object with these keys and no others; it holds no cycles, so the garbage collector need not look at it."""


class _Author(_Exact):
    name: str | None = None
    type: str | None = None


class _Category(_Exact):
    id: _Integer | None = None
    name: str | None = None


class _Identifier(_Exact):
    type: str | None = None
    value: str | None = None


class _Reference(_Exact):
    id: _Integer | None = None
    name: str | None = None


class _Metadata(_Exact):
    size: _Integer | None = None
    filename: str | None = None
    mime_type: str | None = None


class _StoredFile(_Exact):
    id: str | None = None
    storage: str | None = None
    metadata: _Metadata | None = None
    url: Any = None
    thumb_url: Any = None
    preview_url: Any = None


class _Asset(_Exact):
    id: _Integer | None = None
    publication_id: _Integer | None = None
    name: str | None = None
    content_type: str | None = None
    file: _StoredFile | None = None
    url: Any = None
    thumb_url: Any = None
    preview_url: Any = None


class _Publication(_Exact):
    id: _Integer | None = None
    title: str | None = None
    publishable_type: str | None = None
    published_on: str | None = None
    abstract: str | None = None
    authors: list[_Author] | None = None
    categories: list[_Category | str] | None = None
    cover: _StoredFile | None = None
    assets: list[_Asset] | None = None
    identifiers: list[_Identifier] | None = None
    contributor: _Reference | None = None
    organization: _Reference | None = None
    url: Any = None
    thumb_url: Any = None
    preview_url: Any = None


class RegularPublications:
    """Stages batches of regular records. `learn` tells it keys that this library has beyond the document's."""

    def __init__(self, kinds: Kinds = STANDARD_KINDS) -> None:
        self._kinds = kinds
        self._flat = {f"flat_{index}": field for index, (field, _kind) in enumerate(kinds.fields)}
        self._flat_values: Callable[[Any], tuple[str | None, ...]] = attrgetter(*self._flat)
        self._extra: dict[str, str] = {}
        self._decode = self._decoder()

    def _decoder(self) -> Callable[[bytes], Any]:
        """Decodes a publication with the fields of identifiers and what was learnt."""
        fields = [
            *((name, str | None, None) for name in self._flat),
            *((name, Any, msgspec.UNSET) for name in self._extra),
        ]
        kind = msgspec.defstruct("_Named", fields, bases=(_Publication,), rename=self._flat | self._extra, gc=False)
        return msgspec.json.Decoder(kind, float_hook=parse_float).decode

    def learn(self, keys: Iterable[str]) -> None:
        """Take these keys of records for residue from now on, instead of for surprises."""
        known = {*self._extra.values(), *self._flat.values(), *_Publication.__struct_fields__}
        new = [key for key in keys if key not in known and not _UNLEARNABLE.search(key)]
        if not new or len(self._extra) + len(new) > MAX_EXTRA_KEYS:
            return
        self._extra.update({f"extra_{len(self._extra) + index}": key for index, key in enumerate(sorted(new))})
        self._decode = self._decoder()

    def stage(self, payloads: Sequence[bytes], hashes: Sequence[str]) -> StagedBatch | None:
        """As `stage_publications`; `None` when some record is not regular."""
        try:
            records: list[Any] = [self._decode(payload) for payload in payloads]
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        files = _files(records)
        if files is None:
            return None
        residues = [self._residue(record) for record in records]
        found = [self._identifiers(record, residue) for record, residue in zip(records, residues, strict=True)]
        published = [record.published_on for record in records]
        ids = [record.id for record in records]
        columns: dict[Table, list[Sequence[Any]]] = {
            PUBLICATIONS: [
                ids,
                [record.title for record in records],
                [record.publishable_type for record in records],
                [day(value) if value is not None else None for value in published],
                published,
                [record.abstract for record in records],
                [record.cover.id if record.cover is not None else None for record in records],
                *_references([record.contributor for record in records]),
                *_references([record.organization for record in records]),
                [residue_json(residue) for residue in residues],
                hashes,
            ],
            PUBLICATION_AUTHORS: _authors(ids, [record.authors or () for record in records]),
            PUBLICATION_CATEGORIES: _categories(ids, [record.categories or () for record in records]),
            PUBLICATION_FILES: _columns(files, PUBLICATION_FILES),
        }
        batches = {table.name: table_batch(table, values) for table, values in columns.items()}
        batches[PUBLICATION_IDENTIFIERS.name] = identifier_batch(ids, found)
        return StagedBatch(batches, bounded(residue_counts(residues)))

    def _residue(self, record: Any) -> dict[str, Any]:
        found = ((key, getattr(record, name)) for name, key in self._extra.items())
        return {key: value for key, value in found if value is not msgspec.UNSET}

    def _identifiers(self, record: Any, residue: dict[str, Any]) -> list[Identifier]:
        found: list[Identifier] = []
        read_fields(self._flat_values(record), found, self._kinds)
        for number, entry in enumerate(record.identifiers or ()):
            kind = entry.type or ""
            if not read_entry(kind, entry.value or "", found, self._kinds) and kind:
                leave(residue, f"{IDENTIFIER_LIST}[{number}].type", kind)
        return found


def _references(found: Sequence[_Reference | None]) -> list[Sequence[Any]]:
    return [
        [one.id if one is not None else None for one in found],
        [one.name if one is not None else None for one in found],
    ]


def _authors(ids: Sequence[int | None], lists: Sequence[Sequence[_Author]]) -> list[Sequence[Any]]:
    return [
        *_places(ids, lists),
        [author.name for authors in lists for author in authors],
        [author.type for authors in lists for author in authors],
    ]


def _categories(ids: Sequence[int | None], lists: Sequence[Sequence[_Category | str]]) -> list[Sequence[Any]]:
    found = [one if isinstance(one, _Category) else _Category(name=one) for categories in lists for one in categories]
    return [*_places(ids, lists), [category.id for category in found], [category.name for category in found]]


def _places(ids: Sequence[int | None], lists: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """publication_id and position of every item of every list."""
    return [
        [publication_id for publication_id, items in zip(ids, lists, strict=True) for _item in items],
        [position for items in lists for position in range(len(items))],
    ]


def _files(records: Sequence[Any]) -> list[Row] | None:
    """Rows of the covers and assets; `None` where an asset names another publication than the one it came with."""
    rows: list[Row] = []
    for record in records:
        if record.cover is not None:
            stored, address = _stored(record.cover), address_of(record.cover.url)
            content = (address is not None, content_key(COVER, record.id, stored, address), *NOT_FETCHED_ROW)
            rows.append((record.id, COVER, 0, None, None, None, *stored, *content))
        for position, asset in enumerate(record.assets or ()):
            if asset.publication_id is not None and asset.publication_id != record.id:
                return None
            stored = _stored(asset.file) if asset.file is not None else _NOT_STORED
            address = address_of(asset.url, asset.file.url if asset.file is not None else None)
            content = (address is not None, content_key(ASSET, asset.id, stored, address), *NOT_FETCHED_ROW)
            rows.append((record.id, ASSET, position, asset.id, asset.name, asset.content_type, *stored, *content))
    return rows


_NOT_STORED = (None, None, None, None, None)


def _stored(file: _StoredFile) -> tuple[object, object, object, object, object]:
    metadata = file.metadata
    if metadata is None:
        return file.id, file.storage, None, None, None
    return file.id, file.storage, metadata.filename, metadata.mime_type, metadata.size


def _columns(rows: list[Row], table: Table) -> list[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)


class PublicationStager:
    """Stages the publications of one library, batch by batch: the quick way where it can, the general way where it must."""

    def __init__(self, kinds: Kinds = STANDARD_KINDS) -> None:
        self._kinds = kinds
        self._regular = RegularPublications(kinds)

    def __call__(self, payloads: Sequence[bytes], hashes: Sequence[str]) -> StagedBatch:
        """Stage one batch; never raises on data."""
        staged = self._regular.stage(payloads, hashes)
        if staged is None:
            staged = stage_publications(payloads, hashes, self._kinds)
            self._regular.learn(key for key in staged.residue)
        return staged
