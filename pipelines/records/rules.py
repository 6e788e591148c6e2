"""Names of rules: a digest of the code that follows them, its libraries and its settings. Equal names mean equal results for equal input.

A number that people raise with each change of a rule would be forgotten some day.
"""

from __future__ import annotations

import hashlib
import platform
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

import pipelines


def name_of_rules(parts: tuple[str, ...], *settings: Any) -> str:
    """The name of the rules in these files and folders of `pipelines`, with these settings, which msgspec can encode."""
    versions = [platform.python_version(), unicodedata.unidata_version, msgspec.__version__, pa.__version__]
    return hashlib.sha256(msgspec.json.encode([_code(parts), versions, settings])).hexdigest()


@lru_cache
def _code(parts: tuple[str, ...]) -> str:
    """SHA-256 of the code."""
    found, (home,) = hashlib.sha256(), pipelines.__path__
    for part in (Path(home, name) for name in parts):
        for path in sorted(part.rglob("*.py")) if part.is_dir() else [part]:
            found.update(path.relative_to(home).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()
