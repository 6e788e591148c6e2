"""The console script `bookferry`: checks that every package it is about to import is Bookferry's own, then runs the command.

Our packages have common names (`cli`, `resources`). A folder on PYTHONPATH or another installed package may have the same ones, and
Python would run the first that it finds.
"""

from __future__ import annotations

import json
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NoReturn

PACKAGES = ("cli", "assets_defs", "resources", "pipelines", "sandbox", "sql")

ROOT = Path(__file__).resolve().parent
"""The folder of our packages: a checkout, or the site-packages of an installation."""

SIGN = '"""Bookferry'
"""What the `__init__.py` of each of our packages begins with: a package that was installed over ours has the place of ours."""

USAGE_STATUS = 2
"""`ExitStatus.USAGE`, which cannot be imported before the check."""


def main() -> NoReturn:
    """Run `bookferry`, or print one line and exit with 2 if a package under one of our names is not ours."""
    for name in PACKAGES:
        if place := _foreign(name):
            _refuse(
                f"Python finds `{name}` in {place}, which is not Bookferry's and hides ours. Remove its folder from PYTHONPATH, or "
                "install Bookferry into an environment of its own."
            )
    from cli.main import main as run  # noqa: PLC0415  only after the check

    run()


def _refuse(message: str) -> NoReturn:
    sys.stderr.write(f"error: {message}\n")
    if "--json" in sys.argv:
        sys.stdout.write(json.dumps({"error": message, "exit_status": USAGE_STATUS}, ensure_ascii=False) + "\n")
    sys.exit(USAGE_STATUS)


def _foreign(name: str) -> Path | None:
    """Returns the place where Python finds a package that is not ours, or None."""
    found = PathFinder.find_spec(name)
    if (
        found is None or found.origin is None
    ):  # a folder without __init__.py is found only where there is no real package
        return None
    place = Path(found.origin)
    ours = place.resolve() == ROOT / name / "__init__.py" and place.read_text(encoding="utf-8").startswith(SIGN)
    return None if ours else place


if __name__ == "__main__":
    main()
