"""Matches the publications of the source with those of the target: whole sets in DuckDB, never record by record (I11).

The evidence in its order: a person's decision; what earlier plans wrote, according to the journal; the id, within one library; identifiers
that identify a publication (I8); the whole content; title, year and first author. DuckDB spills to disk, so that memory does not grow with
the library.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_STAGES = (
    ("identifier", "FROM {side}_keys", False),
    ("content", "SELECT id, 'content' AS type, content AS value FROM {side}", True),
    (
        "fingerprint",
        "SELECT id, 'fingerprint' AS type, fingerprint AS value FROM {side} WHERE fingerprint IS NOT NULL",
        True,
    ),
)
"""Name, SQL of the keys of a side, and whether contradicting identifiers make a pair two works."""


def match(database: duckdb.DuckDBPyConnection) -> None:
    """Make the tables `matched` and `ambiguous` from the input of sql/migration/match.sql. A record in neither is new."""
    _run(database, "match")
    for name, keys, gives_way in _STAGES:
        for side in ("source", "target"):
            database.execute(f"CREATE OR REPLACE TEMP VIEW stage_{side} AS {keys.format(side=side)}")
        database.execute("CREATE OR REPLACE TABLE stage AS SELECT ? AS name, ? AS gives_way", (name, gives_way))
        _run(database, "match_by_keys")


def _run(database: duckdb.DuckDBPyConnection, name: str) -> None:
    database.execute(resources.files("sql").joinpath("migration", f"{name}.sql").read_text(encoding="utf-8"))
