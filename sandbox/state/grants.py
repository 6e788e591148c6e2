"""What people granted to clients, and the codes and tokens that came of it. Every code and token is kept as a digest only.

A grant is one consent: the document calls it a connection. It begins with a code; the code becomes a pair of tokens; a
refresh makes a new pair out of an old one. Each step is one transaction, so that two requests at once are one after the
other. Rules come in as functions; when one raises, nothing has happened.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sandbox.state.accounts import User
from sandbox.state.clients import digest
from sandbox.state.database import Database


@dataclass(frozen=True, slots=True)
class Grant:
    """``client_id`` is None for a token that was ordered without one. Times in seconds since 1970."""

    key: int
    client_id: str | None
    person: User
    scopes: tuple[str, ...]
    surface: str
    created_at: float
    ended: bool


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A grant about to be made."""

    client_id: str | None
    person: User
    scopes: tuple[str, ...]
    surface: str


@dataclass(frozen=True, slots=True)
class CodeDetails:
    """What an authorization code stands for. ``resource`` is the one the authorization named, if it did."""

    redirect_uri: str
    challenge: str | None
    resource: str | None
    expires_at: float


@dataclass(frozen=True, slots=True)
class TokenPair:
    """A pair of tokens as its refresh token finds it."""

    key: int
    grant: Grant
    refreshed_at: float | None
    ended: bool


@dataclass(frozen=True, slots=True)
class Tokens:
    """New tokens on their way to the caller, as they are. ``refresh`` is None for a token that cannot be renewed."""

    access: str
    refresh: str | None
    scopes: tuple[str, ...]
    expires_at: float


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What a rule makes of a refresh token: new tokens, and whether the old pair ends now."""

    tokens: Tokens
    ends_old_pair: bool


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What an access token is good for. ``ended``: by a refresh, or because the grant has ended."""

    grant: Grant
    scopes: tuple[str, ...]
    expires_at: float
    ended: bool


_GRANT = (
    "grants.key, clients.id, users.id, users.email, users.name, users.roles, grants.scopes, grants.surface, "
    "grants.created_at, grants.ended_at IS NOT NULL"
)
_JOINED = "grants JOIN users ON users.key = grants.user LEFT JOIN clients ON clients.key = grants.client"


