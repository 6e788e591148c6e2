"""Every table Bookferry keeps, described once: name, key, Arrow type and a sentence for each column.

Parquet schemas, Dagster's column metadata and checks, the DuckDB views and `bookferry tables` are all made from these descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, what it means, and whether a row may lack it.

    `personal`: it holds data of a person who uses the library. Such columns are in the files and in no view that everybody sees.
    `references`: the column that it names a row of, such as publications.id. `json`: its text is a JSON object. `made_from`: the column of
    the raw table that a staged table has it from; empty where it comes from elsewhere.
    """

    name: str
    type: pa.DataType
    comment: str
    required: bool = False
    personal: bool = False
    references: str = ""
    json: bool = False
    made_from: str = "payload"


@dataclass(frozen=True)
class Table:
    """One table: `key` names the columns that together tell its rows apart, `indexes` those that people look rows up by."""

    name: str
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    indexes: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with each comment in its field's metadata."""
        return pa.schema(
            [
                pa.field(column.name, column.type, nullable=not column.required, metadata=_told(column))
                for column in self.columns
            ],
            metadata={"comment": self.comment},
        )

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that every row must fill."""
        return tuple(column.name for column in self.columns if column.required)

    @property
    def impersonal(self) -> Table:
        """The table without its personal columns."""
        return replace(self, columns=tuple(column for column in self.columns if not column.personal))


def _told(column: Column) -> dict[bytes | str, bytes | str]:
    """What the files say of a column beside its type."""
    return {"comment": column.comment, **({"personal": "true"} if column.personal else {})}


SNAPSHOT_COLUMNS = (
    Column("tenant", pa.string(), "Name of the library in bookferry.toml."),
    Column("snapshot", pa.string(), "When the snapshot's capture began, in UTC: the name of the snapshot."),
)
"""The columns that the folders of the snapshots (`tenant=…/snapshot=…`) add in front of every table."""

_PUBLICATION_ID = Column(
    "publication_id", pa.int64(), "The publication this row belongs to (publications.id).", references="publications.id"
)
_POSITION = Column("position", pa.int32(), "Place in the service's own order, from 0.", required=True)

_ID = Column(
    "id", pa.int64(), "The service's identifier of the record; empty where it sent none that is a whole number."
)
_RESIDUE = Column(
    "residue",
    pa.string(),
    "JSON object of everything the record holds that no column of these tables takes.",
    json=True,
)
_SHA256 = Column(
    "sha256",
    pa.string(),
    "SHA-256 of the record's JSON as received; the same record in the raw table has the same.",
    required=True,
    made_from="sha256",
)

PUBLICATIONS = Table(
    "publications",
    "One row for each publication of the library, as the service listed it.",
    ("id",),
    (
        _ID,
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
        Column("contributor_id", pa.int64(), "The service's identifier of the contributor, where it names one."),
        Column("contributor_name", pa.string(), "Name of the contributor, where the service sends it."),
        Column("organization_id", pa.int64(), "The service's identifier of the organization, where it names one."),
        Column("organization_name", pa.string(), "Name of the organization, where the service sends it."),
        _RESIDUE,
        _SHA256,
    ),
    indexes=(("published_on",),),
)

PUBLICATION_IDENTIFIERS = Table(
    "publication_identifiers",
    "One row for each identifier, checked and where that is certain repaired, beside what the service sent; one text may hold several.",
    ("publication_id", "position"),
    (
        _PUBLICATION_ID,
        Column("position", pa.int32(), "Place among the identifiers of the publication, from 0.", required=True),
        Column(
            "type",
            pa.string(),
            "What the value is: the type that its field or entry names (doi, isbn, issn, arxiv_id, pmid or another one), unless it is "
            "certainly another.",
            required=True,
        ),
        Column(
            "value",
            pa.string(),
            "The identifier in its canonical form; where it is none (see verdict), the text as it was found.",
            required=True,
        ),
        Column(
            "raw", pa.string(), "The text of the whole field or entry, exactly as the service sent it.", required=True
        ),
        Column(
            "source_field", pa.string(), "The record's field that holds the text: identifiers in v3.", required=True
        ),
        Column(
            "verdict",
            pa.string(),
            "valid, repaired (both are identifiers), invalid (breaks the rules of its type) or unrecognised (does not look like one).",
            required=True,
        ),
        Column(
            "rule",
            pa.string(),
            "The rules that led to the verdict, joined by +; empty for what is valid as it stands. docs/identifiers.md explains each.",
        ),
    ),
    indexes=(("value", "type"),),
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
    indexes=(("name",),),
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
    indexes=(("name",),),
)

PUBLICATION_FILES = Table(
    "publication_files",
    "One row for each file of a publication and for its cover: what the service says, and its content's checksum.",
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
        Column("has_url", pa.bool_(), "Whether the service gave an address to fetch the content from.", required=True),
        Column(
            "content_key",
            pa.string(),
            "What tells its content from another without fetching it; rows with the same have the same content.",
            required=True,
        ),
        Column(
            "status",
            pa.string(),
            "kept (its bytes are in the data folder), failed (they could not be had), or not_fetched (nobody asked for them).",
            required=True,
            made_from="",
        ),
        Column(
            "sha256",
            pa.string(),
            "SHA-256 of the content; its bytes are in files/sha256 of the data folder.",
            made_from="",
        ),
        Column("bytes", pa.int64(), "Bytes of the content as it was received and kept.", made_from=""),
        Column(
            "etag",
            pa.string(),
            "What the storage calls this version of the content, where only that can tell it from another.",
            made_from="",
        ),
        Column("problem", pa.string(), "Why the content could not be had.", made_from=""),
    ),
    indexes=(("sha256",),),
)


def _records_of(name: str, comment: str, *columns: Column) -> Table:
    """The table of a resource with one row for each record: the fields that are known, and all else as JSON."""
    return Table(name, comment, ("id",), (_ID, *columns, _RESIDUE, _SHA256))


def _list_of(name: str, comment: str, owner: Column, value: Column) -> Table:
    """The table of a list in the records of a resource: one row for each entry."""
    return Table(name, comment, (owner.name, _POSITION.name), (owner, _POSITION, value))


_NOTE = Column("note", pa.string(), "Note, as the library keeps it.")

USERS = Table(
    "users",
    "One row for each person with an account in the library; v2 lists none.",
    ("id",),
    (
        _ID,
        Column("email", pa.string(), "E-mail address, with which the person signs in.", personal=True),
        Column("name", pa.string(), "Name.", personal=True),
        replace(_RESIDUE, personal=True),
        replace(_SHA256, personal=True),  # whoever guesses a record could prove the guess with it
    ),
)
USER_ROLES = _list_of(
    "user_roles",
    "One row for each role of a user.",
    Column("user_id", pa.int64(), "The user who has the role (users.id).", references="users.id"),
    Column("role", pa.string(), "Name of the role, for example librarian or admin."),
)
HARD_COPIES = _records_of(
    "hard_copies",
    "One row for each copy that stands on a shelf.",
    Column(
        "publication_id",
        pa.int64(),
        "The publication that it is a copy of (publications.id).",
        references="publications.id",
    ),
    Column("location_id", pa.int64(), "Where it stands (locations.id).", references="locations.id"),
    Column("barcode", pa.string(), "Barcode on the copy."),
    Column("call_number", pa.string(), "Call number: its place on the shelf."),
    Column("status", pa.string(), "State of the copy, in the service's own word."),
    Column(
        "acquired_on", pa.date32(), "Day on which the library got it; empty where the service's value is not a date."
    ),
    _NOTE,
)
LOCATIONS = _records_of(
    "locations",
    "One row for each location of hard copies.",
    Column("name", pa.string(), "Name of the location."),
    _NOTE,
)
COLLECTIONS = _records_of(
    "collections",
    "One row for each collection of publications.",
    Column("name", pa.string(), "Name of the collection."),
    Column("description", pa.string(), "What the collection is about."),
)
COLLECTION_PUBLICATIONS = _list_of(
    "collection_publications",
    "One row for each publication in a collection.",
    Column("collection_id", pa.int64(), "The collection (collections.id).", references="collections.id"),
    Column("publication_id", pa.int64(), "The publication in it (publications.id).", references="publications.id"),
)
AUTHORITIES = _records_of(
    "authorities",
    "One row for each authority: the name under which a person, body or subject is filed.",
    Column("name", pa.string(), "The authorised name."),
    Column("kind", pa.string(), "What it names: person, corporate or subject, or the service's own word."),
)
AUTHORITY_VARIANTS = _list_of(
    "authority_variants",
    "One row for each other form of an authority's name.",
    Column("authority_id", pa.int64(), "The authority (authorities.id).", references="authorities.id"),
    Column("variant", pa.string(), "The other form of the name."),
)
TASKS = _records_of(
    "tasks",
    "One row for each task.",
    Column("title", pa.string(), "What is to be done."),
    Column("description", pa.string(), "More about it."),
    Column(
        "publication_id", pa.int64(), "The publication it is about (publications.id).", references="publications.id"
    ),
    Column("assignee_id", pa.int64(), "Who is to do it (users.id).", references="users.id"),
    Column("due_on", pa.date32(), "Day on which it is due; empty where the service's value is not a date."),
    Column("completed_at", pa.string(), "When it was done, as the service writes it; empty while it is open."),
)

STAGED = {
    "publications": (
        PUBLICATIONS,
        PUBLICATION_IDENTIFIERS,
        PUBLICATION_AUTHORS,
        PUBLICATION_CATEGORIES,
        PUBLICATION_FILES,
    ),
    "users": (USERS, USER_ROLES),
    "hard_copies": (HARD_COPIES,),
    "locations": (LOCATIONS,),
    "collections": (COLLECTIONS, COLLECTION_PUBLICATIONS),
    "authorities": (AUTHORITIES, AUTHORITY_VARIANTS),
    "tasks": (TASKS,),
}
"""Resource → the tables that are staged from it; the first one has a row for each record."""

LISTS = {USER_ROLES: "roles", COLLECTION_PUBLICATIONS: "publication_ids", AUTHORITY_VARIANTS: "variants"}
"""Table of a list → the key of the record that holds it."""

TABLES = {table.name: table for tables in STAGED.values() for table in tables}
"""Name → table, for every staged table."""

MADE_FROM = {table.name: f"raw_{resource}" for resource, tables in STAGED.items() for table in tables}
"""Name of a staged table → name of the raw table that it is made from."""


PERSONAL = frozenset(
    resource
    for resource, tables in STAGED.items()
    if any(column.personal for table in tables for column in table.columns)
)
"""Resources whose records are people who use the library."""

PERSONAL_TABLES = frozenset(
    name for resource in PERSONAL for name in (f"raw_{resource}", *(table.name for table in STAGED[resource]))
)
"""Names of their tables, which are encrypted where there is a key."""


def raw_table(resource: str) -> Table:
    """The table `raw/<resource>.parquet`: what the service answered, untouched (I6)."""
    personal = resource in PERSONAL
    return Table(
        f"raw_{resource}",
        f"One row for each record of {resource} as the service listed it, byte for byte.",
        ("id", "page"),
        (
            Column("id", pa.int64(), "The record's id; empty where the record has none that is a whole number."),
            Column("page", pa.int32(), "Page of the listing that held the record, from 1.", required=True),
            Column(
                "payload",
                pa.string(),
                "The record's JSON, byte for byte as received.",
                required=True,
                personal=personal,
            ),
            Column("sha256", pa.string(), "SHA-256 of the payload, in hexadecimal.", required=True, personal=personal),
        ),
    )


RAW_TABLES = tuple(raw_table(resource) for resource in STAGED)
"""The raw table of every resource."""
