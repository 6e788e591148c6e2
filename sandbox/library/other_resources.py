"""Users, locations, hard copies, authorities, collections and tasks of the real library.

The people are invented; everything else is derived from the records. The same records always give the same resources.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import cycle

from sandbox.state.publication_queries import ids_of_type, names_in_use
from sandbox.state.records import Document, Records

_PEOPLE: tuple[tuple[str, list[str]], ...] = (
    ("Marta Quillfeather", ["librarian", "admin"]),
    ("Tobias Inkwell", ["librarian"]),
    ("Ngozi Shelfmark", ["librarian"]),
    ("Ana-Lucía Péndola", ["librarian"]),
    ("Henrik Lesesaal", []),
    ("Yuki Shorui", []),
    ("Bartholomew Overdue", []),
)
_LOCATIONS = (
    ("Main building, ground floor", "Open shelves"),
    ("Main building, first floor", "Open shelves"),
    ("Reading room", "For use in the library only"),
    ("Closed stacks", None),
    ("Branch by the river", "Opens at noon"),
    ("Main bldg, 1st floor", "The same as the first floor: to be merged"),
)
_STATUSES = ("available", "available", "on_loan", "available", "missing", "available", "on_loan")
_MIN_USES = 3  # a name in this many publications gets an authority record, and
_FIRST_PUBLICATIONS = 20  # so does each name in the first publications
_COLLECTED = 20


def add_other_resources(connection: sqlite3.Connection, tenant: int, records: Records) -> None:
    """Adds the other resources to a library that has its publications and its first account."""
    people = records.of("users").add([_person(*person) for person in _PEOPLE])
    shelves = records.of("locations").add([{"name": name, "note": note} for name, note in _LOCATIONS])
    records.of("hard_copies").add(list(_copies(connection, tenant, shelves)))
    names = names_in_use(connection, tenant, least=_MIN_USES, first=_FIRST_PUBLICATIONS)
    records.of("authorities").add([{"name": name, "kind": kind, "variants": []} for name, kind in names])
    records.of("collections").add(list(_collections(connection, tenant)))
    records.of("tasks").add(list(_tasks(connection, tenant, people)))


def _person(name: str, roles: list[str]) -> Document:
    address = name.lower().replace(" ", ".").translate(str.maketrans("íéáóú", "ieaou"))
    return {"email": f"{address}@library.example", "name": name, "roles": roles, "avatar": None}


def _copies(connection: sqlite3.Connection, tenant: int, shelves: range) -> Iterator[Document]:
    """Yields a copy of each book, and a second one of every tenth."""
    places, statuses = cycle(shelves), cycle(_STATUSES)
    for number, (publication, published_on) in enumerate(ids_of_type(connection, tenant, "Book"), start=1):
        for copy in range(1, 3 if number % 10 == 0 else 2):
            yield {
                "publication_id": publication,
                "location_id": next(places) if number % 25 else None,
                "barcode": f"B{publication:07}{copy}",
                "call_number": f"{(published_on or 'n.d.')[:4]} {publication:05}",
                "status": next(statuses),
                "acquired_on": published_on and max(published_on, "1995-01-01"),
                "note": None,
            }


def _collections(connection: sqlite3.Connection, tenant: int) -> Iterator[Document]:
    for kind, name in (("Book", "Recommended books"), ("Report", "Reports to digitise"), ("Article", "Reading list")):
        numbers = [number for number, _ in ids_of_type(connection, tenant, kind)][:_COLLECTED]
        yield {
            "name": name,
            "description": f"The first of kind {kind}" if numbers else None,
            "publication_ids": numbers,
        }
    yield {"name": "New this month", "description": None, "publication_ids": []}


def _tasks(connection: sqlite3.Connection, tenant: int, people: range) -> Iterator[Document]:
    empty = dict.fromkeys(("title", "description", "publication_id", "assignee_id", "due_on", "completed_at"))
    reports = [number for number, _ in ids_of_type(connection, tenant, "Report")][:3]
    for number, assignee in zip(reports, cycle(people[:3])):
        title = f"Digitise report {number}"
        yield {**empty, "title": title, "publication_id": number, "assignee_id": assignee, "due_on": "2026-12-15"}
    title = "Merge the two names of the first floor"
    yield {**empty, "title": title, "description": "See the locations", "assignee_id": people[0]}
    yield {**empty, "title": "Order new bookends", "completed_at": "2026-09-01T08:30:00Z"}
