"""The application `bookferry`: all its commands, in the order of its help."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands.analysis import query, tables
from cli.commands.backups import backup, describe, doctor, report, stage
from cli.commands.migration import drill, migrate, restore
from cli.commands.sign_in import login, whoami
from cli.commands.snapshots import snapshots
from cli.commands.start import demo, init, sandbox, ui
from cli.commands.state import state
from pipelines.version import VERSION

app = typer.Typer(
    name="bookferry",
    help="Backs up, migrates and stages a hosted library for analysis.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit status: 0 complete, 1 failed, 2 usage or configuration, 3 partial, 4 a person must sign in, "
    "5 a safety limit stopped it, 6 differences found, 130 and 143 stopped by a signal, 141 nobody reads the output.",
)
for function in (demo, init, login, whoami, doctor, describe, backup, report, query, tables, stage, restore, drill, ui):
    app.command()(function)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})(
    sandbox
)
app.add_typer(snapshots, name="snapshots")
app.add_typer(migrate, name="migrate")
app.add_typer(state, name="state")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bookferry {VERSION}")
        raise typer.Exit


@app.callback()
def bookferry(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Backs up, migrates and stages a hosted library for analysis."""
