"""The tables of users, hard copies, locations, collections, authorities and tasks. They are staged from these descriptions."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from pipelines.records.tables.description import Column, Table
from pipelines.records.tables.shared_columns import ID, POSITION, RESIDUE, SHA256


def _record_table(name: str, comment: str, *columns: Column) -> Table:
    """A table with one row for each record of a resource: the known fields, and everything else as JSON."""
    return Table(name, comment, ("id",), (ID, *columns, RESIDUE, SHA256))


def _list_table(name: str, comment: str, owner: Column, value: Column, entries: str) -> Table:
    """A table with one row for each entry of a list in the records of a resource. An entry is the value, or an object with it."""
    value = replace(value, path=("id" if value.type == pa.int64() else "name",))
    return Table(
        name, comment, (owner.name, POSITION.name), (owner, POSITION, value), entries=entries, plain=value.name
    )


_NOTE = Column("note", pa.string(), "Note, as the library wrote it.")

USERS = Table(
    "users",
    "One row for each person with an account in the library; v2 has no list of them.",
    ("id",),
    (
        ID,
        Column("email", pa.string(), "E-mail address, with which the person signs in.", personal=True),
        Column("name", pa.string(), "Name.", personal=True),
        replace(RESIDUE, personal=True),
        replace(SHA256, personal=True),  # somebody who guesses a record could confirm the guess by its hash
    ),
)
USER_ROLES = _list_table(
    "user_roles",
    "One row for each role of a user.",
    Column("user_id", pa.int64(), "The user who has the role (users.id).", references="users.id"),
    Column("role", pa.string(), "Name of the role, for example librarian or admin."),
    "roles",
)
HARD_COPIES = _record_table(
    "hard_copies",
    "One row for each copy on a shelf.",
    Column(
        "publication_id", pa.int64(), "The publication of the copy (publications.id).", references="publications.id"
    ),
    Column("location_id", pa.int64(), "Location of the copy (locations.id).", references="locations.id"),
    Column("barcode", pa.string(), "Barcode on the copy."),
    Column("call_number", pa.string(), "Call number: place on the shelf."),
    Column("status", pa.string(), "State of the copy, in the service's own word."),
    Column(
        "acquired_on",
        pa.date32(),
        "Day on which the library acquired the copy; empty where the service's value is not a date.",
    ),
    _NOTE,
)
LOCATIONS = _record_table(
    "locations",
    "One row for each location of hard copies.",
    Column("name", pa.string(), "Name of the location."),
    _NOTE,
)
COLLECTIONS = _record_table(
    "collections",
    "One row for each collection of publications.",
    Column("name", pa.string(), "Name of the collection."),
    Column("description", pa.string(), "Description of the collection."),
)
COLLECTION_PUBLICATIONS = _list_table(
    "collection_publications",
    "One row for each publication in a collection.",
    Column("collection_id", pa.int64(), "The collection (collections.id).", references="collections.id"),
    Column("publication_id", pa.int64(), "The publication in it (publications.id).", references="publications.id"),
    "publication_ids",
)
AUTHORITIES = _record_table(
    "authorities",
    "One row for each authority: the standard name of a person, body or subject.",
    Column("name", pa.string(), "The authorised name."),
    Column("kind", pa.string(), "Kind of name: person, corporate or subject, or the service's own word."),
)
AUTHORITY_VARIANTS = _list_table(
    "authority_variants",
    "One row for each other form of an authority's name.",
    Column("authority_id", pa.int64(), "The authority (authorities.id).", references="authorities.id"),
    Column("variant", pa.string(), "The other form of the name."),
    "variants",
)
TASKS = _record_table(
    "tasks",
    "One row for each task.",
    Column("title", pa.string(), "Title of the task."),
    Column("description", pa.string(), "Details of the task."),
    Column(
        "publication_id", pa.int64(), "The publication of the task (publications.id).", references="publications.id"
    ),
    Column("assignee_id", pa.int64(), "The user who does the task (users.id).", references="users.id"),
    Column("due_on", pa.date32(), "Day on which the task is due; empty where the service's value is not a date."),
    Column("completed_at", pa.string(), "Time of completion, as the service writes it; empty while the task is open."),
)
