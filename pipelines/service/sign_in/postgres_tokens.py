"""Stores a sign-in in a row of a Postgres database, for several machines that work for one library (I3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from pipelines.errors import StorageError
from pipelines.service.clock import Clock
from pipelines.service.redaction import keep_secret, outside_text
from pipelines.service.sign_in.stored_sign_in import StoredSignIn, decode_sign_in, encode_sign_in
from pipelines.service.sign_in.token_store import LOCK_SECONDS, LockedSignIn, wait_for_lock
from pipelines.settings.postgres_address import PostgresAddress

TABLE = sa.Table(
    "bookferry_sign_ins",
    sa.MetaData(),
    sa.Column("connection", sa.Text, primary_key=True),
    sa.Column("document", sa.Text, nullable=False),
)
"""One row for each sign-in; the document is the JSON of the file store."""


class PostgresTokens:
    """A sign-in in a row. The lock is an advisory lock of a database session: it ends with the process that took it.

    A change is written in the session that holds the lock. If that session breaks, the tokens of a refresh must not be lost: they are
    written in another session, but only over the row that was read under the lock, so that nothing newer is replaced.
    """

    def __init__(self, address: str, tenant: str, base_url: str) -> None:
        self._empty = StoredSignIn(base_url, tenant)
        self._key = f"{tenant} {base_url}"
        parsed = PostgresAddress.parse(address)
        keep_secret(parsed.secret)
        self._shown = outside_text(parsed.place)
        self._engine = sa.create_engine(
            "postgresql+psycopg://",
            creator=lambda: psycopg.connect(parsed.conninfo),
            poolclass=NullPool,
            hide_parameters=True,
        )

    @property
    def place(self) -> str:
        """The database, without its password."""
        return f"{self._shown}, table {TABLE.name}"

    def read(self) -> StoredSignIn:
        """Return the stored sign-in."""
        with self.session() as session:
            return _Row(session, self._key, self._empty, self).read()

    @contextmanager
    def locked(self, clock: Clock, seconds: float = LOCK_SECONDS) -> Iterator[LockedSignIn]:
        """Hold the lock while the block runs."""
        number = int.from_bytes(hashlib.sha256(f"bookferry {self._key}".encode()).digest()[:8], "big", signed=True)
        with self.session() as session:
            wait_for_lock(
                lambda: not session.scalar(sa.select(sa.func.pg_try_advisory_lock(number))), clock, seconds, self.place
            )
            try:
                yield _Row(session, self._key, self._empty, self)
            finally:
                with suppress(SQLAlchemyError):  # a session that broke has no lock any more
                    session.execute(sa.select(sa.func.pg_advisory_unlock(number)))

    @contextmanager
    def session(self) -> Iterator[sa.Connection]:
        """A new session in which every statement is durable when it returns."""
        try:
            with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as session:
                session.execute(sa.text("SET synchronous_commit = on"))
                _make_table(session)
                yield session
        except SQLAlchemyError as error:
            raise _unusable(self.place, error) from None


class _Row:
    """The row in one session."""

    def __init__(self, session: sa.Connection, key: str, empty: StoredSignIn, store: PostgresTokens) -> None:
        self._session = session
        self._key = key
        self._empty = empty
        self._store = store
        self._known: str | None = None

    def read(self) -> StoredSignIn:
        """Return the stored sign-in."""
        self._known = self._session.scalar(sa.select(TABLE.c.document).where(TABLE.c.connection == self._key))
        return self._empty if self._known is None else decode_sign_in(self._known, self._empty, self._store.place)

    def write(self, stored: StoredSignIn) -> None:
        """Replace the row."""
        document = encode_sign_in(stored).decode()
        try:
            self._replace(self._session, document)
        except SQLAlchemyError:
            with self._store.session() as another:
                self._replace(another, document)
        self._known = document

    def _replace(self, session: sa.Connection, document: str) -> None:
        values = {"key": self._key, "document": document, "known": self._known}
        if session.execute(_REPLACE, values).rowcount != 1:
            raise StorageError(
                f"The sign-in in {self._store.place} was changed by somebody else while it was being renewed, and was left as it is. "
                "Run the same command again."
            )


_REPLACE = sa.text(
    f"INSERT INTO {TABLE.name} AS existing (connection, document) VALUES (:key, :document)"  # noqa: S608  a constant of ours
    " ON CONFLICT (connection) DO UPDATE SET document = excluded.document"
    " WHERE existing.document = CAST(:known AS text) OR existing.document = excluded.document"
)


def _make_table(session: sa.Connection) -> None:
    """Create the table if it is missing; two processes that do so at once must not disturb each other."""
    if session.scalar(sa.text("SELECT to_regclass(:name)"), {"name": TABLE.name}) is None:
        with_lock: dict[str, Any] = {"number": 0x626F6F6B66657272}
        session.execute(sa.text("SELECT pg_advisory_lock(:number)"), with_lock)
        try:
            TABLE.create(session, checkfirst=True)
        finally:
            session.execute(sa.text("SELECT pg_advisory_unlock(:number)"), with_lock)


def _unusable(place: str, error: SQLAlchemyError) -> StorageError:
    cause = getattr(error, "orig", None) or error
    return StorageError(
        f"The sign-in in {place} cannot be read or written: {outside_text(cause)}. Is the database server running, and may this user "
        "make and change that table? The variable that postgres_env names holds its address."
    )
