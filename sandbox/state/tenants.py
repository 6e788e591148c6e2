"""The tenants of a state."""

from __future__ import annotations

import secrets
import sqlite3


def add_tenant(connection: sqlite3.Connection, name: str) -> tuple[int, bytes]:
    """Adds a tenant. Returns its key, and the key that signs its download addresses."""
    signing_key = secrets.token_bytes(32)
    cursor = connection.execute("INSERT INTO tenants (name, signing_key) VALUES (?, ?)", (name, signing_key))
    return int(cursor.lastrowid or 0), signing_key


def next_ids(connection: sqlite3.Connection, tenant: int, resource: str, count: int = 1) -> range:
    """Returns the next ``count`` ids of a resource; an id is never used again."""
    (last,) = connection.execute(
        "INSERT INTO sequences (tenant, resource, last) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last = last + excluded.last RETURNING last",
        (tenant, resource, count),
    ).fetchone()
    return range(last - count + 1, last + 1)
