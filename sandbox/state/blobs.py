"""The bytes of files, each content once, and the names under which tenants keep them.

A tenant has two kinds of names: uploads, under the storage key that a form gave them (``cache/...``), and files, which records
refer to (``store/<id>``). The library's own contents are in the state; what was uploaded is in the folder beside it.
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
    """A file as the service describes it; ``id`` is its storage key without the first folder."""

    id: str
    filename: str
    mime_type: str | None
    size: int


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What a storage key leads to. The bytes are in ``content``, or in the folder."""

    filename: str
    content_type: str | None
    content_disposition: str | None
    size: int
    sha256: str
    md5: str
    content: bytes | None = field(repr=False)
    folder: ContentFolder = field(repr=False)

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        """The bytes from ``start`` up to, without, ``stop``."""
        if self.content is None:
            return self.folder.chunks(self.sha256, start, stop)
        return iter((self.content[start:stop],))


class Blobs:
    """The uploads and files of one tenant."""

    def __init__(self, database: Database, tenant: int, name: str) -> None:
        self._database = database
        self._tenant = tenant
        self.name = name

    def find(self, key: str) -> StoredObject | None:
        """The object under a storage key."""
        sql, name = (_STORED_OBJECT, key.removeprefix(STORE)) if key.startswith(STORE) else (_UPLOADED_OBJECT, key)
        with self._database.read() as connection:
            row = connection.execute(sql, (self._tenant, _storable(name))).fetchone()
        if row is None:
            return None
        disposition, filename, content_type, size, sha256, md5, inside = row
        shown = inline(filename) if disposition == "inline" else disposition
        return StoredObject(filename, content_type, shown, size, sha256, md5, inside, self._database.folder)

    def begin_upload(self) -> UploadWriter:
        """Begin an upload."""
        return UploadWriter(self._database, self._tenant)

    def add_file(self, upload: str, file: StoredFile) -> bool:
        """Make a file of the upload under this storage key; False when there is no such upload. The upload stays."""
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT blob FROM uploads WHERE tenant = ? AND storage_key = ?", (self._tenant, _storable(upload))
            ).fetchone()
            if row:
                add_file(connection, self._tenant, row[0], file)
        return row is not None

    def add_external_file(self, file: StoredFile) -> None:
        """Remember a file whose bytes are in somebody else's store."""
        with self._database.write() as connection:
            add_file(connection, self._tenant, None, file)


class UploadWriter:
    """An upload on its way: nothing of it is seen before ``finish``."""

    def __init__(self, database: Database, tenant: int) -> None:
        self._database = database
        self._tenant = tenant
        self._content = database.folder.begin_content()

    def write(self, data: bytes) -> int:
        """More bytes."""
        return self._content.write(data)

    def finish(self, key: str, *, filename: str, content_type: str | None, content_disposition: str | None) -> str:
        """Store the object under this key, whatever was there before; its MD5."""
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
        """Forget the bytes, if they were not stored."""
        self._content.discard()


def new_file_id(filename: str) -> str:
    """A storage key, without its first folder, that nobody has yet."""
    return secrets.token_hex(16) + suffix(filename)


def suffix(filename: str) -> str:
    """The ending of a file's name if it is a plain one, in small letters."""
    ending = PurePosixPath(filename).suffix.lower()
    return ending if ending[1:].isascii() and ending[1:].isalnum() else ""


def add_blob(connection: sqlite3.Connection, content: bytes) -> int:
    """The key of these bytes, stored if they are new."""
    sha256 = hashlib.sha256(content).hexdigest()
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    connection.execute(
        "INSERT INTO blobs (sha256, md5, size, bytes) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (sha256, md5, len(content), content),
    )
    (key,) = connection.execute("SELECT key FROM blobs WHERE sha256 = ?", (sha256,)).fetchone()
    return int(key)


def add_file(connection: sqlite3.Connection, tenant: int, blob: int | None, file: StoredFile) -> int:
    """The key of a new file of this tenant; without a blob its bytes are elsewhere."""
    cursor = connection.execute(
        "INSERT INTO files (tenant, id, blob, filename, mime_type, size) VALUES (?, ?, ?, ?, ?, ?)",
        (tenant, file.id, blob, file.filename, file.mime_type, file.size),
    )
    return int(cursor.lastrowid or 0)


def file_key(connection: sqlite3.Connection, tenant: int, file: StoredFile) -> int:
    """The key of a file that ``Storage.promote`` has made: what ``assets.file`` and ``publications.cover`` hold."""
    (key,) = connection.execute("SELECT key FROM files WHERE tenant = ? AND id = ?", (tenant, file.id)).fetchone()
    return int(key)


def _storable(text: str) -> str:
    """Text that SQLite can hold: signs that are no signs become question marks."""
    return text.encode("utf-8", "replace").decode()
