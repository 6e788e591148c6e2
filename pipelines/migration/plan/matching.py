"""Which record of the source is which record of the target: set against set in DuckDB, never record by record (trap C).

In order: what a person decided; what earlier plans wrote, as the journal says; the id, where both sides are one library; identifiers that
identify (trap A8); all of the content; title, year and first author. All of it spills to disk, so that a million records are no Python
objects (I11).
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

BY_KEYS = "match_by_keys"

_STAGES = (
    ("identifier", "FROM {side}_keys", False),
    ("content", "SELECT id, 'content' AS type, content AS value FROM {side}", True),
    (
        "fingerprint",
        "SELECT id, 'fingerprint' AS type, fingerprint AS value FROM {side} WHERE fingerprint IS NOT NULL",
        True,
    ),
)
"""Name, keys of a side, and whether the stage gives way to identifiers that disagree."""


def match(database: duckdb.DuckDBPyConnection) -> None:
    """Make the tables `matched` and `unclear` from what sql/migration/match.sql names; who is in neither is new."""
    _run(database, "match")
    for name, keys, gives_way in _STAGES:
        for side in ("source", "target"):
            database.execute(f"CREATE OR REPLACE TEMP VIEW stage_{side} AS {keys.format(side=side)}")
        database.execute("CREATE OR REPLACE TABLE stage AS SELECT ? AS name, ? AS gives_way", (name, gives_way))
        _run(database, BY_KEYS)


def _run(database: duckdb.DuckDBPyConnection, name: str) -> None:
    database.execute(resources.files("sql").joinpath("migration", f"{name}.sql").read_text(encoding="utf-8"))
