"""The command that starts another Python with our packages."""

from __future__ import annotations

import sys

SAFE_PATH_VARIABLE = "PYTHONSAFEPATH"
"""Python's variable with the meaning of its option -P, for processes whose command line is not ours."""


def python_command(*arguments: str) -> list[str]:
    """Returns the command that runs this Python with `arguments` and imports nothing from the working folder.

    It may have packages with the names of ours.
    """
    return [sys.executable, "-P", *arguments]
