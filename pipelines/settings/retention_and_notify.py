"""The tables [retention] and [notify] of bookferry.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pipelines.errors import ConfigurationError
from pipelines.settings.addresses import checked_hook_address
from pipelines.settings.value_types import VARIABLE, variable_value

Count = Annotated[int, Field(ge=0, strict=True)]


class RetentionSettings(BaseModel):
    """How many snapshots stay: the newest ones, and one for each of the newest days, weeks and months with snapshots.

    Without this table, nothing is removed automatically.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_last: Count = 0
    keep_daily: Count = 0
    keep_weekly: Count = 0
    keep_monthly: Count = 0

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


def _receiver(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(VARIABLE, value):
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) and "\0" not in word for word in value):
        if not value[0]:
            raise ValueError("must begin with the name of a command")
        return tuple(value)
    raise ValueError(
        'must be a command as a list of words, such as ["/usr/local/bin/tell", "--loudly"], or the name of the environment variable that '
        "holds an address, never the address itself"
    )


Receiver = Annotated[str | tuple[str, ...] | None, BeforeValidator(_receiver), Field(repr=False)]
"""A command, or the name of the variable that holds an address."""

Occasion = Literal["success", "failure"]


class NotifySettings(BaseModel):
    """The receivers of reports about successful runs and about failed runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    success: Receiver = None
    failure: Receiver = None

    @property
    def variables(self) -> set[str]:
        """The variables that hold addresses."""
        return {receiver for receiver in (self.success, self.failure) if isinstance(receiver, str)}

    def hook(self, occasion: Occasion) -> Hook | None:
        """Return the receiver, if there is one; its address is read now."""
        receiver: str | tuple[str, ...] | None = getattr(self, occasion)
        if receiver is None:
            return None
        if isinstance(receiver, tuple):
            return Hook(command=receiver)
        where = f"{occasion} of the table notify in bookferry.toml"
        address = variable_value(receiver, where, "https://...")
        try:
            return Hook(address=checked_hook_address(address))
        except ValueError as error:
            raise ConfigurationError(
                f"{where} names the environment variable {receiver}, whose value {error}. Correct it."
            ) from None
