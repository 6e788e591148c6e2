"""Stores a sign-in in a file of its own that only this user may read (I3)."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from pipelines.errors import StorageError
from pipelines.service.clock import Clock
from pipelines.service.sign_in.stored_sign_in import StoredSignIn, decode_sign_in, encode_sign_in
from pipelines.service.sign_in.token_store import LOCK_SECONDS, LockedSignIn, wait_for_lock


class FileTokens:
    """A sign-in in a file of its own that only this user may read: a folder of mode 0700, a file of mode 0600.

    A new version is written beside the file, flushed to the disk and renamed over it: a reader sees the old sign-in or the new one, also
    after a power cut. The lock is the kernel's (flock) on a file beside it, which stays.
    """

    def __init__(self, folder: Path, tenant: str, base_url: str) -> None:
        self._empty = StoredSignIn(base_url, tenant)
        self._file = folder / f"{tenant}-{hashlib.sha256(base_url.encode()).hexdigest()[:12]}.json"

    @property
    def place(self) -> str:
        """The file."""
        return str(self._file)

    def read(self) -> StoredSignIn:
        """Return the stored sign-in."""
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            return self._empty
        except OSError as error:
            raise _unusable(self._file, error) from error
        return decode_sign_in(content, self._empty, self.place)

    @contextmanager
    def locked(self, clock: Clock, seconds: float = LOCK_SECONDS) -> Iterator[LockedSignIn]:
        """Hold the lock while the block runs."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = FileLock(self._file.with_suffix(".lock"), mode=0o600)
            wait_for_lock(lambda: _is_taken(lock), clock, seconds, self.place)
        except OSError as error:
            raise _unusable(self._file, error) from error
        try:
            yield self
        finally:
            lock.release()

    def write(self, stored: StoredSignIn) -> None:
        """Replace the file. Call it only between `locked` and its end."""
        temporary = self._file.with_suffix(".new")
        try:
            with suppress(FileNotFoundError):  # left by a process that died
                temporary.unlink()
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
            with os.fdopen(descriptor, "wb") as file:
                file.write(encode_sign_in(stored))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._file)
            _sync_folder(self._file.parent)
        except OSError as error:
            raise _unusable(self._file, error) from error


def _is_taken(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    return False


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(file: Path, error: OSError) -> StorageError:
    return StorageError(
        f"The sign-in in {file} cannot be read or written: {error.strerror or error}. Free some space, or let this user read and write "
        f'{file.parent} (mode 0700), or name another folder with `tokens = "..."` at the top of bookferry.toml.'
    )
