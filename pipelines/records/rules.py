"""Names of rules: a digest of the version of Bookferry, of the libraries that it reads with, and of settings.

Equal names mean equal results for equal input.
"""

from __future__ import annotations

import hashlib
import platform
import unicodedata
from typing import Any

import msgspec
import pyarrow as pa

from pipelines.version import VERSION


def name_of_rules(*settings: Any) -> str:
    """The name of the rules with these settings, which msgspec can encode."""
    versions = [VERSION, platform.python_version(), unicodedata.unidata_version, msgspec.__version__, pa.__version__]
    return hashlib.sha256(msgspec.json.encode([versions, settings])).hexdigest()
