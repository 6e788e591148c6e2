"""The tenants of a state."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass

from sandbox.state.database import Database


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant in the state."""

    key: int
    name: str
    signing_key: bytes


def tenant_names(database: Database) -> list[str]:
    """Returns the tenants of this state, oldest first."""
    with database.transaction() as connection:
        return [name for (name,) in connection.execute("SELECT name FROM tenants ORDER BY key")]


def find_tenant(connection: sqlite3.Connection, name: str) -> TenantRow | None:
    """Returns the tenant of this name, if there is one."""
    row = connection.execute("SELECT key, name, signing_key FROM tenants WHERE name = ?", (name,)).fetchone()
    return TenantRow(*row) if row else None


def add_tenant(connection: sqlite3.Connection, name: str) -> TenantRow:
    """Adds a tenant."""
    values = (name, secrets.token_bytes(32))
    cursor = connection.execute("INSERT INTO tenants (name, signing_key) VALUES (?, ?)", values)
    key = int(cursor.lastrowid or 0)
    return TenantRow(key, *values)


def next_ids(connection: sqlite3.Connection, tenant: int, resource: str, count: int = 1) -> range:
    """Returns the next ``count`` ids of a resource; an id is never used again."""
    (last,) = connection.execute(
        "INSERT INTO sequences (tenant, resource, last) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last = last + excluded.last RETURNING last",
        (tenant, resource, count),
    ).fetchone()
    return range(last - count + 1, last + 1)