class Grants:
    """The grants of one tenant."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant

    def open(self, wanted: NewGrant, code: str, details: CodeDetails, now: float) -> None:
        """Begin a grant with a code."""
        with self._database.write() as connection:
            key = self._add_grant(connection, wanted, now)
            connection.execute(
                "INSERT INTO codes (digest, grant, redirect_uri, challenge, resource, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                (digest(code), key, details.redirect_uri, details.challenge, details.resource, details.expires_at),
            )

    def grant_directly(self, wanted: NewGrant, tokens: Tokens, now: float) -> None:
        """Begin a grant with tokens, without a code."""
        with self._database.write() as connection:
            _add_pair(connection, self._add_grant(connection, wanted, now), tokens, parent=None)

    def redeem(self, code: str, issue: Callable[[CodeDetails, Grant], Tokens], now: float) -> Tokens | None:
        """The tokens for a code, which works once; None for a code that is not good.

        A code that comes again ends its grant: one of the two who know it has no right to.
        """
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT redirect_uri, challenge, resource, expires_at, used_at IS NOT NULL, grant "
                "FROM codes WHERE digest = ?",
                (digest(code),),
            ).fetchone()
            grant = self._grant(connection, row[5]) if row else None
            if row is None or grant is None or grant.ended:
                return None
            if row[4]:
                _end(connection, grant.key, now)
                return None
            tokens = issue(CodeDetails(*row[:4]), grant)
            connection.execute("UPDATE codes SET used_at = ? WHERE digest = ?", (now, digest(code)))
            _add_pair(connection, grant.key, tokens, parent=None)
            return tokens

    def refresh(self, refresh: str, renewal: Callable[[TokenPair], RefreshResult | None], now: float) -> Tokens | None:
        """New tokens for a refresh token; None for one that is not known, or when the rule said so and the grant ended."""
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT key, grant, refreshed_at, ended_at IS NOT NULL FROM token_pairs WHERE refresh = ?",
                (digest(refresh),),
            ).fetchone()
            grant = self._grant(connection, row[1]) if row else None
            if row is None or grant is None:
                return None
            done = renewal(TokenPair(row[0], grant, row[2], bool(row[3]) or grant.ended))
            if done is None:
                _end(connection, grant.key, now)
                return None
            connection.execute(
                "UPDATE token_pairs SET refreshed_at = coalesce(refreshed_at, ?), ended_at = CASE WHEN ? THEN ? END "
                "WHERE key = ?",
                (now, done.ends_old_pair, now, row[0]),
            )
            _add_pair(connection, grant.key, done.tokens, parent=row[0])
            return done.tokens

    def access(self, token: str) -> AccessToken | None:
        """What an access token is good for."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT grant, access_scopes, access_expires_at, ended_at IS NOT NULL FROM token_pairs WHERE access = ?",
                (digest(token),),
            ).fetchone()
            grant = self._grant(connection, row[0]) if row else None
        if row is None or grant is None:
            return None
        return AccessToken(grant, tuple(json.loads(row[1])), row[2], bool(row[3]) or grant.ended)

    def end_pairs_before(self, token: str, now: float) -> None:
        """End every pair out of which the pair of this access token was made, if one of them is still good."""
        ancestors = (
            "WITH RECURSIVE before (key) AS (SELECT parent FROM token_pairs WHERE access = ? "
            "UNION SELECT parent FROM token_pairs JOIN before ON token_pairs.key = before.key) "
        )
        alive = (
            f"{ancestors}SELECT 1 FROM token_pairs WHERE key IN (SELECT key FROM before) AND ended_at IS NULL LIMIT 1"
        )
        with self._database.read() as connection:
            if connection.execute(alive, (digest(token),)).fetchone() is None:
                return
        with self._database.write() as connection:
            connection.execute(
                f"{ancestors}UPDATE token_pairs SET ended_at = ? WHERE key IN (SELECT key FROM before) AND ended_at IS NULL",
                (digest(token), now),
            )

    def active(self) -> list[Grant]:
        """The grants that have not ended, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {_GRANT} FROM {_JOINED} WHERE grants.tenant = ? AND grants.ended_at IS NULL ORDER BY grants.key",
                (self._tenant,),
            ).fetchall()
        return [_grant(row) for row in rows]

    def end(self, keys: Collection[int], now: float) -> None:
        """End these grants: their codes and tokens are good for nothing from now on."""
        with self._database.write() as connection:
            for key in keys:
                _end(connection, key, now)

    def _grant(self, connection: sqlite3.Connection, key: int) -> Grant | None:
        row = connection.execute(
            f"SELECT {_GRANT} FROM {_JOINED} WHERE grants.key = ? AND grants.tenant = ?", (key, self._tenant)
        ).fetchone()
        return _grant(row) if row else None

    def _add_grant(self, connection: sqlite3.Connection, wanted: NewGrant, now: float) -> int:
        cursor = connection.execute(
            "INSERT INTO grants (tenant, client, user, scopes, surface, created_at) "
            "SELECT tenant, (SELECT key FROM clients WHERE tenant = users.tenant AND id = ?), key, ?, ?, ? "
            "FROM users WHERE tenant = ? AND id = ?",
            (wanted.client_id, json.dumps(wanted.scopes), wanted.surface, now, self._tenant, wanted.person.id),
        )
        return int(cursor.lastrowid or 0)


def _add_pair(connection: sqlite3.Connection, grant: int, tokens: Tokens, *, parent: int | None) -> None:
    connection.execute(
        "INSERT INTO token_pairs (grant, parent, access, access_scopes, access_expires_at, refresh) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (
            grant,
            parent,
            digest(tokens.access),
            json.dumps(tokens.scopes),
            tokens.expires_at,
            None if tokens.refresh is None else digest(tokens.refresh),
        ),
    )


def _end(connection: sqlite3.Connection, grant: int, now: float) -> None:
    connection.execute("UPDATE grants SET ended_at = ? WHERE key = ? AND ended_at IS NULL", (now, grant))


def _grant(row: tuple[int, str | None, int, str, str, str, str, str, float, int]) -> Grant:
    key, client, user, email, name, roles, scopes, surface, created_at, ended = row
    person = User(user, email, name, tuple(json.loads(roles)))
    return Grant(key, client, person, tuple(json.loads(scopes)), surface, created_at, bool(ended))
