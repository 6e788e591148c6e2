"""The console script `bookferry`, and Bookferry in Python: `from bookferry import library`.

Our packages have common names (`cli`, `pipelines`). A folder on PYTHONPATH, another installed package or the folder of a notebook may have
the same ones, and Python would run the first that it finds. The script refuses such packages; the import finds ours beside them.

The file itself can be read by Python 3.6, so that an old Python gets a message instead of a syntax error: no deferred annotations, no `:=`.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from pipelines.analysis import Tables

OLDEST = (3, 11)
"""The oldest Python that Bookferry runs on, as in pyproject.toml; pip refuses others, and a checkout says so itself."""

PACKAGES = ("cli", "assets_defs", "resources", "pipelines", "sandbox", "sql")

ROOT = Path(__file__).resolve().parent
"""The folder of our packages: a checkout, or the site-packages of an installation."""

SIGN = '"""Bookferry'
"""What the `__init__.py` of each of our packages begins with: a package that was installed over ours has the place of ours."""

USAGE_STATUS = 2
"""`ExitStatus.USAGE`, which cannot be imported before the check."""


def main() -> NoReturn:
    """Run `bookferry`, or print one line and exit with 2 if a package under one of our names is not ours."""
    _check_python()
    for name in PACKAGES:
        place = _foreign(name)
        if place is not None:
            _refuse(
                f"Python finds `{name}` in {place}, which is not Bookferry's and hides ours. Remove its folder from PYTHONPATH, or "
                "install Bookferry into an environment of its own."
            )
    if sys.argv[1:] == ["--version"]:
        from pipelines.version import VERSION  # noqa: PLC0415  without the rest, which takes ten times as long

        sys.stdout.write(f"bookferry {VERSION}\n")
        sys.exit(0)
    from cli.main import main as run  # noqa: PLC0415  only after the check

    run()


def library(config: "str | Path | None" = None, *, personal: bool = False) -> "Tables":
    """The current tables of the data in bookferry.toml: `library().publications.df()`; see `pipelines.analysis`.

    `config`: the file, else $BOOKFERRY_CONFIG, else bookferry.toml in the working folder. `personal`: include the personal columns.
    Packages of your own with the names of ours do no harm and stay as they are.
    """
    _check_python()
    with _our_packages():
        from pipelines import analysis  # noqa: PLC0415  only after the search was made safe

        return analysis.library(config, personal=personal)


_ours: "dict[str, ModuleType]" = {}
"""Our modules between two calls, where packages of somebody else have their names."""

_lock = threading.RLock()


@contextmanager
def _our_packages() -> "Iterator[None]":
    """Within this block our names are those of our packages; after it, packages of somebody else have them back."""
    with _lock:
        theirs = {name: sys.modules.pop(name) for name in _modules() if not _is_ours(sys.modules[name])}
        shared = theirs or any(map(_foreign, PACKAGES))
        if not shared:
            yield
            return
        sys.modules.update(_ours)
        sys.path.insert(0, str(ROOT))
        try:
            yield
        finally:
            sys.path.remove(str(ROOT))
            _ours.update({name: sys.modules.pop(name) for name in _modules()})
            sys.modules.update(theirs)


def _modules() -> "list[str]":
    """The names of all loaded modules in packages with our names."""
    return [name for name in sys.modules if name.partition(".")[0] in PACKAGES]


def _is_ours(module: ModuleType) -> bool:
    return module.__spec__ is not None and Path(module.__spec__.origin or "/").is_relative_to(ROOT)


def _check_python() -> None:
    if sys.version_info[:2] < OLDEST:
        oldest, running = (".".join(map(str, version)) for version in (OLDEST, sys.version_info[:3]))
        _refuse(
            f"Bookferry needs Python {oldest} or newer; {sys.executable} is Python {running}. Run it with a newer one."
        )


def _refuse(message: str) -> NoReturn:
    sys.stderr.write(f"error: {message}\n")
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": message, "exit_status": USAGE_STATUS}, ensure_ascii=False) + "\n")
    sys.exit(USAGE_STATUS)


def _foreign(name: str) -> "Path | None":
    """Returns the place where Python finds a package that is not ours, or None."""
    spec = PathFinder.find_spec(name)
    if spec is None or spec.origin is None:  # a folder without __init__.py is found only where there is no real package
        return None
    place = Path(spec.origin)
    ours = place.resolve() == ROOT / name / "__init__.py" and place.read_text(encoding="utf-8").startswith(SIGN)
    return None if ours else place


if __name__ == "__main__":
    main()
