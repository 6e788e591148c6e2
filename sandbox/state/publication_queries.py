"""Queries over all publications of a tenant."""

from __future__ import annotations

import sqlite3

_AUTHORS = """
    SELECT json_extract(value, '$.name'), json_extract(value, '$.type') FROM publications, json_each(authors)
    WHERE tenant = ? GROUP BY 1, 2 HAVING count(*) >= ? OR min(publications.id) <= ? ORDER BY min(publications.id), 1, 2
"""
_SUBJECTS = """
    SELECT name, 'subject' FROM publication_categories
    JOIN categories ON categories.key = category JOIN publications ON publications.key = publication
    WHERE categories.tenant = ? GROUP BY category HAVING count(*) >= ? OR min(publications.id) <= ? ORDER BY categories.id
"""


def names_in_use(connection: sqlite3.Connection, tenant: int, *, least: int, first: int) -> list[tuple[str, str]]:
    """Returns names of authors and categories, each with person, corporate or subject.

    Those that at least `least` publications have, and those of the first `first` publications.
    """
    authors, subjects = (connection.execute(sql, (tenant, least, first)).fetchall() for sql in (_AUTHORS, _SUBJECTS))
    return [*authors, *subjects]


def ids_of_type(connection: sqlite3.Connection, tenant: int, kind: str) -> list[tuple[int, str | None]]:
    """Returns id and date of every publication of a type, by id."""
    return connection.execute(
        "SELECT id, published_on FROM publications WHERE tenant = ? AND publishable_type = ? ORDER BY id",
        (tenant, kind),
    ).fetchall()
