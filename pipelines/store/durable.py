"""Durable writes to the data folder: after a crash a file is the old or the new one, and a full disk gives a clear message."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BufferedWriter
from pathlib import Path

from pipelines.disk_space import is_full
from pipelines.errors import BookferryError, StorageError

CHUNK_BYTES = 8 * 1024 * 1024
"""Bytes per read of a file that may be in a bucket."""

_REMEDIES = {
    errno.ENOSPC: "the disk is full. Free some space and run the command again",
    errno.EDQUOT: "the disk quota is used up. Free some space and run the command again",
    errno.EFBIG: "the file is larger than this file system or user may write. Raise that limit and run the command again",
    errno.EROFS: "it is read-only. Choose another `data` folder in bookferry.toml",
    errno.EACCES: "this user may not write there. Change its owner, or choose another `data` folder in bookferry.toml",
    errno.EPERM: "this user may not write there. Change its owner, or choose another `data` folder in bookferry.toml",
    errno.EIO: "the disk reports an error. Check it before you rely on anything stored there",
}


@contextmanager
def storage_errors(path: Path | str) -> Iterator[None]:
    """Turns errors of the operating system, SQLite and DuckDB about a disk, a file or memory into a `StorageError` that names `path`.

    A mistake of ours, for which there is no remedy on a disk, stays as it is: nothing may go on after one.
    """
    try:
        yield
    except BookferryError:
        raise
    except Exception as error:
        if not _is_of_storage(error):
            raise
        raise storage_error(error, path) from error


def _is_of_storage(error: Exception) -> bool:
    if isinstance(error, OSError) or is_disk_full(error):
        return True
    if isinstance(error, sqlite3.Error):
        is_general = type(error) in (sqlite3.OperationalError, sqlite3.DatabaseError)  # not of a value or a parameter
        return is_general and getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR  # of a statement
    duckdb = sys.modules.get("duckdb")  # a library that was not imported raises no error, and its import takes a second
    return duckdb is not None and isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException)


def is_disk_full(error: BaseException) -> bool:
    """Whether an error of any library means that the disk, the quota or the allowed file size is used up."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return True
    return any(words in str(error) for words in ("No space left on device", "disk is full", "File too large"))


def is_refusal(error: BaseException) -> bool:
    """Whether the operating system refuses, or reports an error of the disk: that is no damage of a file."""
    return is_disk_full(error) or getattr(error, "errno", None) in (errno.EACCES, errno.EPERM, errno.EIO, errno.EROFS)


def _is_disk_error(error: BaseException) -> bool:
    """Whether SQLite reports an I/O error, which a full disk may be: SQLite says so where it can write neither its file nor its journal."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR


def storage_error(error: BaseException, path: Path | str) -> StorageError:
    """Returns the message for a failed write or read of `path`, with a remedy."""
    number = getattr(error, "errno", None)
    if number is None and (is_disk_full(error) or (_is_disk_error(error) and is_full(Path(path)))):
        number = errno.ENOSPC
    remedy = _REMEDIES.get(number or 0, f"{error}. Mend that and run the command again")
    return StorageError(f"Cannot write to or read from {path}: {remedy}. The last good snapshot is untouched.")


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`: a reader sees the old file or the new one, also after a power cut."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BufferedWriter]:
    """Open a new file that takes the place of `path` after the block, as `write_atomically` does; an error leaves the old one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """An empty folder for the length of the block. Leftovers of a killed process in it are removed."""
    with storage_errors(path):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def sync_file(path: Path) -> None:
    """Flush a file's content to the disk, so that it survives a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Flush a folder's names to the disk, so that they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal; memory does not grow with the file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(file: BufferedReader) -> tuple[str, int]:
    """SHA-256 and number of bytes of the rest of a file. Each piece is large enough for a request of its own."""
    digest, size = hashlib.sha256(), 0
    while chunk := file.read(CHUNK_BYTES):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size
