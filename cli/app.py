"""The application `bookferry`: all its commands, grouped and ordered as in its help."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands.analysis import query, tables
from cli.commands.application import Application
from cli.commands.backups import backup, describe, doctor, nightly, report, stage, status
from cli.commands.migration import drill, migrate, restore
from cli.commands.sign_in import login, whoami
from cli.commands.snapshots import snapshots
from cli.commands.start import demo, init, sandbox, ui
from cli.commands.state import state
from cli.options import CONFIG_HELP, JSON_HELP
from pipelines.version import VERSION

_COMMANDS = {
    "Start": (init, doctor, backup, nightly, status, login, whoami, demo),
    "Snapshots": (snapshots, restore, drill),
    "Analysis": (query, tables, report, describe, stage),
    "Migration": (migrate,),
    "Upkeep": (ui, state, sandbox),
}
"""Heading in the help → commands."""


app = Application(
    name="bookferry",
    help="Backs up, migrates and stages a hosted library for analysis.",
    pretty_exceptions_enable=False,
    epilog="Exit status: 0 complete, 1 failed, 2 usage or configuration, 3 partial, 4 a person must sign in, "
    "5 a safety limit stopped it, 6 differences found, 130 and 143 stopped by a signal, 141 nobody reads the output.",
)
_OPTIONS_OF_ITS_OWN = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

for heading, commands in _COMMANDS.items():
    for command in commands:
        if isinstance(command, typer.Typer):
            app.add_typer(command, rich_help_panel=heading)
        else:
            settings = _OPTIONS_OF_ITS_OWN if command is sandbox else {}
            app.command(rich_help_panel=heading, context_settings=settings)(command)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"bookferry {VERSION}")
        raise typer.Exit


@app.callback()
def bookferry(
    # the callbacks of the options act, or those of the same options of a command
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    config: Annotated[str | None, typer.Option("--config", metavar="FILE", help=CONFIG_HELP)] = None,
    json: Annotated[bool, typer.Option("--json", help=JSON_HELP)] = False,
) -> None:
    """Backs up, migrates and stages a hosted library for analysis."""
