"""Queries over all publications of a tenant."""

from __future__ import annotations

import sqlite3

_AUTHORS = """
    SELECT json_extract(value, '$.name'), json_extract(value, '$.type')
    FROM records AS publications, json_each(document, '$.authors')
    WHERE tenant = ? AND resource = 'publications'
    GROUP BY 1, 2 HAVING count(*) >= ? OR min(publications.id) <= ? ORDER BY min(publications.id), 1, 2
"""
_SUBJECTS = """
    SELECT json_extract(value, '$.name'), 'subject'
    FROM records AS publications, json_each(document, '$.categories')
    WHERE tenant = ? AND resource = 'publications'
    GROUP BY json_extract(value, '$.id') HAVING count(*) >= ? OR min(publications.id) <= ?
    ORDER BY json_extract(value, '$.id')
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
        "SELECT id, json_extract(document, '$.published_on') FROM records "
        "WHERE tenant = ? AND resource = 'publications' AND json_extract(document, '$.publishable_type') = ? ORDER BY id",
        (tenant, kind),
    ).fetchall()
