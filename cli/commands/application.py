"""The kind of all applications here: what every command and group has beyond what Typer gives it.

Typer keeps the classes of contexts and parameters to itself: they are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _with_plain_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options, with `--help` as the last."""
        return _with_plain_types(super().get_params(ctx))


def _with_plain_types(parameters: list[Any]) -> list[Any]:
    """Typer's help puts `<bool>` after options that take no value, and `<float range>` and the like after others."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
        elif parameter.metavar is None and parameter.param_type_name == "option":
            parameter.metavar = _VALUES.get(parameter.type_descriptor.annotation, "TEXT")
    return parameters


_VALUES = {float: "NUMBER", int: "NUMBER", Path: "PATH"}
"""Type of a value → the word in its place in the help."""


class Application(typer.Typer):
    """A `typer.Typer` whose commands have `-h` beside `--help`, and whose help has a word for each value."""

    def __init__(self, *, cls: type[Group] = Group, **settings: Any) -> None:
        super().__init__(
            cls=cls, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}, **settings
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Returns a decorator that adds a command, as Typer's does."""
        return super().command(name, cls=_Command, **settings)
