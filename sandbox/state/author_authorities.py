"""Authorities that the service makes by itself, of the authors of a publication that is written.

Manners: ``none``; ``matched``: for each author whose name no authority of the kind has; ``own``: it looks only at authorities that it made
itself, so that one that was created over the API gets a twin of the same name. Names are compared exactly.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from sandbox.state.records import Document, add_records

_MATCHES = {"matched": "", "own": " AND json_extract(document, '$.of_author')"}
"""Manner → the condition of an authority that counts as that of an author."""


def make_authorities(connection: sqlite3.Connection, tenant: int, authors: Iterable[Document], manner: str) -> None:
    """Makes the authorities that these authors lack, in their order."""
    if manner == "none":
        return
    for name, kind in dict.fromkeys((author["name"], author["type"]) for author in authors):
        authority = connection.execute(
            "SELECT 1 FROM records WHERE tenant = ? AND resource = 'authorities' AND json_extract(document, '$.name') = ? "
            f"AND json_extract(document, '$.kind') = ?{_MATCHES[manner]}",
            (tenant, name, kind),
        ).fetchone()
        if authority is None:
            document = {"name": name, "kind": kind, "variants": [], "of_author": True}
            add_records(connection, tenant, "authorities", [document])
