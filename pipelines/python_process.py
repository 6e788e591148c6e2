"""Python processes: which packages they find, and which they leave alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

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


@contextmanager
def two_processes() -> Iterator[ProcessPoolExecutor]:
    """Two processes for work that both cores can share; they start fresh, because a fork would copy locks that other threads hold."""
    import multiprocessing  # noqa: PLC0415  most commands start no process
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    fresh = multiprocessing.get_context("spawn")
    with safe_import_path(), ProcessPoolExecutor(2, mp_context=fresh, initializer=hide_unused) as processes:
        yield processes
