"""`bookferry state`: move. It names the function that answers it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.boundary import command
from cli.commands.application import Application

state = Application(name="state", help="Move the state that runs share: budget, journal of writes, leases.")


@state.callback()
def _group() -> None:
    """Keep `move` a command of its own, although it is the only one."""


@state.command("move")
@command("cli.state:move_to")
def move(
    to: Annotated[
        Literal["local", "postgres"],
        typer.Option(
            "--to", help="local, the data folder, or postgres, the database of postgres_env.", metavar="PLACE"
        ),
    ],
) -> None:
    """Move the state to a database that several machines share, or back: whole or not at all. If it is stopped, run it again."""
