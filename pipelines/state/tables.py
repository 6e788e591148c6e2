"""The tables of the state, one definition for SQLite and Postgres, and the steps from one version of them to the next.

Columns have types that both understand: SQLite takes BIGINT for INTEGER and DOUBLE PRECISION for REAL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol
from uuid import uuid4

from pipelines.errors import StorageError


class Tables(Protocol):
    """A database whose tables are made or changed, in one transaction."""

    numbered: str
    """The type of a primary key that numbers its rows and never uses a number again."""
    is_shared: bool
    """Whether several machines use it."""

    def execute(self, statement: str, values: Any = ..., /) -> Any: ...  # noqa: D102

    def has_table(self, name: str) -> bool: ...  # noqa: D102


MOVED = {
    "migration_writes": (
        *(
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
            "content",
        ),
        *("wanted", "held", "before", "status", "message", "begun_at", "ended_at", "sent_at", "sent_tick", "repeated"),
    ),
    "request_forms": ("target", "resource", "operation", "alternative", "verdict", "learned_at"),
}
"""Table → its columns, of those that a move of the state copies as they are. Each row belongs to the library `target`."""


def upgrade(tables: Tables, place: str) -> None:
    """Bring the tables to the version of this program. Raises `StorageError` where they are newer."""
    stored = version_of(tables)
    if stored > VERSION:
        raise StorageError(
            f"The state in {place} was made by a newer Bookferry (version {stored} of its tables; this one knows {VERSION}). Use the newer "
            "one on every machine."
        )
    for step in _STEPS[stored:]:
        step(tables)
    if stored < VERSION:
        tables.execute("CREATE TABLE IF NOT EXISTS state_version (version BIGINT NOT NULL)")
        tables.execute("DELETE FROM state_version")
        tables.execute("INSERT INTO state_version (version) VALUES (?)", (VERSION,))


def version_of(tables: Tables) -> int:
    """The stored version; 0 for a database that has none: it is new, or of a Bookferry that did not number its tables."""
    if not tables.has_table("state_version"):
        return 0
    row = tables.execute("SELECT version FROM state_version").fetchone()
    return int(row[0]) if row else 0


def _first(tables: Tables) -> None:
    """The tables of version 0.1.0, and the known forms of requests, which later came without a number."""
    for statement in (
        """CREATE TABLE IF NOT EXISTS budget_libraries (
            library TEXT PRIMARY KEY,
            taken BIGINT NOT NULL DEFAULT 0,
            paused_at DOUBLE PRECISION NOT NULL DEFAULT 0,
            paused_until DOUBLE PRECISION NOT NULL DEFAULT 0
        )""",
        f"""CREATE TABLE IF NOT EXISTS budget_slots (
            slot {tables.numbered},
            library TEXT NOT NULL,
            free_at DOUBLE PRECISION NOT NULL
        )""",
        "CREATE INDEX IF NOT EXISTS budget_slots_in_time ON budget_slots (library, free_at)",
        f"""CREATE TABLE IF NOT EXISTS budget_queue (
            ticket {tables.numbered},
            library TEXT NOT NULL,
            void_at DOUBLE PRECISION NOT NULL
        )""",
        f"""CREATE TABLE IF NOT EXISTS migration_writes (
            number {tables.numbered},
            source TEXT NOT NULL, target TEXT NOT NULL, plan TEXT NOT NULL,
            resource TEXT NOT NULL, source_id BIGINT NOT NULL, kind TEXT NOT NULL, part TEXT NOT NULL,
            state TEXT NOT NULL,
            target_id BIGINT, asset_id BIGINT,
            content TEXT, wanted TEXT, held TEXT, before TEXT,
            status BIGINT, message TEXT,
            begun_at TEXT NOT NULL, ended_at TEXT,
            UNIQUE (source, target, resource, source_id, kind, part, plan)
        )""",
        "CREATE INDEX IF NOT EXISTS migration_writes_state ON migration_writes (target, state)",
        "CREATE INDEX IF NOT EXISTS migration_writes_target ON migration_writes (target, resource, target_id)",
        "CREATE INDEX IF NOT EXISTS migration_writes_plan ON migration_writes (plan, state)",
        """CREATE TABLE IF NOT EXISTS request_forms (
            target TEXT NOT NULL, resource TEXT NOT NULL, operation TEXT NOT NULL, alternative TEXT NOT NULL,
            verdict TEXT NOT NULL, learned_at TEXT NOT NULL,
            PRIMARY KEY (target, resource, operation, alternative)
        )""",
    ):
        tables.execute(statement)
    if not tables.is_shared:
        for statement in _COUNT_IN_FILE:
            tables.execute(statement)


_COUNT_IN_FILE = (
    """CREATE TRIGGER IF NOT EXISTS budget_slot_taken AFTER INSERT ON budget_slots BEGIN
        UPDATE budget_libraries SET taken = taken + 1 WHERE library = NEW.library;
    END""",
    """CREATE TRIGGER IF NOT EXISTS budget_slot_freed AFTER DELETE ON budget_slots BEGIN
        UPDATE budget_libraries SET taken = taken - 1 WHERE library = OLD.library;
    END""",
)
"""The file counts the slots of a library in `taken`, because it grants so quickly that there may be a million of them."""


def _doubts(tables: Tables) -> None:
    """The journal's columns about requests without a response. What version 0.1.0 left in doubt counts as sent when it was begun."""
    columns = {one[0] for one in tables.execute("SELECT * FROM migration_writes LIMIT 0").description}
    if "sent_at" not in columns:
        tables.execute("ALTER TABLE migration_writes ADD COLUMN sent_at TEXT")
        tables.execute("ALTER TABLE migration_writes ADD COLUMN sent_tick DOUBLE PRECISION")
        tables.execute("ALTER TABLE migration_writes ADD COLUMN repeated BIGINT NOT NULL DEFAULT 0")
        tables.execute("UPDATE migration_writes SET sent_at = begun_at WHERE state IN ('intended', 'parked')")


