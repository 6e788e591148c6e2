"""The tables of the state, one definition for SQLite and Postgres.

Columns have types that both understand: SQLite takes BIGINT for INTEGER and DOUBLE PRECISION for REAL.
"""

from __future__ import annotations

from typing import Any, Protocol
from uuid import uuid4

from pipelines.errors import StorageError


class Tables(Protocol):
    """A database whose tables are made, in one transaction."""

    numbered: str
    """The type of a primary key that numbers its rows and never uses a number again."""
    is_shared: bool
    """Whether several machines use it."""

    def execute(self, statement: str, values: Any = ..., /) -> Any: ...  # noqa: D102

    def has_table(self, name: str) -> bool: ...  # noqa: D102


JOURNAL_COLUMNS = (
    "source",
    "target",
    "plan",
    "resource",
    "source_id",
    "kind",
    "part",
    "state",
    "target_id",
    "asset_id",
    "wanted",
    "held",
    "status",
    "message",
    "begun_at",
    "ended_at",
    "sent_at",
)
"""Columns of `migration_writes` that a move of the state copies as they are. Each row belongs to the library `target`."""


def prepare(tables: Tables, place: str) -> None:
    """Create the tables where there are none. Raises `StorageError` where they are those of another version."""
    stored = version_of(tables)
    if stored > VERSION:
        raise StorageError(
            f"The state in {place} was made by a newer Bookferry (version {stored} of its tables; this one knows {VERSION}). Use the newer "
            "one on every machine."
        )
    if stored < VERSION and (stored or tables.has_table("migration_writes")):
        raise StorageError(
            f"The state in {place} was made by an earlier Bookferry (version {stored} of its tables; this one has {VERSION}). Finish or "
            "undo its migrations with that one, then remove the state."
        )
    if stored < VERSION:
        _create(tables)


def version_of(tables: Tables) -> int:
    """The stored version; 0 for a database that has none."""
    if not tables.has_table("state_version"):
        return 0
    row = tables.execute("SELECT version FROM state_version").fetchone()
    return int(row[0]) if row else 0


def _create(tables: Tables) -> None:
    for statement in (*_TABLES, *(_OF_SEVERAL_MACHINES if tables.is_shared else _OF_FILE)):
        tables.execute(statement.format(numbered=tables.numbered))
    if tables.is_shared:
        tables.execute("INSERT INTO state_identity (name) VALUES (?)", (uuid4().hex,))
    tables.execute("INSERT INTO state_version (version) VALUES (?)", (VERSION,))


def check_moved(tables: Tables, place: str) -> None:
    """Raise `StorageError` where the state has left this file for a database."""
    if (moved := tables.execute("SELECT place FROM state_moved").fetchone()) is not None:
        raise StorageError(
            f"The state in {place} was moved to {moved[0]}. Correct `state` in bookferry.toml; nothing was sent."
        )


VERSION = 10
"""The version of the tables that this program uses."""

_TABLES = (
    """CREATE TABLE budget_libraries (
        library TEXT PRIMARY KEY,
        taken BIGINT NOT NULL DEFAULT 0,
        paused_at DOUBLE PRECISION NOT NULL DEFAULT 0,
        paused_until DOUBLE PRECISION NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE budget_slots (
        slot {numbered},
        library TEXT NOT NULL,
        free_at DOUBLE PRECISION NOT NULL
    )""",
    "CREATE INDEX budget_slots_in_time ON budget_slots (library, free_at)",
    """CREATE TABLE migration_writes (
        number {numbered},
        source TEXT NOT NULL, target TEXT NOT NULL, plan TEXT NOT NULL,
        resource TEXT NOT NULL, source_id TEXT NOT NULL, kind TEXT NOT NULL, part TEXT NOT NULL,
        state TEXT NOT NULL,
        target_id TEXT, asset_id BIGINT,
        wanted TEXT, held TEXT,
        status BIGINT, message TEXT,
        begun_at TEXT NOT NULL, ended_at TEXT, sent_at TEXT,
        UNIQUE (source, target, resource, source_id, kind, part, plan)
    )""",
    "CREATE INDEX migration_writes_state ON migration_writes (target, state)",
    "CREATE INDEX migration_writes_target ON migration_writes (target, resource, target_id)",
    "CREATE INDEX migration_writes_plan ON migration_writes (plan, state)",
    """CREATE TABLE leases (
        name TEXT PRIMARY KEY,
        fence BIGINT NOT NULL,              -- grows with each owner
        owner TEXT,                         -- NULL: it is free
        beats BIGINT NOT NULL,              -- moves while its owner lives
        UNIQUE (name, fence)
    )""",
    "CREATE TABLE sign_ins (connection TEXT PRIMARY KEY, document TEXT NOT NULL)",
    "CREATE TABLE state_version (version BIGINT NOT NULL)",
)

_OF_SEVERAL_MACHINES = (
    """CREATE TABLE budget_clocks (
        library TEXT PRIMARY KEY,
        shift DOUBLE PRECISION NOT NULL,    -- seconds that the server's clock is ahead of the budget's time
        seen DOUBLE PRECISION NOT NULL,     -- the budget's time when somebody read it last, or up to a second earlier
        server TEXT NOT NULL                -- which history of which server the time and the slots are from
    )""",
    """CREATE TABLE budget_machines (
        library TEXT NOT NULL,
        machine TEXT NOT NULL,              -- one since its last start, because its clock begins anew then
        asked_at DOUBLE PRECISION NOT NULL, -- by its own clock, the moments just before and after it read the budget's time
        told_at DOUBLE PRECISION NOT NULL,
        seen DOUBLE PRECISION NOT NULL,     -- the budget's time
        PRIMARY KEY (library, machine)
    )""",
    "CREATE TABLE state_identity (name TEXT NOT NULL)",
)
"""The time that machines measure together, and the name of a shared state, by which its machines know each other's unfinished work in a
bucket."""

_OF_FILE = (
    "CREATE TABLE state_moved (place TEXT NOT NULL)",  # where the state is now, once it has left
    """CREATE TRIGGER budget_slot_taken AFTER INSERT ON budget_slots BEGIN
        UPDATE budget_libraries SET taken = taken + 1 WHERE library = NEW.library;
    END""",
    """CREATE TRIGGER budget_slot_freed AFTER DELETE ON budget_slots BEGIN
        UPDATE budget_libraries SET taken = taken - 1 WHERE library = OLD.library;
    END""",
)
"""The file counts the slots of a library in `taken`, because it grants so quickly that there may be a million of them."""
