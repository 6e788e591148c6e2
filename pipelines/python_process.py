"""Starts Python processes that import nothing from the working folder: it may have packages with the names of ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH_VARIABLE = "PYTHONSAFEPATH"
"""Python's variable with the meaning of its option -P, for processes whose command line is not ours."""


def python_command(*arguments: str) -> list[str]:
    """Returns the command that runs this Python with `arguments`."""
    return [sys.executable, "-P", *arguments]


@contextmanager
def safe_import_path() -> Iterator[None]:
    """Makes the processes that a library starts in this block ignore the working folder, too."""
    before = os.environ.get(SAFE_PATH_VARIABLE)
    os.environ[SAFE_PATH_VARIABLE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH_VARIABLE]
        else:
            os.environ[SAFE_PATH_VARIABLE] = before
