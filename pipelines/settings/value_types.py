"""Types of single values in bookferry.toml."""

from __future__ import annotations

import os
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, StringConstraints

from pipelines.errors import ConfigurationError

VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"

VariableName = Annotated[str, StringConstraints(pattern=VARIABLE)]
"""Name of an environment variable. A secret that is written here by mistake seldom looks like one."""


def variable_value(variable: str, where: str, example: str = "...") -> str:
    """The value of a variable that a key names. `where`: the file and the key, for the `ConfigurationError` of a missing one."""
    if value := os.environ.get(variable):
        return value
    raise ConfigurationError(
        f"{where} names the environment variable {variable}, which is {variable_state(variable)}. Set it, for example: export "
        f"{variable}={example}"
    )


def variable_state(variable: str) -> str:
    """What a variable without a value is, for messages."""
    return "empty" if variable in os.environ else "not set"


def _checked_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not a time zone; use a name such as Europe/Vienna or UTC") from None
    return name


TimeZone = Annotated[str, AfterValidator(_checked_time_zone)]
