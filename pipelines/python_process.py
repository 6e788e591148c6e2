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


def hide_pandas() -> None:
    """Hide pandas from this process: pyarrow would import it for its first array, which costs 0.4 s. Only notebooks use it."""
    sys.meta_path.insert(0, _NoPandas())


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        """Refuse pandas, leave everything else to other finders."""
        if fullname == "pandas":
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
