"""`bookferry state move`: prints what was moved and what to write into bookferry.toml."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console

from cli.output import Output
from pipelines.errors import ExitStatus
from pipelines.humanize import counted
from pipelines.migration.state_move import MovedState, move_state
from pipelines.settings.settings import Settings


def move_to(settings: Settings, to: str, output: Output) -> ExitStatus:
    """Move the state, while no run is at work."""
    moved = move_state(settings, to)
    setting = None if settings.state == to else f'state = "{to}"'
    output.result({**asdict(moved), "set": setting}, lambda console: _print(console, moved, settings, setting))
    return ExitStatus.COMPLETE


def _print(console: Console, moved: MovedState, settings: Settings, setting: str | None) -> None:
    of = "1 library" if len(moved.libraries) == 1 else f"{len(moved.libraries):,} libraries"
    if moved.finished:
        done = f"The state of {of} had left {moved.origin} already; it is in {moved.destination}."
    else:
        done = (
            f"Moved {counted(moved.writes, 'write')} of the journal of {of} from {moved.origin} to {moved.destination}."
        )
    console.print(done)
    if setting is not None:
        console.print(f"Now write {setting} at the top of {settings.path}: until then every run is refused.")
