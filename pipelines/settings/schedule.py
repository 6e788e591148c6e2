"""The tables of bookferry.toml for retention and notifications, and the formats of times."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from pipelines.errors import ConfigurationError
from pipelines.settings.addresses import checked_hook_address

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Name of an environment variable. A secret that is written here by mistake seldom looks like one."""

WeeklyOrDaily = Annotated[str, StringConstraints(pattern=r"^((mon|tue|wed|thu|fri|sat|sun) )?([01]\d|2[0-3]):[0-5]\d$")]
"""A weekday and a time (`sun 12:00`), or a time of every day (`12:00`)."""


Monthly = Annotated[str, StringConstraints(pattern=r"^([1-9]|1\d|2[0-8]) ([01]\d|2[0-3]):[0-5]\d$")]
"""A day that every month has, and a time: `1 18:00`."""


def _checked_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is not a time zone; use a name such as Europe/Vienna or UTC") from None
    return name


TimeZone = Annotated[str, AfterValidator(_checked_time_zone)]

Count = Annotated[int, Field(ge=0, strict=True)]


class RetentionSettings(BaseModel):
    """Which snapshots retention keeps, and when it removes the others. Without this table, nothing is removed automatically."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_last: Count = 0
    keep_daily: Count = 0
    keep_weekly: Count = 0
    keep_monthly: Count = 0
    at: WeeklyOrDaily = "sun 15:00"

    @model_validator(mode="after")
    def _keeps_something(self) -> Self:
        if not any((self.keep_last, self.keep_daily, self.keep_weekly, self.keep_monthly)):
            raise ValueError(
                "does not say what to keep: name keep_last, keep_daily, keep_weekly or keep_monthly, or remove the table"
            )
        return self


@dataclass(frozen=True)
class Hook:
    """The receiver of a report: a command with its arguments, without a shell, or an address, which is secret like a password."""

    command: tuple[str, ...] = ()
    address: str = field(default="", repr=False)


def _hook(value: Any) -> Hook:
    if isinstance(value, str):
        return Hook(address=checked_hook_address(value))
    if isinstance(value, list) and value and all(isinstance(word, str) and "\0" not in word for word in value):
        if not value[0]:
            raise ValueError("must begin with the name of a command")
        return Hook(command=tuple(value))
    raise ValueError(
        'must be an address such as "https://..." or a command as a list of words such as ["/usr/local/bin/tell", "--loudly"]'
    )


_HookValue = Annotated[Hook | None, BeforeValidator(_hook), Field(repr=False)]

Occasion = Literal["success", "failure"]


class NotifySettings(BaseModel):
    """The receivers of reports about successful runs and about failed runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    success: _HookValue = None
    failure: _HookValue = None
    success_env: VariableName | None = None
    failure_env: VariableName | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        for occasion in ("success", "failure"):
            if getattr(self, occasion) and getattr(self, f"{occasion}_env"):
                raise ValueError(f"has both {occasion} and {occasion}_env: keep one of them")
        return self

    def hook(self, occasion: Occasion, environ: Mapping[str, str] = os.environ) -> Hook | None:
        """Return the receiver, if there is one; an address in an environment variable is read now."""
        variable: str | None = getattr(self, f"{occasion}_env")
        if variable is None:
            return getattr(self, occasion)  # type: ignore[no-any-return]
        where = f"{occasion}_env of the table notify in bookferry.toml names the environment variable {variable}"
        if not environ.get(variable):
            state = "empty" if variable in environ else "not set"
            raise ConfigurationError(f"{where}, which is {state}. Set it, for example: export {variable}=https://...")
        try:
            return Hook(address=checked_hook_address(environ[variable]))
        except ValueError as error:
            raise ConfigurationError(f"{where}, whose value {error}. Correct it.") from None
