"""The address of a record's page in the library's own web interface, where the records show it.

The service's document does not say where these pages are. A person may write it into bookferry.toml (`record_url`), which counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.store.parquet import literal

if TYPE_CHECKING:
    import duckdb

MEMBERS = ("html_url", "web_url", "permalink", "url")
"""Members of a record that may have the address of its page; the plainest names come first."""

SAMPLE = 1000
"""Records that are looked at; two at least have to show an address, because a number may be in one of them by chance."""


def shown_record_url(database: duckdb.DuckDBPyConnection, raw: str, base_url: str) -> str | None:
    """The address of records' pages, with `{id}` for their number, if the first records that show one agree on it.

    `raw`: the SQL source of a raw table.
    """
    paths = ", ".join(literal(f"$.{member}") for member in MEMBERS)
    first = f"SELECT id, payload FROM {raw} WHERE id IS NOT NULL LIMIT {SAMPLE}"  # noqa: S608  names of ours
    records = database.execute(f"SELECT id, TRY(json_extract_string(payload, [{paths}])) FROM ({first})").fetchall()  # noqa: S608
    for place in range(len(MEMBERS)):
        shown = [(record, values[place]) for record, values in records if values and values[place]]
        templates = {_template(record, address, base_url) for record, address in shown}
        if len(shown) > 1 and len(templates) == 1 and (template := templates.pop()):
            return template
    return None


def _template(record: int, address: str, base_url: str) -> str:
    """An address with `{id}` for its last step; empty where that is not the record's number, or the page is not this library's.

    What is below `/api` is not for people, and an address with a query is often that of a file.
    """
    before, _, number = address.removesuffix("/").rpartition("/")
    plain = address.isascii() and address.isprintable() and not set(address) & set("{}?#@\\ ")
    own = before.startswith(f"{base_url}/") and not before.startswith(f"{base_url}/api/")
    return f"{before}/{{id}}{'/' * address.endswith('/')}" if plain and own and number == str(record) else ""
