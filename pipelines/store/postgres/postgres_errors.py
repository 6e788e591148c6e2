"""Turns the errors of a Postgres server into ours: what was tried, what came back, what to do; without a password (I10)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from pipelines.errors import BookferryError, ConfigurationError, StorageError, TemporaryError
from pipelines.state.postgres_errors import server_message

_REMEDIES: dict[str, tuple[type[BookferryError], str]] = {
    "53100": (StorageError, "The disk of the Postgres server is full: free some space there, then run"),
    "53400": (StorageError, "A limit of the Postgres server is used up, such as temp_file_limit: raise it, then run"),
    "53": (TemporaryError, "The Postgres server has no free connections or memory: when it has, run"),
    "58": (StorageError, "The disk of the Postgres server reports an error: have it checked, then run"),
    "42501": (
        ConfigurationError,
        "This user must own Bookferry's tables, and may have to be allowed to make schemas (GRANT CREATE ON DATABASE ... TO ...). Then run",
    ),
    "25006": (
        ConfigurationError,
        "The address names a read-only server, a standby perhaps: name the primary one, then run",
    ),
    "2BP01": (
        ConfigurationError,
        "Views of yours depend on it: drop them, then make them anew after",
    ),
    "23503": (
        ConfigurationError,
        "A table of yours refers to rows that are no longer there: drop its foreign key, then run",
    ),
    "08": (TemporaryError, "The connection was lost: when the server is back, run"),
    "57P": (TemporaryError, "The connection was ended by the server or its administrator: when it is back, run"),
    "57014": (TemporaryError, "Somebody canceled the statement. Run"),
}
"""SQLSTATE, or its beginning → kind of error and remedy."""

_OF_THE_CONNECTION = (psycopg.OperationalError, psycopg.InterfaceError)
"""Without a code, these are libpq's own, of its connection; others are of a driver that does not take a value."""

UNTOUCHED = "The previous content of the database is untouched"


@contextmanager
def statement_errors(trying: str, place: str, secret: str, again: str) -> Iterator[None]:
    """Converts errors of statements. `trying` is what was tried, and `again` the command that repeats it."""
    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or ""
        kind, remedy = _remedy(state or ("08" if isinstance(error, _OF_THE_CONNECTION) else ""))
        code = f" (SQLSTATE {state})" if state else ""
        raise kind(
            f"{trying} {place} failed: {server_message(error, secret)}{code}. {UNTOUCHED}. {remedy} `{again}`."
        ) from None


def _remedy(state: str) -> tuple[type[BookferryError], str]:
    for length in (5, 3, 2):
        if (remedy := _REMEDIES.get(state[:length])) is not None:
            return remedy
    return StorageError, "The cause is unknown: see the server's log, solve the problem, then run"
