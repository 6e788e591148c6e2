"""The fields of a publication: one description, from which the tables, the staging and the form that a migration sends follow.

A new field is one entry in `PUBLICATION_FIELDS`. An entry of type TEXT or DATE needs no other change: its columns in `publications`, what
staging takes, its member in `forms` and its comparison come from the entry. A REFERENCE also needs its reason in `forms.NAMED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pipelines.records.residue import ADDRESSES


class FieldType(StrEnum):
    """What a field of a publication holds."""

    ID = "id"
    """The number that the service gives the record."""
    TEXT = "text"
    """A string; one column."""
    DATE = "date"
    """A string `YYYY-MM-DD`; four columns: the date, the text as the service sent it, the year, and how precise the text is."""
    REFERENCE = "reference"
    """An object with the id and name of another record; two columns: id and name."""
    COVER = "cover"
    """A stored file; one column for its id, and a row in `publication_files`."""
    LIST = "list"
    """A list; its entries have a table of their own."""
    ASSETS = "assets"
    """The list of attached files; each one is a row in `publication_files`."""


@dataclass(frozen=True)
class PublicationField:
    """One field of a publication. `columns`: name → description of each column of `publications` that the field fills, in order."""

    name: str
    type: FieldType
    columns: Mapping[str, str] = field(default_factory=dict)


IDENTIFIER_LIST = "identifiers"
"""Version 3's list of identifiers, each an object with `type` and `value` (service.md#identifiers)."""

PUBLICATION_FIELDS = (
    PublicationField("id", FieldType.ID),
    PublicationField("title", FieldType.TEXT, {"title": "Title, as catalogued."}),
    PublicationField(
        "publishable_type",
        FieldType.TEXT,
        {"publishable_type": "Kind of publication: Book, Report, Article or another of the service's kinds."},
    ),
    PublicationField(
        "published_on",
        FieldType.DATE,
        {
            "published_on": "Date of publication; empty where the service's value is not a whole date. Day, month and year in another "
            "order or form are a date where they have one reading (7/19/2018, 19 July 2018, rule date_order).",
            "published_on_raw": "Date of publication exactly as the service sent it.",
            "published_year": "Year of publication, also where the service's value is only a year or a month.",
            "published_precision": "day, month (2018-11) or year (2021): what the date of publication is; empty where it is none of them.",
        },
    ),
    PublicationField("abstract", FieldType.TEXT, {"abstract": "Abstract, as catalogued."}),
    PublicationField("authors", FieldType.LIST),
    PublicationField(IDENTIFIER_LIST, FieldType.LIST),
    PublicationField("categories", FieldType.LIST),
    PublicationField(
        "cover",
        FieldType.COVER,
        {"cover_id": "The service's identifier of the cover image's file; details are in publication_files."},
    ),
    PublicationField("assets", FieldType.ASSETS),
    PublicationField(
        "contributor",
        FieldType.REFERENCE,
        {
            "contributor_id": "The service's identifier of the contributor, where the record names one.",
            "contributor_name": "Name of the contributor, where the service sends it.",
        },
    ),
    PublicationField(
        "organization",
        FieldType.REFERENCE,
        {
            "organization_id": "The service's identifier of the organization, where the record names one.",
            "organization_name": "Name of the organization, where the service sends it.",
        },
    ),
)
"""Every field of a publication that the service documents, in the order of service.md#publications; v2's identifier fields apart."""


def fields_of(*types: FieldType) -> tuple[str, ...]:
    """Names of the fields of these types, in the order of the description."""
    return tuple(entry.name for entry in PUBLICATION_FIELDS if entry.type in types)


TEXT_FIELDS = fields_of(FieldType.TEXT)
DATE_FIELDS = fields_of(FieldType.DATE)

REFERENCES = fields_of(FieldType.REFERENCE)
"""Other records that a publication names (service.md#references)."""

WRITTEN = fields_of(FieldType.TEXT, FieldType.DATE, FieldType.LIST, FieldType.REFERENCE)
"""Fields that POST and PATCH send. Files are uploaded by requests of their own; the service assigns the id."""

IDENTIFIER_FIELDS = ("doi", "isbn", "issn", "arxiv_id", "pmid")
"""v2's flat identifier fields, in the order of their positions in `publication_identifiers` (service.md#identifiers)."""

PUBLICATION_KEYS = frozenset(entry.name for entry in PUBLICATION_FIELDS if entry.name != IDENTIFIER_LIST)
"""Fields of a publication in both versions; only version 3 has the list of identifiers (service.md#publications)."""

AUTHORS = "authors"
AUTHOR_KEYS = frozenset({"name", "type"})
CATEGORY_KEYS = frozenset({"id", "name"})
IDENTIFIER_KEYS = frozenset({"type", "value"})
REFERENCE_KEYS = frozenset({"id", "name"})
METADATA_KEYS = frozenset({"size", "filename", "mime_type"})
STORED_KEYS = ADDRESSES | {"id", "storage", "metadata"}
ASSET_KEYS = ADDRESSES | {"id", "publication_id", "name", "content_type", "file"}
"""Members of the objects inside a publication: an author, a category, an entry of `identifiers`, a contributor or organization, and a
stored file with its metadata, which an asset has as its `file` (service.md#publications, service.md#assets). Any other member is
residue, or is reported as not sent."""
