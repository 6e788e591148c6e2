"""Durable writes to the data folder: after a crash a file is the old or the new one, and a full disk gives a clear message."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BufferedWriter
from pathlib import Path

from pipelines.disk_space import is_full
from pipelines.errors import StorageError

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
def storage_errors(path: Path | str, *, reads: bool = True) -> Iterator[None]:
    """Turns errors of the operating system, Arrow, SQLite and DuckDB into a `StorageError` that names `path`, or the damaged file.

    A mistake of ours, for which there is no remedy on a disk, stays as it is: nothing may go on after one. `reads`: whether a file that is
    read may be the reason.
    """
    try:
        yield
    except _library_errors() as error:
        if _is_mistake(error, path, reads=reads):
            raise
        raise storage_error(error, path) from error


_MISTAKES = {
    "duckdb": (
        *("BinderException", "CatalogException", "ConversionException", "ConstraintException", "InternalException"),
        *(
            "NotImplementedException",
            "OutOfRangeException",
            "ParserException",
            "SyntaxException",
            "TypeMismatchException",
        ),
    ),
    "pyarrow": ("ArrowTypeError", "ArrowNotImplementedError", "ArrowKeyError", "ArrowIndexError"),
    "sqlite3": ("ProgrammingError", "InterfaceError", "IntegrityError", "NotSupportedError"),
}
"""Library → its errors that no disk, file or network explains."""


def _is_mistake(error: Exception, path: Path | str, *, reads: bool) -> bool:
    """Whether an error is a mistake of ours, rather than one of a disk, a file or a network."""
    if is_disk_full(error):
        return False
    library = type(error).__module__.partition(".")[0].lstrip("_")
    names = {kind.__name__ for kind in type(error).__mro__}
    if not names.isdisjoint(_MISTAKES.get(library, ())):
        return True
    if isinstance(error, sqlite3.OperationalError):  # "no such table": somebody has emptied the file
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR and "no such table" not in str(error)
    if "ArrowInvalid" in names:  # of a damaged file, or of values that do not fit
        return not reads or ("://" not in str(path) and not (damage_behind(error, path) or _is_unreadable(Path(path))))
    return False


def _library_errors() -> tuple[type[Exception], ...]:
    """The errors of everything that writes files. A library that was not imported raises none, and its import takes a second."""
    imported = ((sys.modules.get("pyarrow"), "ArrowException"), (sys.modules.get("duckdb"), "Error"))
    return (OSError, sqlite3.Error, *(getattr(module, name) for module, name in imported if module is not None))


def _is_unreadable(path: Path) -> bool:
    """Whether a Parquet file cannot be read, whatever is done with its values."""
    import pyarrow as pa  # noqa: PLC0415  commands without tables start without it
    import pyarrow.parquet as pq  # noqa: PLC0415

    if path.suffix != ".parquet":
        return path.is_dir() and any(map(_is_unreadable, path.rglob("*.parquet")))
    try:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                file.read_row_group(group)
    except (OSError, pa.ArrowException):
        return True
    return False


_OF_A_SNAPSHOT = re.compile(
    r"(?P<folder>[^'\"\n]*snapshots/tenant=(?P<tenant>[^/'\"\n]+)/snapshot=(?P<snapshot>[^/'\"\n]+))(?:/(?P<file>[^'\"\n]+))?"
)
_ABSENT = frozenset({None, errno.ENOENT, errno.EISDIR, errno.EINVAL})
"""Error numbers of a file that is damaged, or not there."""


def damage_behind(error: BaseException, path: Path | str) -> str:
    """What is wrong with which file of a snapshot, and what to do; empty if the error is about something else."""
    named = _OF_A_SNAPSHOT.search(str(error).partition("\n")[0]) or _OF_A_SNAPSHOT.search(str(path))
    if named is None or getattr(error, "errno", None) not in _ABSENT or is_disk_full(error):
        return ""
    wrong = _damaged_table(Path(named["folder"])) if "://" not in named["folder"] else None
    if wrong is None and named["file"] is None:
        return ""
    wrong = wrong or f"{named[0]} cannot be read ({str(error).partition(chr(10))[0]})"
    return (
        f"{wrong}. `bookferry snapshots verify {named['tenant']}/{named['snapshot']}` says what else is damaged there. Put it back from a "
        "copy of the data folder; other snapshots are not affected."
    )


def damage_of_size(address: str, size: int, published: int) -> str:
    """The same of a file of another size than was published."""
    return damage_behind(OSError(f"it has {size:,} bytes instead of {published:,}"), address)


def _damaged_table(snapshot: Path) -> str | None:
    """The first file of a snapshot in a local folder that is not what the manifest says, and what is wrong with it; None if all are."""
    try:
        tables = json.loads((snapshot / "manifest.json").read_bytes())["tables"].values()
        expected = {snapshot / facts["path"]: (facts["bytes"], facts["sha256"]) for facts in tables}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # which `snapshots verify` says
        return None
    for path, (size, sha256) in expected.items():
        if not path.is_file():
            return f"{path} is {'a folder' if path.is_dir() else 'missing'}"
        if path.stat().st_size != size:
            return f"{path} is damaged: it has {path.stat().st_size:,} bytes instead of {size:,}"
        if sha256_of(path) != sha256:
            return f"{path} is damaged: its content is not what was published"
    return None


def is_disk_full(error: BaseException) -> bool:
    """Whether an error of any library means that the disk, the quota or the allowed file size is used up."""
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return True
    return any(words in str(error) for words in ("No space left on device", "disk is full", "File too large"))


def _is_disk_error(error: BaseException) -> bool:
    """Whether SQLite reports an I/O error, which a full disk may be: SQLite says so where it can write neither its file nor its journal."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_IOERR


def storage_error(error: BaseException, path: Path | str) -> StorageError:
    """Returns the message for a failed write or read of `path`, with a remedy."""
    if damage := damage_behind(error, path):
        return StorageError(damage)
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
