"""Types of single values in bookferry.toml."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, StringConstraints

VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"

VariableName = Annotated[str, StringConstraints(pattern=VARIABLE)]
"""Name of an environment variable. A secret that is written here by mistake seldom looks like one."""


def _checked_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not a time zone; use a name such as Europe/Vienna or UTC") from None
    return name


TimeZone = Annotated[str, AfterValidator(_checked_time_zone)]
