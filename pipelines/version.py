"""Which Bookferry this is; the manifest of a snapshot names it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("bookferry")
except PackageNotFoundError:  # run from a checkout that nobody installed
    VERSION = "0+checkout"
