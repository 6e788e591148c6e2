"""Files: the uploads of a tenant, under the storage key of their form (``cache/...``), and the files to which records refer.

The bytes of uploads are in the folder beside the state, those of the real library in its own folder.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import PurePosixPath
from typing import IO, Any

from sandbox.state.database import Database
from sandbox.state.records import Document, Records

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
    """The uploads and files of a tenant. ``name`` is that of its bucket."""

    def __init__(self, database: Database, files: Records, name: str) -> None:
        self._database = database
        self._files = files
        self.name = name

    def find(self, key: str) -> StoredObject | None:
        """Returns the object of a storage key."""
        stored = self._files.find("storage_key", key.removeprefix(STORE))
        if stored is None:
            return None
        return StoredObject(self._database, *(stored[name] for name in ("filename", "mime_type", "size", "content")))

    def upload(self, key: str, content: bytes | memoryview, *, filename: str, mime_type: str | None) -> None:
        """Stores an upload under the key of its form, replacing an older one."""
        name = secrets.token_hex(16)
        self._database.folder().joinpath(name).write_bytes(content)
        if older := self._files.find("storage_key", key):
            self._files.remove(older["id"])
        self.add(name, {"id": key, "filename": filename, "mime_type": mime_type, "size": len(content)})

    def add(self, content: str, file: StoredFile) -> None:
        """Adds a file with this content."""
        self._files.create(file_document(content, file))


def file_document(content: str, file: StoredFile) -> Document:
    """Returns the document of a file."""
    return {**file, "storage_key": file["id"], "content": content}


def new_file_id(filename: str) -> str:
    """Returns a new, random storage key without its first folder."""
    return secrets.token_hex(16) + suffix(filename)


def suffix(filename: str) -> str:
    """Returns the suffix of a file name in small letters, if it has only ASCII letters and digits."""
    ending = PurePosixPath(filename).suffix.lower()
    return ending if ending[1:].isascii() and ending[1:].isalnum() else ""
