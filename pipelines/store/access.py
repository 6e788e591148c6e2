"""Applies the configured permissions to every folder of data and state: the data folder, the sign-ins, Dagster's home."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipelines.errors import ConfigurationError
from pipelines.file_access import FileAccess, Mended, mend, named_group, restrict_new_files
from pipelines.settings.settings import Settings

DAGSTER_MARK = "# Dagster's settings for this data folder. Bookferry wrote"
"""How the `dagster.yaml` begins that Bookferry writes: without it, a Dagster home belongs to others, too."""

ENTRIES = (
    *("snapshots", "files", "plans", "work", "reports", "verifications", "drills", "trash", "dagster", "iceberg"),
    *("state.db", "library.duckdb", "owner", "iceberg.db"),
)
HIDDEN_ENTRIES = (".lease-", ".catalogue.", ".library.", ".report-", ".spilled-", ".drill-", ".doctor-", ".iceberg.")
"""Beginnings of the names in a data folder, for one that has other files, too."""


def access_of(settings: Settings) -> FileAccess:
    """The permissions that the setting `group` asks for. Raises `ConfigurationError` if this user cannot use that group."""
    return FileAccess(None if settings.group is None else named_group(settings.group))


def protect(settings: Settings, environ: Mapping[str, str] = os.environ) -> list[Mended]:
    """Restrict the files that this process will write, and mend the folders that are open. Returns what was mended, or could not be."""
    access = access_of(settings)
    restrict_new_files(access)
    return [
        mended
        for folder, its_access, known in _folders(settings, access, environ)
        if (mended := mend(folder, its_access, whole=_is_whole(folder, settings), known=known)) is not None
    ]


def allowed_people(group: str | None) -> str:
    """Who can open data and state, for messages."""
    return f"only this user and the group {group}" if group else "only this user"


def closed_message(mended: Mended, group: str | None) -> str:
    """What to tell a person about a folder that was open."""
    share = "" if group else " To share data, set `group` in bookferry.toml."
    changed = f"{mended.opened:,} files and folders" if mended.opened != 1 else "one file or folder"
    return (
        f"{mended.folder} was open to other users of this machine (mode {mended.mode:04o}). Now {allowed_people(group)} can open what is "
        f"in it: {changed} changed.{share}"
    )


def _folders(
    settings: Settings, access: FileAccess, environ: Mapping[str, str]
) -> Iterator[tuple[Path, FileAccess, tuple[str, ...]]]:
    """Yields each folder, its permissions, and the beginnings of the names that are ours in it."""
    home = Path(environ.get("DAGSTER_HOME") or settings.data / "dagster")
    if access.group is not None and home.is_relative_to(settings.data):
        for part in (home / "history", home / "schedules"):  # Dagster's SQLite files are never open to a group at first
            yield part, access, ()
            yield part / "runs", access, ()
    yield settings.data, access, (*ENTRIES, *HIDDEN_ENTRIES)
    if not home.is_relative_to(settings.data) and _is_made_by_us(home):
        yield home, access, ()
    try:
        sign_ins = settings.tokens_folder(environ)
    except ConfigurationError:  # a user without a home folder; the commands that need a sign-in say so
        return
    yield sign_ins, FileAccess(), tuple(f"{tenant}-" for tenant in settings.tenants)  # a sign-in is never shared


def _is_whole(folder: Path, settings: Settings) -> bool:
    """Whether a folder is ours alone. One with bookferry.toml is a person's, who may have other files there."""
    try:
        home = Path.home().resolve()
    except RuntimeError:  # neither $HOME nor an entry for this user, as in many containers
        home = None
    return not settings.path.resolve().is_relative_to(folder.resolve()) and folder.resolve() != home


def _is_made_by_us(home: Path) -> bool:
    try:
        return (home / "dagster.yaml").read_text(encoding="utf-8").startswith(DAGSTER_MARK)
    except (OSError, UnicodeDecodeError):
        return False
