"""Keeps the SQLite databases of Dagster's history open during a run.

Dagster opens the database and compiles its statements anew for each event: a quarter of the work of a small backup. It has no setting for
that, so its one function that connects is replaced.
"""
# ruff: noqa: SLF001

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Connection, Engine, create_engine


@contextmanager
def history_kept_open(instance: dg.DagsterInstance) -> Iterator[None]:
    """Within the block, this instance reuses its connections. Another storage than Dagster's SQLite does so anyway."""
    history = instance.event_log_storage
    if not isinstance(history, SqliteEventLogStorage):
        yield
        return
    engines: dict[str, Engine] = {}
    open_once = history._connect

    with ExitStack() as closing:

        @contextmanager
        def connect(shard: str) -> Iterator[Connection]:
            if shard not in history._initialized_dbs:
                with open_once(shard):  # creates its tables
                    pass
            with history._db_lock:
                if shard not in engines:
                    waits = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
                    engines[shard] = create_engine(history.conn_string_for_shard(shard), connect_args=waits)
                    closing.callback(engines[shard].dispose)
                with engines[shard].begin() as connection:
                    yield connection

        history._connect = connect  # type: ignore[method-assign]
        closing.callback(setattr, history, "_connect", open_once)
        yield