def _shared(tables: Tables) -> None:
    """The moves of libraries between states; and what only a shared state has, the time that machines measure together and the leases."""
    tables.execute(
        """CREATE TABLE state_moves (
            library TEXT PRIMARY KEY,
            move TEXT NOT NULL,
            stage TEXT NOT NULL,                -- 'left' here for the other place, or still 'arriving' here from it
            place TEXT NOT NULL,                -- the other one
            moved_at TEXT NOT NULL
        )"""
    )
    if not tables.is_shared:
        return
    for statement in (
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
        """CREATE TABLE leases (
            name TEXT PRIMARY KEY,
            fence BIGINT NOT NULL,              -- grows with each owner
            owner TEXT NOT NULL,
            since TEXT NOT NULL
        )""",
    ):
        tables.execute(statement)


def _identity(tables: Tables) -> None:
    """The name of a shared state, by which its machines know each other's unfinished work in a bucket."""
    if tables.is_shared:
        tables.execute("CREATE TABLE state_identity (name TEXT NOT NULL)")
        tables.execute("INSERT INTO state_identity (name) VALUES (?)", (uuid4().hex,))


def check_moves(tables: Tables, place: str, libraries: Collection[str] | None = None) -> None:
    """Raise `StorageError` where the state of some libraries (None: of any) has left this place or has not arrived yet."""
    for library, stage, other in tables.execute("SELECT library, stage, place FROM state_moves").fetchall():
        if libraries is not None and library not in libraries:
            continue
        if stage == "left":
            raise StorageError(
                f"The state of {library} in {place} was moved to {other}. Correct `state` in bookferry.toml; nothing was sent."
            )
        raise StorageError(
            f"A move of the state of {library} from {other} to {place} was stopped before its end. Run `bookferry state move` again, as "
            "before: it finishes, or begins anew. Nothing was sent."
        )


def library_key(base_url: str) -> str:
    """The name of a library in `state_moves`, by its address."""
    return base_url.rstrip("/").lower()


_STEPS: tuple[Callable[[Tables], None], ...] = (_first, _doubts, _shared, _identity)

VERSION = len(_STEPS)
"""The version of the tables that this program uses."""
