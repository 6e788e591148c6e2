"""Python processes: which packages they find, and which they leave alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder

SAFE_PATH_VARIABLE = "PYTHONSAFEPATH"
"""Python's variable with the meaning of its option -P, for processes whose command line is not ours."""


def python_command(*arguments: str) -> list[str]:
    """Returns the command that runs this Python with `arguments` and imports nothing from the working folder.

    It may have packages with the names of ours.
    """
    return [sys.executable, "-P", *arguments]


UNUSED = frozenset({"pandas", "trio", "tornado", "httpx._main"})
"""What libraries import if it is there, and we do not use: pyarrow pandas for its first array (0.4 s), httpcore trio, tenacity tornado, and
httpx its command line. Only notebooks use pandas."""


def hide_unused() -> None:
    """Hide `UNUSED` from this process, as if it were not installed."""
    sys.meta_path.insert(0, _Hiding())


class _Hiding(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        """Refuse what is hidden, leave everything else to other finders."""
        if fullname in UNUSED:
            raise ModuleNotFoundError(fullname)


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
