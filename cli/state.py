"""`bookferry state move`: prints what was moved and what to write into bookferry.toml."""

from __future__ import annotations

from dataclasses import asdict

from cli.output import Answer
from pipelines.humanize import counted
from pipelines.migration.state_move import move_state
from pipelines.settings.settings import Settings


def move(settings: Settings) -> Answer:
    """Move the state, while no run is at work."""
    moved = move_state(settings)
    lines = [f"Moved {counted(moved.writes, 'write')} of the journal from {moved.origin} to {moved.destination}."]
    if settings.state == "local":
        lines.append(f'Now write state = "postgres" at the top of {settings.path}: until then every run is refused.')
    return Answer(asdict(moved), lines)
