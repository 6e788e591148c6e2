"""Raw tables of lists at addresses of their own: what their entries lead to, in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.records.tables.registry import leading_key

if TYPE_CHECKING:
    import duckdb

LED_TO = """coalesce(
    json_extract_string(as_json(payload), '$."{key}".id'), json_extract_string(as_json(payload), '$."{key}"'))"""
"""The id of the record to which an entry leads by this key, as text."""

_KEYS = "SELECT DISTINCT unnest(json_keys(as_json(payload))) AS key FROM {entries} ORDER BY key"


def keys_of_entries(database: duckdb.DuckDBPyConnection, entries: str = "file") -> list[str]:
    """All keys of the entries in a view."""
    return [key for (key,) in database.execute(_KEYS.format(entries=entries)).fetchall()]


def leading_key_of(database: duckdb.DuckDBPyConnection, resource: str) -> str:
    """The key of the entries in the view `file` that leads to records, by the keys of all of them."""
    return leading_key(resource, keys_of_entries(database))
