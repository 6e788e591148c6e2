"""Authorities that the service makes by itself, of the authors of a publication that is written.

Manners: ``none``; ``matched``: for each author whose name no authority of the kind has; ``own``: it looks only at authorities that it made
itself, so that one that was created over the API gets a twin of the same name. Names are compared exactly.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from sandbox.state.drafts import Author
from sandbox.state.records import AUTHORITIES, add_rows

_MATCHES = {"matched": "", "own": " AND of_author"}
"""Manner → the condition of an authority that counts as that of an author."""


def make_authorities(connection: sqlite3.Connection, tenant: int, authors: Iterable[Author], manner: str) -> None:
    """Makes the authorities that these authors lack, in their order."""
    if manner == "none":
        return
    for author in dict.fromkeys(authors):
        known = connection.execute(
            f"SELECT 1 FROM authorities WHERE tenant = ? AND name = ? AND kind = ?{_MATCHES[manner]}",
            (tenant, author.name, author.type),
        ).fetchone()
        if known is None:
            row = {"name": author.name, "kind": author.type, "variants": []}
            (number,) = add_rows(connection, tenant, AUTHORITIES, [row])
            connection.execute("UPDATE authorities SET of_author = 1 WHERE tenant = ? AND id = ?", (tenant, number))
