"""The fast way to stage publications, for batches in which every record has the documented form.

A typed decoder reads such records several times faster than a general one, and checks every type while it reads. For a batch with any
other record, `RegularPublications.stage` returns `None`; the batch then goes through `general_staging.stage_publications`. Both ways give
the same result for regular records; a property test compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from pipelines.publication_fields import IDENTIFIER_LIST, PUBLICATION_FIELDS, REFERENCES, FieldType
from pipelines.records.batches import StagedBatch, named_batch, table_batch, transposed
from pipelines.records.files import FileDescription, FileRow, address_of, asset_row, cover_row
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import read_entry, read_fields
from pipelines.records.identifiers.verdicts import Identifier
from pipelines.records.nested_objects import (
    Asset,
    Author,
    Category,
    Exact,
    Int64,
    ListedIdentifier,
    Reference,
    StoredFile,
)
from pipelines.records.residue import ADDRESSES, bounded, keep_nested, residue_counts, residue_json
from pipelines.records.staging.general_staging import identifier_batch, text_and_date_columns
from pipelines.records.tables.description import Table
from pipelines.records.tables.publications import (
    PUBLICATION_AUTHORS,
    PUBLICATION_CATEGORIES,
    PUBLICATION_FILES,
    PUBLICATION_IDENTIFIERS,
    PUBLICATIONS,
)
from pipelines.records.values import parse_float

MAX_EXTRA_KEYS = 64
"""Undocumented keys that the decoder learns; a library with more of them goes the general way."""

_UNLEARNABLE = re.compile(r'["\\\x00-\x1f]')
"""In the name of a key; msgspec has no decoder for such names."""

_LISTS = {"authors": list[Author], "categories": list[Category | str], IDENTIFIER_LIST: list[ListedIdentifier]}
_TYPES: dict[FieldType, Any] = {
    FieldType.ID: Int64,
    FieldType.TEXT: str,
    FieldType.DATE: str,
    FieldType.REFERENCE: Reference,
    FieldType.COVER: StoredFile,
    FieldType.ASSETS: list[Asset],
}
FIELDS = [
    *((field.name, (_TYPES.get(field.type) or _LISTS[field.name]) | None, None) for field in PUBLICATION_FIELDS),
    *((name, Any, None) for name in sorted(ADDRESSES)),
]
"""Name, type and default of each documented field, for the decoder."""

_DOCUMENTED = frozenset(name for name, _type, _default in FIELDS)


class RegularPublications:
    """Stages batches of regular records. `learn` adds keys that this library has beyond the documented ones."""

    def __init__(self, kinds: Kinds = STANDARD_KINDS) -> None:
        self._kinds = kinds
        self._flat = {f"flat_{index}": field for index, (field, _kind) in enumerate(kinds.fields)}
        self._flat_values: Callable[[Any], tuple[str | None, ...]] = attrgetter(*self._flat)
        self._extra: dict[str, str] = {}
        self._decode = self._decoder()

    def _decoder(self) -> Callable[[bytes], Any]:
        """Decodes a publication with its documented fields, the fields of identifiers and the learned keys."""
        fields = [
            *FIELDS,
            *((name, str | None, None) for name in self._flat),
            *((name, Any, msgspec.UNSET) for name in self._extra),
        ]
        publication = msgspec.defstruct(
            "_Publication", fields, bases=(Exact,), rename=self._flat | self._extra, gc=False
        )
        return msgspec.json.Decoder(publication, float_hook=parse_float).decode

    @property
    def learned(self) -> tuple[str, ...]:
        """The learned keys."""
        return tuple(self._extra.values())

    def learn(self, keys: Iterable[str]) -> None:
        """Take these keys for residue from now on; records that have them become regular."""
        known = {*self._extra.values(), *self._flat.values(), *_DOCUMENTED}
        new = [key for key in keys if key not in known and not _UNLEARNABLE.search(key)]
        if not new or len(self._extra) + len(new) > MAX_EXTRA_KEYS:
            return
        self._extra.update({f"extra_{len(self._extra) + index}": key for index, key in enumerate(sorted(new))})
        self._decode = self._decoder()

    def stage(self, payloads: Sequence[bytes], hashes: Sequence[str]) -> StagedBatch | None:
        """Like `stage_publications`; `None` if some record is not regular."""
        try:
            records: list[Any] = [self._decode(payload) for payload in payloads]
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        files = _files(records)
        if files is None:
            return None
        residues = [self._residue(record) for record in records]
        identifiers = [self._identifiers(record, residue) for record, residue in zip(records, residues, strict=True)]
        ids = [record.id for record in records]
        columns: dict[Table, dict[str, Sequence[Any]]] = {
            PUBLICATIONS: {
                "id": ids,
                **text_and_date_columns(lambda name: list(map(attrgetter(name), records))),
                "cover_id": [record.cover.id if record.cover is not None else None for record in records],
                **_references(records),
                "residue": [residue_json(residue) for residue in residues],
                "sha256": hashes,
            },
            PUBLICATION_AUTHORS: _authors(ids, [record.authors or () for record in records]),
            PUBLICATION_CATEGORIES: _categories(ids, [record.categories or () for record in records]),
        }
        batches = {table.name: named_batch(table, values) for table, values in columns.items()}
        batches[PUBLICATION_FILES.name] = table_batch(PUBLICATION_FILES, transposed(files, PUBLICATION_FILES))
        batches[PUBLICATION_IDENTIFIERS.name] = identifier_batch(ids, identifiers)
        return StagedBatch(batches, bounded(residue_counts(residues)))

    def _residue(self, record: Any) -> dict[str, Any]:
        members = ((key, getattr(record, name)) for name, key in self._extra.items())
        return {key: value for key, value in members if value is not msgspec.UNSET}

    def _identifiers(self, record: Any, residue: dict[str, Any]) -> list[Identifier]:
        found: list[Identifier] = []
        read_fields(self._flat_values(record), found, self._kinds)
        for number, entry in enumerate(record.identifiers or ()):
            kind = entry.type or ""
            if not read_entry(kind, entry.value or "", found, self._kinds) and kind:
                keep_nested(residue, f"{IDENTIFIER_LIST}[{number}].type", kind)
        return found


def _references(records: Sequence[Any]) -> dict[str, Sequence[Any]]:
    columns: dict[str, Sequence[Any]] = {}
    for name in REFERENCES:
        references = list(map(attrgetter(name), records))
        columns[f"{name}_id"] = [reference.id if reference is not None else None for reference in references]
        columns[f"{name}_name"] = [reference.name if reference is not None else None for reference in references]
    return columns


def _authors(ids: Sequence[int | None], lists: Sequence[Sequence[Author]]) -> dict[str, Sequence[Any]]:
    return {
        **_positions(ids, lists),
        "name": [author.name for authors in lists for author in authors],
        "type": [author.type for authors in lists for author in authors],
    }


def _categories(ids: Sequence[int | None], lists: Sequence[Sequence[Category | str]]) -> dict[str, Sequence[Any]]:
    categories = [
        entry if isinstance(entry, Category) else Category(name=entry) for entries in lists for entry in entries
    ]
    return {
        **_positions(ids, lists),
        "category_id": [category.id for category in categories],
        "name": [category.name for category in categories],
    }


def _positions(ids: Sequence[int | None], lists: Sequence[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The publication and the position of every entry of every list."""
    return {
        "publication_id": [publication_id for publication_id, items in zip(ids, lists, strict=True) for _item in items],
        "position": [position for items in lists for position in range(len(items))],
    }


def _files(records: Sequence[Any]) -> list[FileRow] | None:
    """Rows of the covers and assets; `None` if an asset names another publication than its own."""
    rows: list[FileRow] = []
    for record in records:
        if (cover := record.cover) is not None:
            rows.append(cover_row(record.id, _description(cover), address_of(cover.url)))
        for position, asset in enumerate(record.assets or ()):
            if asset.publication_id is not None and asset.publication_id != record.id:
                return None
            file = asset.file
            description = _description(file) if file is not None else _NO_FILE
            address = address_of(asset.url, file.url if file is not None else None)
            rows.append(
                asset_row(record.id, position, (asset.id, asset.name, asset.content_type), description, address)
            )
    return rows


_NO_FILE = FileDescription(None, None, None, None, None)


def _description(file: StoredFile) -> FileDescription:
    metadata = file.metadata
    if metadata is None:
        return FileDescription(file.id, file.storage, None, None, None)
    return FileDescription(file.id, file.storage, metadata.filename, metadata.mime_type, metadata.size)
