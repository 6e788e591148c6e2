"""`bookferry state move`: prints what was moved and what to write into bookferry.toml."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from cli.output import Answer
from pipelines.humanize import counted
from pipelines.migration.state_move import MovedState, move_state
from pipelines.settings.settings import Settings


def move_to(settings: Settings, *, to: str) -> Answer:
    """Move the state, while no run is at work."""
    moved = move_state(settings, to)
    setting = None if settings.state == to else f'state = "{to}"'
    return Answer({**asdict(moved), "set": setting}, _lines(moved, settings, setting))


def _lines(moved: MovedState, settings: Settings, setting: str | None) -> Iterator[str]:
    of = counted(len(moved.libraries), "library", "libraries")
    if moved.finished:
        yield f"The state of {of} had left {moved.origin} already; it is in {moved.destination}."
    else:
        yield f"Moved {counted(moved.writes, 'write')} of the journal of {of} from {moved.origin} to {moved.destination}."
    if setting is not None:
        yield f"Now write {setting} at the top of {settings.path}: until then every run is refused."
