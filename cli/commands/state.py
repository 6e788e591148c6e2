"""`bookferry state`: move. It names the function that answers it."""

from __future__ import annotations

from cli.boundary import command
from cli.commands.application import Application

state = Application(name="state", help="Move the state that runs share: budget, journal of writes, leases.")


@state.callback()
def _group() -> None:
    """Keep `move` a command of its own, although it is the only one."""


@state.command("move")
@command("cli.state:move")
def move() -> None:
    """Move the state to the database of postgres_env, which several machines share: whole or not at all. If it is stopped, run it again."""
