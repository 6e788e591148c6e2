"""Files: the uploads of a tenant, under the storage key of their form (``cache/...``), and the files to which records refer.

The bytes of uploads are in the folder beside the state, those of the real library in its own folder.
"""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath
from typing import IO, Any

from sandbox.state.database import Database

STORE = "store/"
"""The first folder of the storage key of a record's file, which its id lacks."""

LIBRARY = "library/"
"""The content of a file of the real library begins so; its name follows."""


StoredFile = dict[str, Any]
"""A file of a record: its ``id``, which is its storage key without the first folder, ``filename``, ``mime_type`` and ``size``."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The object of a storage key; ``content`` says where its bytes are."""

    database: Database = field(repr=False)
    filename: str
    mime_type: str | None
    size: int
    content: str

    @property
    def etag(self) -> str:
        """Another one for another content."""
        return sha256(self.content.encode()).hexdigest()[:32]

    def open(self) -> IO[bytes]:
        """Opens its bytes."""
        if self.content.startswith(LIBRARY):
            return files("sandbox.library").joinpath("files", self.content.removeprefix(LIBRARY)).open("rb")
        return self.database.folder().joinpath(self.content).open("rb")


class Blobs:
    """The uploads and files of a tenant."""

    def __init__(self, database: Database, tenant: int, name: str) -> None:
        self._database = database
        self._tenant = tenant
        self.name = name

    def find(self, key: str) -> StoredObject | None:
        """Returns the object of a storage key."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT filename, mime_type, size, content FROM files WHERE tenant = ? AND id = ?",
                (self._tenant, key.removeprefix(STORE)),
            ).fetchone()
        return StoredObject(self._database, *row) if row else None

    def upload(self, key: str, content: bytes | memoryview, *, filename: str, mime_type: str | None) -> None:
        """Stores an upload under the key of its form, replacing an older one."""
        name = secrets.token_hex(16)
        with self._database.write() as connection:
            self._database.folder().joinpath(name).write_bytes(content)
            connection.execute("DELETE FROM files WHERE tenant = ? AND id = ?", (self._tenant, key))
            file = {"id": key, "filename": filename, "mime_type": mime_type, "size": len(content)}
            add_file(connection, self._tenant, name, file)

    def add_file(self, upload: str, file: StoredFile) -> bool:
        """Makes a file of the upload with this storage key; returns False if there is none. The upload stays."""
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT content FROM files WHERE tenant = ? AND id = ?", (self._tenant, upload)
            ).fetchone()
            if row:
                add_file(connection, self._tenant, row[0], file)
        return row is not None


def new_file_id(filename: str) -> str:
    """Returns a new, random storage key without its first folder."""
    return secrets.token_hex(16) + suffix(filename)


def suffix(filename: str) -> str:
    """Returns the suffix of a file name in small letters, if it has only ASCII letters and digits."""
    ending = PurePosixPath(filename).suffix.lower()
    return ending if ending[1:].isascii() and ending[1:].isalnum() else ""


def add_file(connection: sqlite3.Connection, tenant: int, content: str, file: StoredFile) -> None:
    """Adds a file with this content."""
    connection.execute(
        "INSERT INTO files (tenant, content, id, filename, mime_type, size) VALUES (?, ?, ?, ?, ?, ?)",
        (tenant, content, *(file[name] for name in ("id", "filename", "mime_type", "size"))),
    )
