"""Every table by name and by resource, the raw tables included, and which of them are personal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipelines.inventory import nested_prefix, noun, parent_of, plural
from pipelines.records.additional_fields import is_managed
from pipelines.records.shapes.field_names import (
    is_named_as_id,
    names_own_kind,
    names_same,
    resource_named,
    singular,
    stem_of,
)
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
from pipelines.records.tables.shared_columns import ID, POSITION

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


def tables_of(resource: str) -> tuple[Table, ...]:
    """The tables that are staged from a resource; of lists at addresses of their own, the one that no other resource has."""
    return STAGED.get(resource) or (() if resource in TABLES else (table_named(resource),))


def table_named(name: str) -> Table:
    """A staged table by name: a described one, or that of lists at addresses of their own, whatever their name."""
    return TABLES[name] if name in TABLES else _nested_table(name)


def tables_named(names: Iterable[str]) -> dict[str, Table]:
    """Name → table, for every described table, and for those of lists at addresses of their own that are among these names."""
    return TABLES | {name: _nested_table(name) for name in sorted({*names} - {*TABLES}) if parent_of(name)}


def table_of(resource: str) -> str:
    """The name of the staged table with a row for each record, or for each entry of a list."""
    return STAGED[resource][0].name if resource in STAGED else resource


PERSONAL = frozenset(
    resource
    for resource, tables in STAGED.items()
    if any(column.personal for table in tables for column in table.columns)
)
"""Resources whose records describe people who use the library."""

_PERSONAL_TABLES = frozenset(table.name for resource in PERSONAL for table in STAGED[resource])


def is_personal(name: str) -> bool:
    """Whether a table or a resource describes people who use the library; a configured key encrypts it."""
    name = name.removeprefix("raw_")
    if name in TABLES or (parent := parent_of(name)) is None:
        return name in PERSONAL | _PERSONAL_TABLES
    return not PERSONAL.isdisjoint((parent, named_by(name)))


def named_by(resource: str) -> str | None:
    """The resource to whose records such lists lead, by their name: `assignees` of a task are users."""
    parent = parent_of(resource) or ""
    name = resource.removeprefix(nested_prefix(parent))
    return parent if names_own_kind(name) else resource_named(name)


def leading_key(resource: str, keys: Iterable[str]) -> str:
    """The key of the entries of such lists with the record to which one leads; `id` where entries are the records themselves.

    It is `publication_id` in `{id: 903, publication_id: 7}`, if the lists are named after publications, or if nothing else is in entries.
    """
    parent, to = parent_of(resource) or "", named_by(resource)
    stems = {key: stem_of(key) for key in keys if _KEY.fullmatch(key) and key != "id" and not is_managed(key)}
    if to is None:
        rest = [key for key, stem in stems.items() if resource_named(stem) != parent and key != POSITION.name]
        return rest[0] if len(rest) == 1 and resource_named(stems[rest[0]]) else "id"
    names = (to, resource.removeprefix(nested_prefix(parent)))
    fitting = [key for key, stem in stems.items() if any(names_same(stem, name) for name in names)]
    return max(fitting, key=is_named_as_id, default="id")


_KEY = re.compile("[A-Za-z0-9_-]+")


def id_at(key: str, entry: Mapping[str, Any]) -> Any:
    """The id of the record to which an entry of such a list leads by this key."""
    value = entry.get(key)
    return value.get("id") if isinstance(value, dict) else entry.get("id") if value is None else value


def field_of_entries(resource: str, key: str) -> str:
    """The field of a record that stands for such a list, with the ids to which its entries lead by this key: `publication_ids`."""
    name = resource.removeprefix(nested_prefix(parent_of(resource) or ""))
    stem = name if key == "id" or named_by(resource) else stem_of(key)
    return f"{singular(stem)}_ids"


def beside_links(field: str) -> str:
    """The field of a record that names what entries of such a list say beside the link: `publication_entries` beside `publication_ids`."""
    return f"{field.removesuffix('_ids')}_entries"


def says_more(resource: str, key: str, entry_key: str) -> bool:
    """Whether a key of the entries of such lists may say something that is neither the link nor of the service, as `note` and `role` do."""
    stem = stem_of(entry_key)
    return stem != stem_of(key) and resource_named(stem) != parent_of(resource) and not is_managed(entry_key)


def _nested_table(resource: str) -> Table:
    """The table of lists at addresses of their own that have no described one."""
    parent, to = parent_of(resource), named_by(resource)
    if parent is None:
        raise KeyError(resource)
    owner = Column(
        f"{nested_prefix(parent)}id",
        pa.int64(),
        f"The {noun(parent)} that has the list ({parent}.id).",
        references=f"{parent}.id",
    )
    value = replace(
        ID, comment="Id of the record to which the entry leads, else its own; empty if it is not a whole number."
    )
    if to is not None:
        name = "id" if to == parent else f"{nested_prefix(to)}id"
        value = Column(name, pa.int64(), f"The {noun(to)} in it ({to}.id).", references=f"{to}.id")
    entry = Column("entry", pa.string(), "The entry as JSON.", json=True, personal=is_personal(resource))
    words = plural(resource.removeprefix(nested_prefix(parent)))
    comment = f"One row for each entry of the list of {words} that a {noun(parent)} has at an address of its own, which `nested` reads."
    return Table(resource, comment, (owner.name, POSITION.name), (owner, POSITION, value, entry))


def raw_table(resource: str) -> Table:
    """The table `raw/<resource>.parquet`: the records exactly as the service sent them (I6)."""
    personal, parent = is_personal(resource), parent_of(resource)
    of_what = f"entry of the list of a {noun(parent)}, which `nested` reads," if parent else f"record of {resource}"
    owner = Column("owner", pa.string(), "Id of the record that has the list, as text.", required=True)
    return Table(
        f"raw_{resource}",
        f"One row for each {of_what} as the service listed it, byte for byte.",
        (*([owner.name] if parent else []), "id", "page"),
        (
            *([owner] if parent else []),
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


NESTED = (COLLECTION_PUBLICATIONS.name,)
"""Lists at addresses of their own with a described table, which the records may fill themselves."""

RAW_TABLES = tuple(raw_table(resource) for resource in (*STAGED, *NESTED))
"""The raw table of every resource."""
