"""Who may open the files that Bookferry writes: this user alone, or also the members of one group.

New files get their permissions from the process's umask, so that libraries (SQLite, DuckDB, Dagster) and child processes follow, and a
killed process leaves nothing open. Folders that an earlier version or another program left open are mended.
"""

from __future__ import annotations

import grp
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.errors import ConfigurationError

_PERMISSIONS = 0o7777


@dataclass(frozen=True)
class FileAccess:
    """The permissions of data and state. `group`: the number of the group that shares them; without one, this user alone."""

    group: int | None = None

    @property
    def umask(self) -> int:
        """The umask of a process that writes data."""
        return 0o077 if self.group is None else 0o007

    def wanted(self, status: os.stat_result) -> int:
        """The permissions that a file or folder ought to have. A shared folder hands its group on to everything new in it (setgid)."""
        if self.group is None:
            return status.st_mode & 0o700
        return 0o2770 if stat.S_ISDIR(status.st_mode) else status.st_mode & 0o770 | 0o660

    def is_wrong(self, status: os.stat_result) -> bool:
        """Whether a file or folder has other permissions. Links and devices are never wrong."""
        if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
            return False
        return self.wanted(status) != status.st_mode & _PERMISSIONS or self.group not in (None, status.st_gid)


@dataclass
class Mended:
    """A folder that had other permissions than configured, in it or itself."""

    folder: Path
    mode: int
    """The folder's own permissions before."""
    mended: int = 0
    opened: int = 0
    """How many of these more people could open than should."""
    left: list[Path] = field(default_factory=list)
    """What could not be mended."""


_access = FileAccess()
_inherited_umask: int | None = None


def named_group(name: str) -> int:
    """Returns the number of a group. Raises `ConfigurationError` unless it exists and this user is in it."""
    try:
        number = grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigurationError(
            f'group: this machine has no group "{name}". Make it (groupadd {name}), or name another one in bookferry.toml.'
        ) from None
    if os.geteuid() != 0 and number not in {os.getegid(), *os.getgroups()}:
        raise ConfigurationError(
            f'group: this user is not in the group "{name}". Add the user (usermod -aG {name} USER), sign in again, and repeat the command.'
        )
    return number


def restrict_new_files(access: FileAccess) -> None:
    """Give this process, and those that it starts, the umask of `access`."""
    global _access, _inherited_umask  # noqa: PLW0603  the umask belongs to the whole process, too
    before = os.umask(access.umask)
    _inherited_umask = before if _inherited_umask is None else _inherited_umask
    _access = access


def inherited_umask() -> int:
    """Returns the umask that this process began with, for a person's own programs; -1 where it has not changed."""
    return -1 if _inherited_umask is None else _inherited_umask


def folder_mode() -> int:
    """Returns the mode for a new folder of data."""
    return 0o777 & ~_access.umask


def make_folder(folder: Path) -> None:
    """Create a folder of data with its parents, unless it exists."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=folder_mode())
        if _access.group is not None:
            _mend(folder, _access)


def make_file(path: Path) -> None:
    """Create an empty file for SQLite, unless it exists: SQLite alone would not let the group write to it."""
    with suppress(FileExistsError, FileNotFoundError, PermissionError):  # SQLite reports the last two
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 & ~_access.umask))


def mend(folder: Path, access: FileAccess, *, whole: bool = True, known: tuple[str, ...] = ()) -> Mended | None:
    """Give a folder and everything in it the permissions of `access`. Returns None if nothing had others.

    If the folder has the right ones, only its immediate entries are looked at: nobody else gets deeper, and every command does this.
    The folder comes last, so that a killed mend is repeated. `whole`: the folder is ours alone; else only its entries that begin with a
    name of `known`.
    """
    try:
        status = folder.lstat()
        entries = [entry for entry in folder.iterdir() if whole or entry.name.startswith(known)]
    except OSError:  # there is no such folder, or it is not for this user
        return None
    result = Mended(folder, stat.S_IMODE(status.st_mode))
    top_is_wrong = whole and access.is_wrong(status)
    for entry in entries:
        if (top_is_wrong and _is_ours(status)) or _is_wrong(entry, access):
            for path in _bottom_up(entry):
                _count(result, path, access)
    if top_is_wrong:
        _count(result, folder, access)
    return result if result.mended or result.left else None


def _bottom_up(path: Path) -> Iterator[Path]:
    """Yields everything in a folder before the folder. Links are not followed."""
    if path.is_dir() and not path.is_symlink():
        with suppress(OSError):
            for entry in list(path.iterdir()):
                yield from _bottom_up(entry)
    yield path


def _count(result: Mended, path: Path, access: FileAccess) -> None:
    with suppress(FileNotFoundError):
        before = path.lstat()
        if not access.is_wrong(before):
            return
        if not _mend(path, access):
            result.left.append(path)
            return
        result.mended += 1
        result.opened += bool(before.st_mode & _PERMISSIONS & ~access.wanted(before))


def _is_wrong(path: Path, access: FileAccess) -> bool:
    try:
        return access.is_wrong(path.lstat())
    except OSError:
        return False


def _is_ours(status: os.stat_result) -> bool:
    return os.geteuid() in (0, status.st_uid)


def _mend(path: Path, access: FileAccess) -> bool:
    """Set group and permissions of one file or folder. Returns whether it has them now; another user's cannot be changed.

    The file is opened first and never through a link: another user may exchange it meanwhile.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    try:
        if access.group is not None:
            os.fchown(descriptor, -1, access.group)
        os.fchmod(descriptor, access.wanted(os.fstat(descriptor)))
        return not access.is_wrong(os.fstat(descriptor))
    except OSError:
        return False
    finally:
        os.close(descriptor)
