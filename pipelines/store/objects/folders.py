"""Objects as files in a folder on this machine: published by one rename, also when the power fails."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

import duckdb

from pipelines.store.durable import storage_error, sync_file, sync_folder, write_atomically
from pipelines.store.objects.objects import ObjectInfo, checked

_WITHOUT_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What a file system says that knows no second name of a file."""


class Folder:
    """The files below `path`. What is hidden waits in `trash/` for its removal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = str(path)
        self._trash = path / "trash"

    def path_of(self, key: str) -> Path:
        """The file of an object."""
        return self.path / checked(key)

    def address_of(self, key: str) -> str:
        """The file's path."""
        return str(self.path_of(key))

    def put(self, key: str, content: bytes) -> bool:
        """Written beside its place, then linked there: a link never takes the place of a file."""
        target = self.path_of(key)
        with _told(target):
            temporary = _beside(target)
            try:
                temporary.write_bytes(content)
                return _link(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)

    def put_file(self, key: str, path: Path) -> bool:
        """Linked, where the file is on the same disk; nothing is copied then, and nothing left behind by whoever dies here."""
        target = self.path_of(key)
        with _told(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            sync_file(path)
            try:
                os.link(path, target)
            except FileExistsError:
                return False
            except OSError:
                return self._copy(path, target)
            sync_folder(target.parent)
            return True

    def _copy(self, path: Path, target: Path) -> bool:
        temporary = _beside(target)
        try:
            shutil.copyfile(path, temporary)
            return _link(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)

    def replace(self, key: str, content: bytes) -> None:
        """One rename."""
        target = self.path_of(key)
        with _told(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, content)

    def replace_file(self, key: str, path: Path) -> None:
        """One rename, where the file is on the same disk; else of a copy."""
        target = self.path_of(key)
        with _told(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            sync_file(path)
            try:
                path.replace(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                self._replace_by_copy(path, target)
            sync_folder(target.parent)

    def _replace_by_copy(self, path: Path, target: Path) -> None:
        temporary = _beside(target)
        try:
            shutil.copyfile(path, temporary)
            sync_file(temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    def read(self, key: str) -> bytes:
        """The file's content."""
        with _told(self.path_of(key)):
            return self.path_of(key).read_bytes()

    def read_all(self, keys: Iterable[str]) -> Iterator[bytes | None]:
        """One after the other: files are near."""
        for key in keys:
            try:
                yield self.read(key)
            except FileNotFoundError:
                yield None

    def open(self, key: str) -> BufferedReader:
        """The file, open."""
        with _told(self.path_of(key)):
            return self.path_of(key).open("rb")

    def size(self, key: str) -> int | None:
        """The file's size."""
        with _told(self.path_of(key)), suppress(FileNotFoundError, NotADirectoryError):
            found = self.path_of(key).stat()
            return found.st_size if stat.S_ISREG(found.st_mode) else None
        return None

    def below(self, folder: str) -> Iterator[ObjectInfo]:
        """Every file below a folder, whatever it is called; one folder at a time is in memory."""
        path = self.path_of(folder)
        with _told(path), suppress(FileNotFoundError, NotADirectoryError):
            for one in sorted(os.scandir(path), key=lambda one: f"{one.name}/" if _is_folder(one) else one.name):
                if _is_folder(one):
                    yield from self.below(f"{folder}/{one.name}")
                else:
                    yield ObjectInfo(f"{folder}/{one.name}", one.stat(follow_symlinks=False).st_size)

    def folders(self, folder: str) -> list[str]:
        """The folders in a folder."""
        path = self.path_of(folder)
        with _told(path), suppress(FileNotFoundError, NotADirectoryError):
            return sorted(one.name for one in os.scandir(path) if one.is_dir())
        return []

    def delete(self, key: str) -> None:
        """Remove the file."""
        with _told(self.path_of(key)):
            self.path_of(key).unlink(missing_ok=True)

    def publish(self, folder: Path, key: str, files: Sequence[str]) -> None:
        """One rename that readers see, of a folder in which nothing else is left."""
        target = self.path_of(key)
        with _told(target):
            for name in files:
                sync_file(folder / name)
            for inner in {(folder / name).parent for name in files}:
                sync_folder(inner)
            target.parent.mkdir(parents=True, exist_ok=True)
            for name in {one.name for one in folder.iterdir() if one.is_file()}.difference(files):
                (folder / name).unlink()
            folder.rename(target)
            for above in (target.parent, target.parent.parent, self.path):  # the last two hold names that may be new
                sync_folder(above)

    def hide(self, key: str, last: str) -> None:  # noqa: ARG002  one rename hides all
        """Out of sight by one rename, `last` with all the rest."""
        path = self.path_of(key)
        with _told(path):
            self._trash.mkdir(exist_ok=True)
            path.rename(self._trash / f"{key.replace('/', '.')}.{os.getpid()}")
            sync_folder(path.parent)

    def clear(self, folder: str) -> None:  # noqa: ARG002  what is in the trash is nobody's
        """Empty the trash, whoever left what there."""
        with _told(self._trash), suppress(FileNotFoundError):
            for path in self._trash.iterdir():
                with suppress(FileNotFoundError):  # two may empty it at once
                    shutil.rmtree(path)
            with suppress(OSError):
                self._trash.rmdir()

    def unfinished(self, folder: str) -> set[str]:  # noqa: ARG002  wherever it is
        """Nothing: a rename leaves nothing half done."""
        return set()

    def attach(self, database: duckdb.DuckDBPyConnection) -> None:
        """DuckDB reads files as they are."""


def _is_folder(one: os.DirEntry[str]) -> bool:
    return one.is_dir(follow_symlinks=False)


def _beside(target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")


def _link(temporary: Path, target: Path) -> bool:
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


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What the operating system says, as one `StorageError`; but that a file is missing stays what it is."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(error, path) from error
