"""Tells a full disk from a broken one, because SQLite reports both as an I/O error."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

LEAST_FREE = 1024 * 1024
"""Bytes. A disk with less free space is full for a database."""


def is_full(path: Path) -> bool:
    """Whether the disk that holds `path` is full. `path` need not exist: its nearest existing folder counts."""
    with suppress(OSError, StopIteration):
        nearest = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        return shutil.disk_usage(nearest).free < LEAST_FREE
    return False
