"""Users and their browser sessions."""

from __future__ import annotations

import hmac
import json
import secrets
import sqlite3
from dataclasses import dataclass

from sandbox.state.database import Database
from sandbox.state.records import add_records

_COLUMNS = "users.id, users.email, users.name, users.roles"


@dataclass(frozen=True, slots=True)
class User:
    """A person or a technical account of a tenant."""

    id: int
    email: str
    name: str
    roles: tuple[str, ...]


class Accounts:
    """The users of one tenant."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant

    def with_password(self, email: str, password: str, default: str) -> User | None:
        """Returns the user with these credentials. Who has no password of their own has ``default``."""
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS}, password FROM users WHERE tenant = ? AND email = ?", (self._tenant, email)
            ).fetchone()
        if row is None:
            return None
        own = default if row[-1] is None else row[-1]
        if not hmac.compare_digest(own.encode(), password.encode()):
            return None
        return _user(row)

    def with_email(self, email: str) -> User | None:
        """Returns the user with this e-mail address."""
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM users WHERE tenant = ? AND email = ?", (self._tenant, email)
            ).fetchone()
        return _user(row) if row else None

    def with_session(self, cookie: str, now: float) -> User | None:
        """Returns the user of a browser session."""
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM sessions JOIN users ON users.key = sessions.user "
                "WHERE sessions.cookie = ? AND users.tenant = ? AND (expires_at IS NULL OR expires_at > ?)",
                (cookie, self._tenant, now),
            ).fetchone()
        return _user(row) if row else None

    def open_session(self, user: User, expires_at: float) -> str:
        """Opens a browser session, valid until ``expires_at``, and returns its cookie."""
        cookie = secrets.token_hex(16)
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO sessions (cookie, user, expires_at) SELECT ?, key, ? FROM users WHERE tenant = ? AND id = ?",
                (cookie, expires_at, self._tenant, user.id),
            )
        return cookie

    def close_session(self, cookie: str) -> None:
        """Ends a browser session, but not the session of the ready line."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM sessions WHERE cookie = ? AND expires_at IS NOT NULL", (cookie,))


def ensure_account(connection: sqlite3.Connection, tenant: int, *, email: str, password: str) -> str:
    """Creates the account of the ready line or updates its password; returns its session cookie."""
    row = connection.execute("SELECT key FROM users WHERE tenant = ? AND email = ?", (tenant, email)).fetchone()
    key = row[0] if row else _add_account(connection, tenant, email)
    connection.execute(
        "UPDATE records SET document = json_set(document, '$.password', ?) WHERE key = ?", (password, key)
    )
    session = connection.execute("SELECT cookie FROM sessions WHERE user = ? AND expires_at IS NULL", (key,)).fetchone()
    if session:
        return str(session[0])
    cookie = secrets.token_hex(16)
    connection.execute("INSERT INTO sessions (cookie, user) VALUES (?, ?)", (cookie, key))
    return cookie


def _add_account(connection: sqlite3.Connection, tenant: int, email: str) -> int:
    name = email.partition("@")[0].replace(".", " ").title()
    account = {"email": email, "name": name, "roles": ["admin", "librarian"], "avatar": None}
    (number,) = add_records(connection, tenant, "users", [account])
    (key,) = connection.execute("SELECT key FROM users WHERE tenant = ? AND id = ?", (tenant, number)).fetchone()
    return int(key)


def _user(row: tuple[int, str, str, str]) -> User:
    return User(row[0], row[1], row[2], tuple(json.loads(row[3])))
