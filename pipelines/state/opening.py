"""Opens the state that the settings name: the file in the data folder, or the database of `postgres_env`."""

from __future__ import annotations

from pipelines.settings.settings import Settings
from pipelines.state.local import LocalState
from pipelines.state.store import State

STATE_FILE = "state.db"


def open_state(settings: Settings) -> State:
    """The state of these settings. Nothing is read or written yet."""
    if settings.state == "local":
        return local_state(settings)
    return postgres_state(settings)


def local_state(settings: Settings) -> LocalState:
    """The state in the data folder, whatever the settings name."""
    return LocalState(settings.data / STATE_FILE)


def postgres_state(settings: Settings) -> State:
    """The state in the database, whatever the settings name."""
    from pipelines.state.postgres import PostgresState  # noqa: PLC0415  most users have no database

    return PostgresState(settings.state_database())
