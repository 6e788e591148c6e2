"""The kind of all applications here: what every command and group has beyond what Typer gives it.

Typer keeps the classes of contexts and parameters to itself: they are `Any` here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_bool(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_bool(super().get_params(ctx))


def _without_bool(parameters: list[Any]) -> list[Any]:
    """Typer's help puts `<bool>` after options that take no value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class Application(typer.Typer):
    """A `typer.Typer` whose commands have `-h` beside `--help`."""

    def __init__(self, **settings: Any) -> None:
        names = {"help_option_names": ["-h", "--help"]}
        super().__init__(cls=_Group, no_args_is_help=True, context_settings=names, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Returns a decorator that adds a command, as Typer's does."""
        return super().command(name, cls=_Command, **settings)
