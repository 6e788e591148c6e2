"""Files attached to publications."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from sandbox.state.blobs import StoredFile, file_key
from sandbox.state.database import Database
from sandbox.state.drafts import add_asset
from sandbox.state.publications import Asset

_LARGEST_ID = 2**63 - 1
_SELECT = (
    "SELECT assets.id, publications.id, name, content_type, files.id, filename, mime_type, size FROM assets "
    "JOIN publications ON publications.key = publication JOIN files ON files.key = file "
    "WHERE assets.tenant = ? AND assets.id = ?"
)


class Assets:
    """The attached files of one tenant."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant

    def get(self, number: int) -> Asset | None:
        """Returns the asset with this id."""
        with self._database.read() as connection:
            return self._load(connection, number)

    def create(self, publication: int, *, name: str | None, content_type: str | None, file: StoredFile) -> Asset | None:
        """Attaches a file of ``Storage.promote``; returns None if there is no such publication."""
        with self._database.write() as connection:
            key = self._publication(connection, publication)
            if key is None:
                return None
            stored = file_key(connection, self._tenant, file)
            number = add_asset(connection, self._tenant, key, name=name, content_type=content_type, file=stored)
            return self._load(connection, number)

    def change(
        self, number: int, texts: Mapping[str, Any], *, publication: int | None, file: StoredFile | None
    ) -> None:
        """Changes ``name``, ``content_type``, publication or file of an asset."""
        with self._database.write() as connection:
            where = (self._tenant, number)
            for column in ("name", "content_type"):
                if column in texts:
                    self._set(connection, column, texts[column], where)
            if publication is not None:
                self._set(connection, "publication", self._publication(connection, publication), where)
            if file is not None:
                self._replace_file(connection, file_key(connection, self._tenant, file), where)

    def remove(self, number: int) -> bool:
        """Deletes an asset and its file; returns whether there was one."""
        with self._database.write() as connection:
            row = connection.execute(
                "DELETE FROM assets WHERE tenant = ? AND id = ? RETURNING file",
                (self._tenant, min(number, _LARGEST_ID)),
            ).fetchone()
            if row:
                connection.execute("DELETE FROM files WHERE key = ?", row)
        return row is not None

    def has_publication(self, number: int) -> bool:
        """Returns whether the publication exists."""
        with self._database.read() as connection:
            return self._publication(connection, number) is not None

    def _load(self, connection: sqlite3.Connection, number: int) -> Asset | None:
        row = connection.execute(_SELECT, (self._tenant, min(number, _LARGEST_ID))).fetchone()
        if row is None:
            return None
        number, publication, name, content_type, *file = row
        return Asset(number, publication, name, content_type, StoredFile(*file))

    def _publication(self, connection: sqlite3.Connection, number: int) -> int | None:
        row = connection.execute(
            "SELECT key FROM publications WHERE tenant = ? AND id = ?", (self._tenant, min(number, _LARGEST_ID))
        ).fetchone()
        return int(row[0]) if row else None

    def _replace_file(self, connection: sqlite3.Connection, file: int, where: tuple[int, int]) -> None:
        former = connection.execute("SELECT file FROM assets WHERE tenant = ? AND id = ?", where).fetchone()
        self._set(connection, "file", file, where)
        if former:
            connection.execute("DELETE FROM files WHERE key = ?", former)

    def _set(self, connection: sqlite3.Connection, column: str, value: object, where: tuple[int, int]) -> None:
        connection.execute(f"UPDATE assets SET {column} = ? WHERE tenant = ? AND id = ?", (value, *where))
