"""What a Postgres server complains of, as one of our errors: what was tried, what came back, what to do; without a password (I10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from adbc_driver_manager import Error as CopyError

from pipelines.errors import BookferryError, ConfigurationError, StorageError, TemporaryError

_MOST = 300
"""Characters of what a server says."""

_REFUSED = re.compile(r"authentication failed|does not exist|pg_hba\.conf|no password supplied|not permitted to log in")
"""How a server, or libpq, says that the address is wrong rather than the server away; there is no code for it before a session exists."""

_REMEDIES: dict[str, tuple[type[BookferryError], str]] = {
    "53100": (StorageError, "The disk of the Postgres server is full: free some space there, then run"),
    "53400": (StorageError, "A limit of the Postgres server is used up, such as temp_file_limit: raise it, then run"),
    "53": (TemporaryError, "The Postgres server has no more connections or memory to give: when it has, run"),
    "58": (StorageError, "The disk of the Postgres server reports an error: have it looked at, then run"),
    "42501": (
        ConfigurationError,
        "This user must own what Bookferry made, and be allowed to make schemas (GRANT CREATE ON DATABASE ... TO ...). Then run",
    ),
    "25006": (
        ConfigurationError,
        "The address names a read-only server, a standby perhaps: name the primary one, then run",
    ),
    "2BP01": (
        ConfigurationError,
        "Views of yours that hang on it keep it as it is: drop them, then make them anew after",
    ),
    "08": (TemporaryError, "The connection was lost: when the server is back, run"),
    "57P": (TemporaryError, "The connection was ended by the server or its administrator: when it is back, run"),
    "57014": (TemporaryError, "Somebody canceled the statement. Run"),
    "": (TemporaryError, "The connection was lost: when the server is back, run"),
}
"""SQLSTATE, or how it begins → kind of error and remedy; empty where there is none, because libpq itself gave up."""

KEPT = "What the database held before is untouched"


class UnreachableError(TemporaryError):
    """No connection came about."""


@contextmanager
def unreachable(place: str, secret: str) -> Iterator[None]:
    """Errors of connecting."""
    try:
        yield
    except (psycopg.Error, CopyError) as error:
        said = _said(error, secret)
        if _REFUSED.search(said):
            raise ConfigurationError(
                f"{place} does not let us in: {said}. Correct the variable that postgres_env names, or the server."
            ) from None
        raise UnreachableError(
            f"{place} cannot be reached: {said}. Is the server running, and is the address in the variable that postgres_env names right?"
        ) from None


@contextmanager
def complaints(trying: str, place: str, secret: str, again: str) -> Iterator[None]:
    """Errors of a session while we were `trying` something; `again` is the command that repeats it."""
    try:
        yield
    except (psycopg.Error, CopyError) as error:
        state = getattr(error, "sqlstate", None) or ""
        kind, remedy = _remedy(state)
        code = f" (SQLSTATE {state})" if state else ""
        raise kind(f"{trying} {place} failed: {_said(error, secret)}{code}. {KEPT}. {remedy} `{again}`.") from None


@contextmanager
def midway(trying: str, place: str, again: str) -> Iterator[None]:
    """Further connections that do not come about, after the first one did."""
    try:
        yield
    except UnreachableError as error:
        raise TemporaryError(
            f"{trying} {place} failed: {error} {KEPT}. When the server is back, run `{again}`."
        ) from None


def _remedy(state: str) -> tuple[type[BookferryError], str]:
    for length in (5, 3, 2):
        if (found := _REMEDIES.get(state[:length])) is not None:
            return found
    return StorageError, "Nobody foresaw that: see the server's log, mend it, then run"


def _said(error: Exception, secret: str) -> str:
    """The server's own words on one line; a detail may show somebody's data, so it is left out."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    text = primary or re.sub(r"^.*?(?:ERROR|FATAL):\s+", "", str(error), count=1, flags=re.DOTALL)
    first = " ".join(re.split(r"\n(?:DETAIL|CONTEXT|HINT):|\n\tIs the server", text, maxsplit=1)[0].split()).rstrip(
        ". "
    )
    shown = "".join(one if one.isprintable() else "?" for one in first[:_MOST])
    return shown.replace(secret, "***") if secret else shown
