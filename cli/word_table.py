"""The table of commands, options and arguments for `cli.commands.quick_completion`: `make docs` writes cli/commands/words.json."""

from __future__ import annotations

import inspect
import json
import sys
from typing import Any

import typer

from cli.app import app
from cli.commands import completion, names

_KINDS = {getattr(completion, kind): kind for kind in names.KINDS}
"""What Typer calls for the names of an argument → the kind of names."""


def word_table() -> str:
    """The table, in JSON."""
    root: Any = typer.main.get_command(app)
    table = _described(root, root.make_context("bookferry", [], resilient_parsing=True))
    return json.dumps(table, ensure_ascii=False, indent=1) + "\n"


def _described(command: Any, context: Any) -> dict[str, Any]:
    parameters = command.get_params(context)
    described: dict[str, Any] = {
        "help": command.get_short_help_str(),
        "options": [
            {
                "names": [*sorted(one.opts), *one.secondary_opts],  # Typer has those of --help in any order
                "help": " ".join((one.help or "").split()),
                "value": not one.is_flag,
                "multiple": one.multiple,
                "offers": _offers(one),
            }
            for one in parameters
            if one.param_type_name == "option"
        ],
    }
    if hasattr(command, "list_commands"):
        inner = {name: command.get_command(context, name) for name in command.list_commands(context)}
        described["commands"] = {
            name: _described(one, one.make_context(name, [], parent=context, resilient_parsing=True))
            for name, one in inner.items()
        }
    else:
        described["arguments"] = [_offers(one) for one in parameters if one.param_type_name == "argument"]
    return described


def _offers(parameter: Any) -> str | list[str]:
    """A kind of names, the choices, "file", or nothing."""
    asked = parameter._custom_shell_complete  # noqa: SLF001  around our function
    function = inspect.getclosurevars(asked).nonlocals["autocompletion"].__wrapped__ if asked else None
    kind, described = _KINDS.get(function, ""), parameter.type_descriptor
    if kind or not described.is_choice:
        return kind or ("file" if described.is_file else "")
    return [str(one) for one in described.choices]


if __name__ == "__main__":
    sys.stdout.write(word_table())
