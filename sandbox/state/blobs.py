"""The contents of files, each one once, and their names in each tenant.

A tenant has two kinds of names: uploads, under the storage key of their form (``cache/...``), and files, to which records refer
(``store/<id>``). The contents of the real library are in the database, those of uploads in the folder beside it.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from sandbox.objects.disposition import inline
from sandbox.state.content_folder import ContentFolder
from sandbox.state.database import Database

STORE = "store/"

_STORED_OBJECT = (
    "SELECT 'inline', files.filename, mime_type, files.size, sha256, md5, bytes "
    "FROM files JOIN blobs ON blobs.key = files.blob WHERE tenant = ? AND files.id = ?"
)
_UPLOADED_OBJECT = (
    "SELECT content_disposition, filename, content_type, size, sha256, md5, bytes "
    "FROM uploads JOIN blobs ON blobs.key = uploads.blob WHERE tenant = ? AND storage_key = ?"
)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a record; ``id`` is its storage key without the first folder."""

    id: str
    filename: str
    mime_type: str | None
    size: int


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The object of a storage key. Its bytes are in ``content``, or in the folder."""

    filename: str
    content_type: str | None
    content_disposition: str | None
    size: int
    sha256: str
    md5: str
    content: bytes | None = field(repr=False)
    folder: ContentFolder = field(repr=False)

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        """Yields the bytes from ``start`` to ``stop`` (exclusive)."""
        if self.content is None:
            return self.folder.chunks(self.sha256, start, stop)
        return iter((self.content[start:stop],))


class Blobs:
    """The uploads and files of a tenant."""

    def __init__(self, database: Database, tenant: int, name: str) -> None:
        self._database = database
        self._tenant = tenant
        self.name = name

    def find(self, key: str) -> StoredObject | None:
        """Returns the object of a storage key."""
        sql, name = (_STORED_OBJECT, key.removeprefix(STORE)) if key.startswith(STORE) else (_UPLOADED_OBJECT, key)
        with self._database.read() as connection:
            row = connection.execute(sql, (self._tenant, _storable(name))).fetchone()
        if row is None:
            return None
        disposition, filename, content_type, size, sha256, md5, content = row
        content_disposition = inline(filename) if disposition == "inline" else disposition
        return StoredObject(
            filename, content_type, content_disposition, size, sha256, md5, content, self._database.folder
        )

    def begin_upload(self) -> UploadWriter:
        """Begins an upload."""
        return UploadWriter(self._database, self._tenant)

    def add_file(self, upload: str, file: StoredFile) -> bool:
        """Makes a file of the upload with this storage key; returns False if there is none. The upload stays."""
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT blob FROM uploads WHERE tenant = ? AND storage_key = ?", (self._tenant, _storable(upload))
            ).fetchone()
            if row:
                add_file(connection, self._tenant, row[0], file)
        return row is not None

    def add_external_file(self, file: StoredFile) -> None:
        """Adds a file whose bytes are in the external store."""
        with self._database.write() as connection:
            add_file(connection, self._tenant, None, file)


class UploadWriter:
    """An upload that is being received. It is visible after ``finish``."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant
        self._content = database.folder.begin_content()

    def write(self, data: bytes) -> int:
        """Writes bytes."""
        return self._content.write(data)

    def finish(self, key: str, *, filename: str, content_type: str | None, content_disposition: str | None) -> str:
        """Stores the object under this key, replacing an older one; returns its MD5."""
        sha256, md5 = self._content.commit()
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO blobs (sha256, md5, size) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (sha256, md5, self._content.size),
            )
            connection.execute(
                "INSERT OR REPLACE INTO uploads (tenant, storage_key, blob, filename, content_type, content_disposition) "
                "SELECT ?, ?, key, ?, ?, ? FROM blobs WHERE sha256 = ?",
                (self._tenant, _storable(key), _storable(filename), content_type, content_disposition, sha256),
            )
        return md5

    def discard(self) -> None:
        """Discards the bytes if they were not stored."""
        self._content.discard()


def new_file_id(filename: str) -> str:
    """Returns a new, random storage key without its first folder."""
    return secrets.token_hex(16) + suffix(filename)


def suffix(filename: str) -> str:
    """Returns the suffix of a file name in small letters, if it has only ASCII letters and digits."""
    ending = PurePosixPath(filename).suffix.lower()
    return ending if ending[1:].isascii() and ending[1:].isalnum() else ""


def add_blob(connection: sqlite3.Connection, content: bytes) -> int:
    """Stores bytes unless they are known; returns their key."""
    sha256 = hashlib.sha256(content).hexdigest()
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    connection.execute(
        "INSERT INTO blobs (sha256, md5, size, bytes) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (sha256, md5, len(content), content),
    )
    (key,) = connection.execute("SELECT key FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    return int(key)


def add_file(connection: sqlite3.Connection, tenant: int, blob: int | None, file: StoredFile) -> int:
    """Adds a file; without a blob its bytes are in the external store. Returns its key."""
    cursor = connection.execute(
        "INSERT INTO files (tenant, id, blob, filename, mime_type, size) VALUES (?, ?, ?, ?, ?, ?)",
        (tenant, file.id, blob, file.filename, file.mime_type, file.size),
    )
    return int(cursor.lastrowid or 0)


def file_key(connection: sqlite3.Connection, tenant: int, file: StoredFile) -> int:
    """Returns the key of a file of ``Storage.promote``, for ``assets.file`` and ``publications.cover``."""
    (key,) = connection.execute("SELECT key FROM files WHERE tenant = ? AND id = ?", (tenant, file.id)).fetchone()
    return int(key)


def _storable(text: str) -> str:
    """Replaces characters that SQLite cannot store by question marks."""
    return text.encode("utf-8", "replace").decode()
