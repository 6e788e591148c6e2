"""Every table by name and by resource, the raw tables included, and which of them are personal."""

from __future__ import annotations

import pyarrow as pa

from pipelines.inventory import NESTED, nested_address
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


def table_of(resource: str) -> str:
    """The name of the staged table with a row for each record, or for each entry of a list; of a resource without one, the raw table."""
    name = STAGED[resource][0].name if resource in STAGED else resource
    return name if name in TABLES else f"raw_{resource}"


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
    address = next((nested_address(name) for name, nested in NESTED.items() if nested == resource), "")
    of_what = f"entry of the lists {address}, which `nested` reads," if address else f"record of {resource}"
    owner = Column("owner", pa.string(), "Id of the record that has the list, as text.", required=True)
    return Table(
        f"raw_{resource}",
        f"One row for each {of_what} as the service listed it, byte for byte.",
        (*([owner.name] if address else []), "id", "page"),
        (
            *([owner] if address else []),
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


def raw_tables(resource: str) -> tuple[Table, ...]:
    """The raw table of a resource, and those of the lists that its records have at addresses of their own."""
    nested = (entries for name, entries in NESTED.items() if name.partition("/")[0] == resource)
    return tuple(raw_table(name) for name in (resource, *nested))


RAW_TABLES = tuple(table for resource in STAGED for table in raw_tables(resource))
"""The raw table of every resource."""
