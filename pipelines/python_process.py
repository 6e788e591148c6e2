"""Python processes: which packages they find, which they leave alone, when Python searches for cycles in them, and how they end."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    pass

SAFE_PATH_VARIABLE = "PYTHONSAFEPATH"
"""Python's variable with the meaning of its option -P, for processes whose command line is not ours."""


def python_command(*arguments: str) -> list[str]:
    """Returns the command that runs this Python with `arguments` and imports nothing from the working folder.

    It may have packages with the names of ours.
    """
    return [sys.executable, "-P", *arguments]


UNUSED = frozenset({"pandas", "trio", "tornado", "httpx._main", "mako.ext.pygmentplugin"})
"""What libraries import if it is there, and we do not use: pyarrow pandas for its first array (0.4 s), httpcore trio, tenacity tornado,
httpx its command line, and mako the colors of its errors. Only notebooks use pandas."""

SELDOM_USED = frozenset({"dagster._daemon", "alembic.autogenerate"})
"""What libraries import whole, and use in few processes: a run of Dagster needs one type in the package of its daemon."""

NUMPY_THREADS = "OPENBLAS_NUM_THREADS"
"""The variable for the threads of numpy. We calculate nothing with them, and their start takes a tenth of a second of CPU."""

YOUNG_OBJECTS = 20_000
"""New objects until Python looks for cycles among them: with Python's 700, the search is a tenth of a small backup."""


def search_seldom() -> None:
    """Let Python look for cycles seldom."""
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)


def hide_unused() -> None:
    """Hide `UNUSED` from this process, as if it were not installed, and import `SELDOM_USED` on demand.

    numpy starts no threads, unless the user asks for them.
    """
    sys.meta_path.insert(0, _Hiding())
    import_on_demand(SELDOM_USED)
    os.environ.setdefault(NUMPY_THREADS, "1")


def import_on_demand(names: frozenset[str]) -> None:
    """Let this process import modules only when somebody asks for something in them. Their submodules can be imported before."""
    sys.meta_path.insert(0, _OnDemand(names))


class _Hiding(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        """Refuse what is hidden, leave everything else to other finders."""
        if fullname in UNUSED:
            raise ModuleNotFoundError(fullname)


class _OnDemand(MetaPathFinder):
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of these names with a loader that waits; leave everything else to other finders."""
        spec = PathFinder.find_spec(fullname, path) if fullname in self._names else None
        if spec is not None and spec.loader is not None:
            spec.loader = _Waiting(spec.loader)
        return spec


class _Waiting(Loader):
    """Makes a module that is empty until the first of its names is asked for."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, _spec: ModuleSpec) -> None:
        """Leave the module to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Note what is to do when Python finds no such name in the module."""
        module.__dict__["__getattr__"] = partial(self._fill, module)

    def _fill(self, module: ModuleType, name: str) -> Any:
        if module.__dict__.pop("__getattr__", None) is not None:
            self._loader.exec_module(module)
        return getattr(module, name)


@contextmanager
def importing() -> Iterator[None]:
    """This block imports much, which stays: Python searches for no cycles in it, neither now nor later."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def end(status: int) -> NoReturn:
    """End as Python ends a process, but leave its memory to the system: to take apart what it imported is a fifth of a small backup.

    `multiprocessing` ends its processes in the same way.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(status)
