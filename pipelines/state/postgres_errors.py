"""Turns the errors of psycopg about the shared state into ours: what was tried, what came back, what to do; without a password (I10)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from pipelines.errors import BookferryError, ConfigurationError, StorageError

if TYPE_CHECKING:
    import psycopg

WRONG_ADDRESS = re.compile(
    r"authentication failed|does not exist|pg_hba\.conf|no password supplied|not permitted to log in"
)
"""Messages that mean a wrong address rather than an absent server. Before a session exists there is no code for it."""

_REMEDIES = {
    "42501": "This user must own Bookferry's tables, and may have to be allowed to make a schema (GRANT CREATE ON DATABASE ... TO ...).",
    "25006": "The address names a read-only server, a standby perhaps: name the primary one.",
    "55P03": "Another session keeps it locked: it is given up after half a minute. Run the command again.",
    "53": "The server has no free connections, memory or disk: when it has, run the command again.",
}
"""SQLSTATE, or its beginning → what to do."""

_LATER = "Is the server running? When it is, run the command again: nothing was sent without its permission."

MOST_CHARACTERS = 300
"""Characters of a server's message."""


_SHORTEST = 4
"""Characters of a secret that is masked."""


def connection_error(what: str, secret: str, error: psycopg.Error, kind: type[BookferryError]) -> BookferryError:
    """Returns the error of a connection that could not be opened, of this kind unless the address is wrong. `what`: with its place."""
    message = server_message(error, secret)
    if WRONG_ADDRESS.search(str(error)):
        return ConfigurationError(
            f"{what} refuses the connection: {message}. Correct the variable that postgres_env names, or the server."
        )
    return kind(
        f"{what} cannot be reached: {message}. Is the server running, and is the address in the variable of postgres_env right?"
    )


def statement_error(place: str, secret: str, error: psycopg.Error) -> StorageError:
    """Returns the error of a statement."""
    code = error.sqlstate or ""
    remedy = _REMEDIES.get(code) or _REMEDIES.get(code[:2]) or _LATER
    return StorageError(f"The state in {place} could not be read or written: {server_message(error, secret)}. {remedy}")


def server_message(error: psycopg.Error, secret: str) -> str:
    """The server's message on one line. Its detail is left out, because it may have somebody's data."""
    text = error.diag.message_primary or re.sub(r"^.*?(?:ERROR|FATAL):\s+", "", str(error), count=1, flags=re.DOTALL)
    line = " ".join(re.split(r"\n(?:DETAIL|CONTEXT|HINT):|\n\tIs the server", text, maxsplit=1)[0].split()).rstrip(". ")
    return printable(without(line, secret)[:MOST_CHARACTERS])


def printable(text: str) -> str:
    """A text of a server or its users with nothing that a terminal obeys."""
    return "".join(character if character.isprintable() else "?" for character in text)


def without(text: str, secret: str) -> str:
    """A message without a secret that a server repeats. A mask in place of a short one would tell it: it is in many words."""
    for spelling in (secret, " ".join(secret.split()), quote(secret, safe="", errors="surrogatepass")):
        text = text.replace(spelling, "***") if len(spelling) >= _SHORTEST else text
    return text
