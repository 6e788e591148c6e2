"""Grants of people to clients, with their codes and tokens. The state has digests of codes and tokens only.

A grant is one consent; docs/service.md calls it a connection. It starts with a code; the code becomes a pair of tokens; a refresh
makes a new pair of an old one. Each step is a transaction, so concurrent requests are serialised. Rules are functions: if one
raises, nothing has changed.
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
    """``client_id`` is None for a token of the control endpoint. Times in seconds since 1970."""

    key: int
    client_id: str | None
    person: User
    scopes: tuple[str, ...]
    surface: str
    created_at: float
    ended: bool


@dataclass(frozen=True, slots=True)
class NewGrant:
    """A grant before it is stored."""

    client_id: str | None
    person: User
    scopes: tuple[str, ...]
    surface: str


@dataclass(frozen=True, slots=True)
class CodeDetails:
    """The details of an authorization code. ``resource`` is that of the authorization, if it had one."""

    redirect_uri: str
    challenge: str | None
    resource: str | None
    expires_at: float


@dataclass(frozen=True, slots=True)
class TokenPair:
    """A pair of tokens, found by its refresh token."""

    key: int
    grant: Grant
    refreshed_at: float | None
    ended: bool


@dataclass(frozen=True, slots=True)
class Tokens:
    """New tokens in plain text. ``refresh`` is None for a token that cannot be refreshed."""

    access: str
    refresh: str | None
    scopes: tuple[str, ...]
    expires_at: float


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """New tokens, and whether the old pair ends now."""

    tokens: Tokens
    ends_old_pair: bool


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A known access token. ``ended``: by a refresh, or with its grant."""

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
    """The grants of a tenant."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant

    def open(self, new_grant: NewGrant, code: str, details: CodeDetails, now: float) -> None:
        """Starts a grant with a code."""
        with self._database.write() as connection:
            key = self._add_grant(connection, new_grant, now)
            connection.execute(
                "INSERT INTO codes (digest, grant, redirect_uri, challenge, resource, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                (digest(code), key, details.redirect_uri, details.challenge, details.resource, details.expires_at),
            )

    def grant_directly(self, new_grant: NewGrant, tokens: Tokens, now: float) -> None:
        """Starts a grant with tokens, without a code."""
        with self._database.write() as connection:
            _add_pair(connection, self._add_grant(connection, new_grant, now), tokens, parent=None)

    def redeem(self, code: str, issue: Callable[[CodeDetails, Grant], Tokens], now: float) -> Tokens | None:
        """Returns the tokens of a code, which works once; None for an invalid code.

        A code that is used twice ends its grant, because one of its two users is not entitled to it.
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
        """Returns the new tokens for a refresh token; None for an unknown one, or if the rule ended the grant."""
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
        """Returns the details of an access token."""
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
        """Ends every older pair of the grant's chain, if one of them is still valid."""
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
        """Returns the grants that have not ended, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {_GRANT} FROM {_JOINED} WHERE grants.tenant = ? AND grants.ended_at IS NULL ORDER BY grants.key",
                (self._tenant,),
            ).fetchall()
        return [_grant(row) for row in rows]

    def end(self, keys: Collection[int], now: float) -> None:
        """Ends grants with their codes and tokens."""
        with self._database.write() as connection:
            for key in keys:
                _end(connection, key, now)

    def _grant(self, connection: sqlite3.Connection, key: int) -> Grant | None:
        row = connection.execute(
            f"SELECT {_GRANT} FROM {_JOINED} WHERE grants.key = ? AND grants.tenant = ?", (key, self._tenant)
        ).fetchone()
        return _grant(row) if row else None

    def _add_grant(self, connection: sqlite3.Connection, new_grant: NewGrant, now: float) -> int:
        cursor = connection.execute(
            "INSERT INTO grants (tenant, client, user, scopes, surface, created_at) "
            "SELECT tenant, (SELECT key FROM clients WHERE tenant = users.tenant AND id = ?), key, ?, ?, ? "
            "FROM users WHERE tenant = ? AND id = ?",
            (
                new_grant.client_id,
                json.dumps(new_grant.scopes),
                new_grant.surface,
                now,
                self._tenant,
                new_grant.person.id,
            ),
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
