"""Who may open the files that Bookferry writes: this user alone, or also the members of one group.

New files get their permissions from the process's umask, so that libraries (SQLite, DuckDB, Dagster) and child processes follow, and a
killed process leaves nothing open. Permissions that others change are not changed back: `bookferry doctor` says them.
"""

from __future__ import annotations

import grp
import os
import stat
from contextlib import suppress
from pathlib import Path

from pipelines.errors import ConfigurationError

_group: int | None = None
_inherited_umask = -1


def restrict_new_files(group: str | None) -> None:
    """Give this process, and those that it starts, the umask of private files, or of files for the members of `group`."""
    global _group, _inherited_umask  # noqa: PLW0603  the umask belongs to the whole process, too
    _group = None if group is None else named_group(group)
    before = os.umask(0o077 if _group is None else 0o007)
    _inherited_umask = before if _inherited_umask < 0 else _inherited_umask


def inherited_umask() -> int:
    """Returns the umask that this process began with, for a person's own programs; -1 where it has not changed."""
    return _inherited_umask


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


def make_folder(folder: Path) -> None:
    """Create a folder of data with its parents, unless it exists. A shared one hands its group on to everything new in it (setgid)."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if _group is not None:
            os.chown(folder, -1, _group)
            folder.chmod(0o2770)


def make_file(path: Path) -> None:
    """Create an empty file for SQLite, unless it exists: SQLite alone would not let the group write to it."""
    with suppress(FileExistsError, FileNotFoundError, PermissionError):  # SQLite reports the last two
        path.touch(0o600 if _group is None else 0o660, exist_ok=False)


def make_private_file(path: Path) -> None:
    """Create an empty file for SQLite that only this user can open, in such a folder. SQLite gives its mode to the files beside it."""
    with suppress(OSError):  # SQLite reports them
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(0o600)
        path.chmod(0o600)


def share_databases(*paths: Path) -> None:
    """Let the group write to SQLite files that a library of others has made, and to those that SQLite has beside them."""
    if _group is not None:
        for path in paths:
            for file in path.parent.glob(f"{path.name}*"):
                with suppress(FileNotFoundError, PermissionError):
                    file.chmod(0o660)


def wrong_entries(folder: Path, names: tuple[str, ...], group: str | None) -> list[Path]:
    """The entries of a folder, of those whose names begin with `names`, that others can open, or that `group` cannot use; sorted.

    Nothing where the folder itself is right: nobody else gets deeper. Links and what is in a folder are not looked at.
    """
    number = None if group is None else named_group(group)
    try:
        if not _is_wrong(folder, number):
            return []
        return sorted(path for path in folder.iterdir() if path.name.startswith(names) and _is_wrong(path, number))
    except OSError:  # there is no such folder, or it is not for this user
        return []


def _is_wrong(path: Path, group: int | None) -> bool:
    status = path.lstat()
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        return False
    if group is None:
        return status.st_mode & 0o077 != 0
    needed = 0o2070 if stat.S_ISDIR(status.st_mode) else 0o060
    return status.st_mode & 0o007 != 0 or status.st_mode & needed != needed or status.st_gid != group
