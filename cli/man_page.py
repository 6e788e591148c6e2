"""The manual page bookferry(1), made from the help of the commands: `make docs` writes docs/bookferry.1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from cli.app import app
from pipelines.version import VERSION

HEAD = """\
.\\" Made from the help of the commands by `make docs`.
.TH BOOKFERRY 1 "" "Bookferry {version}" "User Commands"
.SH NAME
bookferry \\- back up, migrate and analyse a hosted library
.SH SYNOPSIS
.B bookferry
[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]
"""

FILES = """\
.SH FILES
.TP
.I bookferry.toml
The configuration, in the working folder, unless \\fB\\-\\-config\\fR or \\fBBOOKFERRY_CONFIG\\fR names another.
.SH ENVIRONMENT
.TP
.B BOOKFERRY_CONFIG
The configuration file.
.TP
.B NO_COLOR, FORCE_COLOR
Without colors; with colors also where the output is no terminal.
"""


def man_page() -> str:
    """The page in the language of man(7)."""
    root: Any = typer.main.get_command(app)
    context = typer.Context(root, info_name="bookferry")
    return "".join((HEAD.format(version=VERSION), *_root(root, context), *_commands(root, context), FILES))


def _root(root: Any, context: Any) -> Iterator[str]:
    yield f".SH DESCRIPTION\n{_text(root.help)}\n.SH OPTIONS\n"
    yield from _options(root, context)
    yield ".PP\n\\fB\\-\\-config\\fR and \\fB\\-\\-json\\fR may also stand after a command.\n"
    yield f".SH EXIT STATUS\n{_text(root.epilog.removeprefix('Exit status: '))}\n"


def _commands(group: Any, context: Any, heading: str = "") -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = typer.Context(command, info_name=name, parent=context)
        panel = getattr(command, "rich_help_panel", None)
        if isinstance(panel, str) and panel != heading:
            heading = panel
            yield f".SH {_text(heading.upper())}\n"
        if hasattr(command, "list_commands"):
            yield from _commands(command, inner, heading)
            continue
        usage = " ".join(_argument(piece) for piece in command.collect_usage_pieces(inner))
        yield f".SS {_text(inner.command_path.partition(' ')[2])} {_text(usage)}\n{_text(command.help or '')}\n"
        yield from _options(command, inner)


def _options(command: Any, context: Any) -> Iterator[str]:
    """Arguments and options. Those of the program itself, which each command takes, too, stand at the top of the page only."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        common = context.parent is not None and parameter.name in _OF_THE_PROGRAM
        if record is None or common or "--help" in record[0]:
            continue
        name = " ".join(record[0].split())
        if parameter.param_type_name == "argument":
            name = _argument(name.partition(" ")[0])
        yield f".TP\n.B {_text(name)}\n{_text(record[1] or '')}\n"


_OF_THE_PROGRAM = {"config", "json"}


def _argument(piece: str) -> str:
    """The name of an argument in capitals: what a person puts in its place."""
    return piece.strip("{}").upper()


def _text(text: str) -> str:
    """Text as man(7) takes it: a backslash and a hyphen are signs of its language, and so is a dot at the begin of a line."""
    plain = " ".join(text.replace("\\", "\\e").replace("-", "\\-").split())
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


if __name__ == "__main__":
    typer.echo(man_page(), nl=False)
