"""Every table Bookferry keeps, described once: name, key, Arrow type and a sentence for each column.

Parquet schemas, Dagster's column metadata and checks, the DuckDB views and `bookferry tables` are all made from these descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, what it means, and whether a row may lack it."""

    name: str
    type: pa.DataType
    comment: str
    required: bool = False


@dataclass(frozen=True)
class Table:
    """One table: `key` names the columns that together tell its rows apart."""

    name: str
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with each comment in its field's metadata."""
        return pa.schema(
            [
                pa.field(column.name, column.type, nullable=not column.required, metadata={"comment": column.comment})
                for column in self.columns
            ],
            metadata={"comment": self.comment},
        )

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that every row must fill."""
        return tuple(column.name for column in self.columns if column.required)


SNAPSHOT_COLUMNS = (
    Column("tenant", pa.string(), "Name of the library in bookferry.toml."),
    Column("snapshot", pa.string(), "When the snapshot's capture began, in UTC: the name of the snapshot."),
)
"""The columns that the folders of the snapshots (`tenant=…/snapshot=…`) add in front of every table."""

_PUBLICATION_ID = Column("publication_id", pa.int64(), "The publication this row belongs to (publications.id).")
_POSITION = Column("position", pa.int32(), "Place in the service's own order, from 0.", required=True)

PUBLICATIONS = Table(
    "publications",
    "One row for each publication of the library, as the service listed it.",
    ("id",),
    (
        Column("id", pa.int64(), "The service's identifier of the record; empty only where the service sent none."),
        Column("title", pa.string(), "Title, as catalogued."),
        Column(
            "publishable_type",
            pa.string(),
            "Kind of publication: Book, Report, Article or another of the service's kinds.",
        ),
        Column("published_on", pa.date32(), "Date of publication; empty where the service's value is not a date."),
        Column("published_on_raw", pa.string(), "Date of publication exactly as the service sent it."),
        Column("abstract", pa.string(), "Abstract, as catalogued."),
        Column(
            "cover_id",
            pa.string(),
            "The service's identifier of the cover image's file; details are in publication_files.",
        ),
        Column(
            "residue", pa.string(), "JSON object of everything the record holds that no column of these tables takes."
        ),
        Column(
            "sha256",
            pa.string(),
            "SHA-256 of the record's JSON as received; the same record in raw/publications has the same.",
            required=True,
        ),
    ),
)

PUBLICATION_IDENTIFIERS = Table(
    "publication_identifiers",
    "One row for each identifier field that is filled, as it stands: nothing is cleaned, split or checked yet.",
    ("publication_id", "position"),
    (
        _PUBLICATION_ID,
        _POSITION,
        Column(
            "type",
            pa.string(),
            "Kind of identifier that the field claims: doi, isbn, issn, arxiv_id or pmid.",
            required=True,
        ),
        Column("raw", pa.string(), "The value exactly as the service sent it.", required=True),
        Column("source_field", pa.string(), "The record's field that holds the value.", required=True),
    ),
)

PUBLICATION_AUTHORS = Table(
    "publication_authors",
    "One row for each author of a publication.",
    ("publication_id", "position"),
    (
        _PUBLICATION_ID,
        _POSITION,
        Column("name", pa.string(), "Name of the person or body, as catalogued."),
        Column("type", pa.string(), "person or corporate."),
    ),
)

PUBLICATION_CATEGORIES = Table(
    "publication_categories",
    "One row for each category a publication is filed under.",
    ("publication_id", "position"),
    (
        _PUBLICATION_ID,
        _POSITION,
        Column("category_id", pa.int64(), "The service's identifier of the category, where it sends one."),
        Column("name", pa.string(), "Name of the category."),
    ),
)

PUBLICATION_FILES = Table(
    "publication_files",
    "One row for each file attached to a publication, and one for its cover: what the service says about them.",
    ("publication_id", "kind", "position"),
    (
        _PUBLICATION_ID,
        Column("kind", pa.string(), "asset (an attached file) or cover.", required=True),
        _POSITION,
        Column("asset_id", pa.int64(), "The service's identifier of the asset; empty for covers."),
        Column("name", pa.string(), "Name shown to readers."),
        Column("content_type", pa.string(), "Media type of the asset, as the service says."),
        Column("file_id", pa.string(), "The service's identifier of the stored file."),
        Column("storage", pa.string(), "Which of the service's storages holds the file."),
        Column("filename", pa.string(), "File name at upload. It comes from outside: never use it as a path."),
        Column("mime_type", pa.string(), "Media type of the stored file, as the service says."),
        Column("size", pa.int64(), "Size in bytes, as the service says."),
    ),
)

STAGED = {
    "publications": (
        PUBLICATIONS,
        PUBLICATION_IDENTIFIERS,
        PUBLICATION_AUTHORS,
        PUBLICATION_CATEGORIES,
        PUBLICATION_FILES,
    )
}
"""Resource → the tables that are staged from it; the first one has a row for each record."""

TABLES = {table.name: table for tables in STAGED.values() for table in tables}
"""Name → table, for every staged table."""


def raw_table(resource: str) -> Table:
    """The table `raw/<resource>.parquet`: what the service answered, untouched (I6)."""
    return Table(
        f"raw_{resource}",
        f"One row for each record of {resource} as the service listed it, byte for byte.",
        ("id", "page"),
        (
            Column("id", pa.int64(), "The record's id; empty where the record has none that is a whole number."),
            Column("page", pa.int32(), "Page of the listing that held the record, from 1.", required=True),
            Column("payload", pa.string(), "The record's JSON, byte for byte as received.", required=True),
            Column("sha256", pa.string(), "SHA-256 of the payload, in hexadecimal.", required=True),
        ),
    )
