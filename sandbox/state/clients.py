"""OAuth clients: those that registered themselves and those that an administrator issued."""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sandbox.state.database import Database

_COLUMNS = (
    "clients.id, clients.name, auth_method, redirect_uris, grant_types, response_types, clients.scopes, issued, "
    "pkce, clients.surface, clients.created_at"
)


@dataclass(frozen=True, slots=True)
class Client:
    """An OAuth client. Times in seconds since 1970.

    ``issued``: by an administrator. ``pkce``: whether an issued client has to use it. ``surface``: the target of an issued client's
    tokens; None for a client that registered itself and names it each time.
    """

    id: str
    name: str
    auth_method: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    response_types: tuple[str, ...]
    scopes: tuple[str, ...]
    issued: bool
    pkce: bool
    surface: str | None
    created_at: float

    @property
    def is_public(self) -> bool:
        """Whether the client has no secret."""
        return self.auth_method == "none"


class Clients:
    """The clients of a tenant. The state has the digest of a client's secret only."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant

    def find(self, client_id: str) -> Client | None:
        """Returns the client with this id, unless it is revoked."""
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM clients WHERE tenant = ? AND id = ? AND revoked_at IS NULL",
                (self._tenant, client_id),
            ).fetchone()
        return _client(row) if row else None

    def register(self, client: Client, secret: str | None, *, at_most: int, since: float) -> float | None:
        """Stores a client that registers itself, unless ``at_most`` others registered after ``since``.

        Returns None, or the time of the oldest of those registrations.
        """
        with self._database.write() as connection:
            times = connection.execute(
                "SELECT created_at FROM clients WHERE tenant = ? AND NOT issued AND created_at > ? ORDER BY created_at",
                (self._tenant, since),
            ).fetchall()
            if len(times) >= at_most:
                return float(times[len(times) - at_most][0]) if at_most else client.created_at
            _add(connection, self._tenant, client, secret)
        return None

    def add(self, client: Client, secret: str) -> None:
        """Stores an issued client."""
        with self._database.write() as connection:
            _add(connection, self._tenant, client, secret)

    def has_secret(self, client_id: str, secret: str) -> bool:
        """Returns whether this is the secret of the client."""
        with self._database.read() as connection:
            (stored_digest,) = connection.execute(
                "SELECT secret FROM clients WHERE tenant = ? AND id = ?", (self._tenant, client_id)
            ).fetchone()
        return hmac.compare_digest(stored_digest, digest(secret))

    def revoke(self, client_id: str, now: float) -> None:
        """Ends the client and its grants at once."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE clients SET revoked_at = ? WHERE tenant = ? AND id = ? AND revoked_at IS NULL",
                (now, self._tenant, client_id),
            )
            connection.execute(
                "UPDATE grants SET ended_at = ? WHERE ended_at IS NULL AND client = "
                "(SELECT key FROM clients WHERE tenant = ? AND id = ?)",
                (now, self._tenant, client_id),
            )


def digest(secret: str) -> str:
    """Returns the stored form of a secret or token. They are long and random, so one round of SHA-256 hides them."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _add(connection: sqlite3.Connection, tenant: int, client: Client, secret: str | None) -> None:
    connection.execute(
        "INSERT INTO clients (tenant, id, name, auth_method, redirect_uris, grant_types, response_types, scopes, issued, "
        "pkce, surface, created_at, secret) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            tenant,
            client.id,
            client.name,
            client.auth_method,
            *map(_json_list, (client.redirect_uris, client.grant_types, client.response_types, client.scopes)),
            client.issued,
            client.pkce,
            client.surface,
            client.created_at,
            None if secret is None else digest(secret),
        ),
    )


def _json_list(values: Iterable[str]) -> str:
    return json.dumps(list(values))


def _client(row: tuple[Any, ...]) -> Client:
    identity, name, method, *lists, issued, pkce, surface, created_at = row
    redirects, grants, responses, scopes = (tuple(json.loads(each)) for each in lists)
    return Client(
        id=identity,
        name=name,
        auth_method=method,
        redirect_uris=redirects,
        grant_types=grants,
        response_types=responses,
        scopes=scopes,
        issued=bool(issued),
        pkce=bool(pkce),
        surface=surface,
        created_at=created_at,
    )
