"""The five tables of publications. A new column of `publications` is an entry in `pipelines.records.tables.publication_fields`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from pipelines.records.tables.description import Column, Part, Table
from pipelines.records.tables.publication_fields import IDENTIFIER_LIST, PUBLICATION_FIELDS, FieldType
from pipelines.records.tables.shared_columns import ID, POSITION, RESIDUE, SHA256

_FILLED: dict[FieldType, tuple[tuple[pa.DataType, tuple[str, ...], Part], ...]] = {
    FieldType.TEXT: ((pa.string(), (), Part.VALUE),),
    FieldType.DATE: (
        (pa.date32(), (), Part.DAY),
        (pa.string(), (), Part.VALUE),
        (pa.int32(), (), Part.YEAR),
        (pa.string(), (), Part.PRECISION),
    ),
    FieldType.REFERENCE: ((pa.int64(), ("id",), Part.VALUE), (pa.string(), ("name",), Part.VALUE)),
    FieldType.COVER: ((pa.string(), ("id",), Part.VALUE),),
}
"""Type of a field → of each column that it fills: the type, the member of the field, and the part of the value."""


def _field_columns() -> Iterator[Column]:
    for field in PUBLICATION_FIELDS:
        for (name, comment), (kind, member, part) in zip(
            field.columns.items(), _FILLED.get(field.type, ()), strict=True
        ):
            yield Column(name, kind, comment, path=(field.name, *member), part=part)


PUBLICATIONS = Table(
    "publications",
    "One row for each publication of the library, as the service listed it.",
    ("id",),
    (ID, *_field_columns(), RESIDUE, SHA256),
    indexes=(("published_on",),),
)

_PUBLICATION_ID = Column(
    "publication_id", pa.int64(), "The publication of this row (publications.id).", references="publications.id"
)

PUBLICATION_IDENTIFIERS = Table(
    "publication_identifiers",
    "One row for each identifier: the checked value, repaired where the repair is certain, beside the text that the service sent. One text "
    "may hold several identifiers.",
    ("publication_id", "position"),
    (
        _PUBLICATION_ID,
        Column("position", pa.int32(), "Place among the identifiers of the publication, from 0.", required=True),
        Column(
            "type",
            pa.string(),
            "Type of the value: the type of its field or entry (doi, isbn, issn, arxiv_id, pmid or another), unless the value is certainly "
            "of another type.",
            required=True,
        ),
        Column(
            "value",
            pa.string(),
            "The identifier in its canonical form; if it is invalid or unrecognised (see verdict), the text as found.",
            required=True,
        ),
        Column("raw", pa.string(), "Text of the whole field or entry, exactly as the service sent it.", required=True),
        Column("source_field", pa.string(), "Field of the record with the text: identifiers in v3.", required=True),
        Column(
            "verdict",
            pa.string(),
            "valid, repaired (both are identifiers), invalid (breaks the rules of its type) or unrecognised (does not look like one).",
            required=True,
        ),
        Column(
            "rule",
            pa.string(),
            "The rules that led to the verdict, joined by +; empty for what is valid as it stands. docs/tables.md explains each.",
        ),
    ),
    indexes=(("value", "type"),),
    entries=IDENTIFIER_LIST,
)

PUBLICATION_AUTHORS = Table(
    "publication_authors",
    "One row for each author of a publication.",
    ("publication_id", "position"),
    (
        _PUBLICATION_ID,
        POSITION,
        Column("name", pa.string(), "Name of the person or body, as catalogued."),
        Column("type", pa.string(), "person or corporate."),
    ),
    indexes=(("name",),),
    entries="authors",
    plain="name",
)

PUBLICATION_CATEGORIES = Table(
    "publication_categories",
    "One row for each category of a publication.",
    ("publication_id", "position"),
    (
        _PUBLICATION_ID,
        POSITION,
        Column(
            "category_id", pa.int64(), "The service's identifier of the category, where it sends one.", path=("id",)
        ),
        Column("name", pa.string(), "Name of the category."),
    ),
    indexes=(("name",),),
    entries="categories",
    plain="name",
)

PUBLICATION_FILES = Table(
    "publication_files",
    "One row for each file of a publication and for its cover: the service's description, and the checksum of the content.",
    ("publication_id", "kind", "position"),
    (
        _PUBLICATION_ID,
        Column("kind", pa.string(), "asset (an attached file) or cover.", required=True),
        POSITION,
        Column("asset_id", pa.int64(), "The service's identifier of the asset; empty for covers.", path=("id",)),
        Column("name", pa.string(), "Name that readers see.", path=("name",)),
        Column(
            "content_type", pa.string(), "Media type of the asset, according to the service.", path=("content_type",)
        ),
        Column("file_id", pa.string(), "The service's identifier of the stored file.", path=("file", "id")),
        Column("storage", pa.string(), "The service's storage that holds the file.", path=("file", "storage")),
        Column(
            "filename",
            pa.string(),
            "File name at upload. It comes from outside: never use it as a path.",
            path=("file", "metadata", "filename"),
        ),
        Column(
            "mime_type",
            pa.string(),
            "Media type of the stored file, according to the service.",
            path=("file", "metadata", "mime_type"),
        ),
        Column("size", pa.int64(), "Size in bytes, according to the service.", path=("file", "metadata", "size")),
        Column("has_url", pa.bool_(), "Whether the service sent an address of the content.", required=True),
        Column(
            "content_key",
            pa.string(),
            "Key of the content, known before the content is fetched; rows with the same key have the same content.",
            required=True,
        ),
        Column(
            "status",
            pa.string(),
            "kept (the content is in the data folder), failed (the content could not be fetched) or not_fetched (no backup asked for it).",
            required=True,
            made_from="",
        ),
        Column(
            "sha256",
            pa.string(),
            "SHA-256 of the content, which is in files/sha256 of the data folder.",
            made_from="",
        ),
        Column("bytes", pa.int64(), "Size in bytes of the content that was received and kept.", made_from=""),
        Column(
            "etag",
            pa.string(),
            "The storage's name for this version of the content, where nothing else identifies the version.",
            made_from="",
        ),
        Column(
            "problem",
            pa.string(),
            "Why the content could not be fetched, or that it is kept packed, as the storage sends it.",
            made_from="",
        ),
    ),
    indexes=(("sha256",),),
    entries="assets",
)
