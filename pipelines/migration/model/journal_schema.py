"""The table of the journal in `state.db`, and what turns a table of version 0.1 into it."""

from __future__ import annotations

import sqlite3

LOOKED_AT = 2
"""`repeated` of an entry: a last look found no twin. 1: that look is still to come. 0: it was never repeated."""

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS migration_writes (
        number INTEGER PRIMARY KEY,
        source TEXT NOT NULL, target TEXT NOT NULL, plan TEXT NOT NULL,
        resource TEXT NOT NULL, source_id INTEGER NOT NULL, kind TEXT NOT NULL, part TEXT NOT NULL,
        state TEXT NOT NULL,
        target_id INTEGER, asset_id INTEGER,
        content TEXT, wanted TEXT, held TEXT, before TEXT,
        status INTEGER, message TEXT,
        begun_at TEXT NOT NULL, ended_at TEXT,
        UNIQUE (source, target, resource, source_id, kind, part, plan)
    )""",
    "CREATE INDEX IF NOT EXISTS migration_writes_state ON migration_writes (target, state)",
    "CREATE INDEX IF NOT EXISTS migration_writes_target ON migration_writes (target, resource, target_id)",
    "CREATE INDEX IF NOT EXISTS migration_writes_plan ON migration_writes (plan, state)",
)

COLUMNS = (
    "number, plan, resource, source_id, kind, part, state, target_id, asset_id, content, wanted, held, before, status, message, "
    "begun_at, ended_at, sent_at, sent_tick, repeated"
)


def upgrade(db: sqlite3.Connection) -> None:
    """Add the columns that version 0.1 did not have. What it left in doubt counts as sent when it was begun."""
    db.execute("BEGIN IMMEDIATE")
    names = {row[1] for row in db.execute("PRAGMA table_info(migration_writes)")}
    if "sent_at" not in names:
        db.execute("ALTER TABLE migration_writes ADD COLUMN sent_at TEXT")
        db.execute("ALTER TABLE migration_writes ADD COLUMN sent_tick REAL")
        db.execute("ALTER TABLE migration_writes ADD COLUMN repeated INTEGER NOT NULL DEFAULT 0")
        db.execute("UPDATE migration_writes SET sent_at = begun_at WHERE state IN ('intended', 'parked')")
    db.execute("COMMIT")
