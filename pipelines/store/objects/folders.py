"""Objects as files in a local folder. One rename publishes, and the result survives a power cut."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.store.durable import replacing, storage_error, sync_file, sync_folder
from pipelines.store.objects.objects import ObjectInfo, checked_key

if TYPE_CHECKING:
    import duckdb

_WITHOUT_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""Errors of a file system that has no hard links."""


class Folder:
    """The files below `path`. Hidden ones wait in `trash/` for their removal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = str(path)
        self._trash = path / "trash"

    def path_of(self, key: str) -> Path:
        """The file of an object."""
        return self.path / checked_key(key)

    def address_of(self, key: str) -> str:
        """The file's path."""
        return str(self.path_of(key))

    def put(self, key: str, content: bytes | Path) -> bool:
        """Write a temporary file, or link the given one where it is on the same disk; then link that: a link never replaces a file."""
        target = self.path_of(key)
        with _folder_errors(target), _temporary_file(target) as temporary:
            if isinstance(content, bytes):
                temporary.write_bytes(content)
            else:
                try:
                    os.link(content, temporary)
                except OSError:
                    shutil.copyfile(content, temporary)
            sync_file(temporary)
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in _WITHOUT_LINKS:
                    raise
                if target.exists():
                    return False
                temporary.rename(target)
            sync_folder(target.parent)
        return True

    def replace(self, key: str, content: bytes | Path) -> None:
        """A copy, then one rename."""
        target = self.path_of(key)
        with _folder_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with (
                content.open("rb") if isinstance(content, Path) else BytesIO(content) as source,
                replacing(target) as file,
            ):
                shutil.copyfileobj(source, file)

    def read(self, key: str) -> bytes:
        """The file's content."""
        with _folder_errors(self.path_of(key)):
            return self.path_of(key).read_bytes()

    def open(self, key: str) -> BufferedReader:
        """The file, open."""
        with _folder_errors(self.path_of(key)):
            return self.path_of(key).open("rb")

    def size(self, key: str) -> int | None:
        """The file's size."""
        with _folder_errors(self.path_of(key)), suppress(FileNotFoundError, NotADirectoryError):
            status = self.path_of(key).stat()
            return status.st_size if stat.S_ISREG(status.st_mode) else None
        return None

    def below(self, folder: str) -> Iterator[ObjectInfo]:
        """Every file below a folder, whatever its name; memory holds one folder at a time."""
        path = self.path_of(folder)
        with _folder_errors(path), suppress(FileNotFoundError, NotADirectoryError):
            for entry in sorted(os.scandir(path), key=_sort_key):
                if _is_folder(entry):
                    yield from self.below(f"{folder}/{entry.name}")
                else:
                    yield ObjectInfo(f"{folder}/{entry.name}", entry.stat(follow_symlinks=False).st_size)

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder."""
        path = self.path_of(folder)
        with _folder_errors(path), suppress(FileNotFoundError, NotADirectoryError):
            return sorted(entry.name for entry in os.scandir(path) if entry.is_dir())
        return []

    def delete(self, key: str) -> None:
        """Remove the file."""
        with _folder_errors(self.path_of(key)):
            self.path_of(key).unlink(missing_ok=True)

    def publish(self, folder: Path, key: str, files: Sequence[str]) -> None:
        """One rename that readers see, of a folder with nothing but `files`: what runs left beside them is deleted."""
        target = self.path_of(key)
        with _folder_errors(target):
            for name in files:
                sync_file(folder / name)
            for inner in {(folder / name).parent for name in files}:
                sync_folder(inner)
            target.parent.mkdir(parents=True, exist_ok=True)
            for path in sorted(folder.rglob("*"), reverse=True):  # the content of a folder before the folder
                if path.is_dir():
                    with suppress(OSError):
                        path.rmdir()  # only where it is empty
                elif path.relative_to(folder).as_posix() not in files:
                    path.unlink()
            folder.rename(target)
            for above in (target.parent, target.parent.parent, self.path):  # the last two hold names that may be new
                sync_folder(above)

    def hide(self, key: str) -> None:
        """One rename hides everything."""
        path = self.path_of(key)
        with _folder_errors(path):
            self._trash.mkdir(exist_ok=True)
            path.rename(self._trash / f"{key.replace('/', '.')}.{os.getpid()}")
            sync_folder(path.parent)

    def clear(self, folder: str) -> None:  # noqa: ARG002  nothing in the trash is needed
        """Empty the trash of every process."""
        with _folder_errors(self._trash), suppress(FileNotFoundError):
            for path in self._trash.iterdir():
                with suppress(FileNotFoundError):  # two processes may empty it at once
                    shutil.rmtree(path)
            with suppress(OSError):
                self._trash.rmdir()

    def unfinished(self, folder: str) -> set[str]:  # noqa: ARG002  the same for every folder
        """Nothing: a rename is never half done."""
        return set()

    def attach(self, database: duckdb.DuckDBPyConnection) -> None:
        """Nothing to do: DuckDB reads local files itself."""


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _sort_key(entry: os.DirEntry[str]) -> str:
    """Sorts a folder's entries as their keys sort: a folder stands where its first object does."""
    return f"{entry.name}/" if _is_folder(entry) else entry.name


@contextmanager
def _temporary_file(target: Path) -> Iterator[Path]:
    """A free path beside the target, whose file is removed after the block."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    temporary.unlink(missing_ok=True)  # of a process that died, and perhaps another name of what it linked
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _folder_errors(path: Path) -> Iterator[None]:
    """Turns errors of the operating system into `StorageError`; a missing file stays `FileNotFoundError`."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, path) from error
