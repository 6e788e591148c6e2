"""The version of Bookferry; the manifest of a snapshot contains it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("bookferry")
except PackageNotFoundError:  # run from a checkout without an installation
    VERSION = "0+checkout"
