"""`bookferry state`: move. It imports what it runs when it runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.boundary import command
from cli.commands.application import Application
from cli.commands.options import ConfigOption, JsonOption, settings_of
from cli.output import Output
from pipelines.errors import ExitStatus

state = Application(name="state", help="Move the state that runs share: budget, journal of writes, leases.")


@state.callback()
def _group() -> None:
    """Keep `move` a command of its own, although it is the only one."""


@state.command("move")
@command("cli.state")
def move(
    to: Annotated[
        Literal["local", "postgres"],
        typer.Option(
            "--to", help="local, the data folder, or postgres, the database of postgres_env.", metavar="PLACE"
        ),
    ],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Move the state to a database that several machines share, or back: whole or not at all. If it is stopped, run it again."""
    from cli.state import move_to

    return move_to(settings_of(config), to, Output(as_json=json))
