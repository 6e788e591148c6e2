"""The permissions of everything in a folder."""

from __future__ import annotations

import stat
from pathlib import Path


def modes(folder: Path) -> dict[str, str]:
    """Path below the folder → type and permissions in octal, for everything in it and itself."""
    raw_modes = {str(path.relative_to(folder)): path.lstat().st_mode for path in [folder, *folder.rglob("*")]}
    return {name: f"{'d' if stat.S_ISDIR(mode) else 'f'}{stat.S_IMODE(mode):o}" for name, mode in raw_modes.items()}


def open_to_others(folder: Path) -> dict[str, str]:
    """What is not for this user alone."""
    return {name: mode for name, mode in modes(folder).items() if mode not in ("d700", "f600")}
