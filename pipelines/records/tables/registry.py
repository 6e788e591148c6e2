"""Every table by name and by resource, the raw tables included, and which of them are personal."""

from __future__ import annotations

import pyarrow as pa

from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.other_resources import (
    AUTHORITIES,
    AUTHORITY_VARIANTS,
    COLLECTION_PUBLICATIONS,
    COLLECTIONS,
    HARD_COPIES,
    LOCATIONS,
    TASKS,
    USER_ROLES,
    USERS,
)
from pipelines.records.tables.publications import (
    PUBLICATION_AUTHORS,
    PUBLICATION_CATEGORIES,
    PUBLICATION_FILES,
    PUBLICATION_IDENTIFIERS,
    PUBLICATIONS,
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

TABLES = {table.name: table for tables in STAGED.values() for table in tables}
"""Name → table, for every staged table."""

MADE_FROM = {table.name: f"raw_{resource}" for resource, tables in STAGED.items() for table in tables}
"""Name of a staged table → name of the raw table that it is made from."""

PERSONAL = frozenset(
    resource
    for resource, tables in STAGED.items()
    if any(column.personal for table in tables for column in table.columns)
)
"""Resources whose records describe people who use the library."""

PERSONAL_TABLES = frozenset(
    name for resource in PERSONAL for name in (f"raw_{resource}", *(table.name for table in STAGED[resource]))
)
"""Names of the tables of these resources; a configured key encrypts them."""


def raw_table(resource: str) -> Table:
    """The table `raw/<resource>.parquet`: the records exactly as the service sent them (I6)."""
    personal = resource in PERSONAL
    return Table(
        f"raw_{resource}",
        f"One row for each record of {resource} as the service listed it, byte for byte.",
        ("id", "page"),
        (
            Column("id", pa.int64(), "The record's id; empty if it is missing or not a whole number."),
            Column("page", pa.int32(), "Page of the list with the record, from 1.", required=True),
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
