"""Opens Dagster's history for a run, where it is in SQLite.

Dagster opens the database and compiles its statements anew for each event, waits for the disk twice an event, and lets Alembic read all of
its migrations for each database: a third of a small backup. It has no setting for that, so its functions that connect are replaced.
"""
# ruff: noqa: SLF001

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
from alembic.config import Config
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from sqlalchemy import Connection, Engine, create_engine, event


@contextmanager
def history_opened(home: Path) -> Iterator[None]:
    """Within the block, Dagster's databases in `home` are opened, created and written with less waiting; `home` is absolute.

    They stay whole at a power failure (write-ahead log), which may cost the last events of a run: SQLite waits for the disk only when it
    closes the database or takes over the log.
    """

    def connect(dialect: Any, _record: Any, places: list[Any], options: dict[str, Any]) -> Any:
        if dialect.name != "sqlite" or not Path(places[0]).is_relative_to(home):
            return None
        connection = dialect.connect(*places, **options)
        with suppress(dialect.dbapi.OperationalError):  # another process creates it just now
            connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    event.listen(Engine, "do_connect", connect)
    try:
        with _migrations_read_once():
            yield
    finally:
        event.remove(Engine, "do_connect", connect)


@contextmanager
def _migrations_read_once() -> Iterator[None]:
    read: dict[str | None, ScriptDirectory] = {}
    reads = ScriptDirectory.__dict__["from_config"]

    def read_once(config: Config) -> ScriptDirectory:
        place = config.get_main_option("script_location")
        if place not in read:
            read[place] = reads.__func__(ScriptDirectory, config)
        return read[place]

    ScriptDirectory.from_config = read_once  # type: ignore[method-assign]
    try:
        yield
    finally:
        ScriptDirectory.from_config = reads  # type: ignore[method-assign]


@contextmanager
def history_kept_open(instance: dg.DagsterInstance) -> Iterator[None]:
    """Within the block, this instance reuses its connections. Another storage than Dagster's SQLite does so anyway."""
    with ExitStack() as closing:
        if isinstance(instance.event_log_storage, SqliteEventLogStorage):
            closing.enter_context(_events_kept_open(instance.event_log_storage))
        if isinstance(instance.run_storage, SqliteRunStorage):
            closing.enter_context(_runs_kept_open(instance.run_storage))
        yield


@contextmanager
def _events_kept_open(history: SqliteEventLogStorage) -> Iterator[None]:
    engines: dict[str, Engine] = {}
    there = set[str]()
    open_once, look = history._connect, history.has_table

    with ExitStack() as closing:

        @contextmanager
        def connect(shard: str) -> Iterator[Connection]:
            if shard not in history._initialized_dbs:
                with open_once(shard):  # creates its tables
                    pass
            with history._db_lock:
                if shard not in engines:
                    engines[shard] = _engine(history.conn_string_for_shard(shard))
                    closing.callback(engines[shard].dispose)
                with engines[shard].begin() as connection:
                    yield connection

        def has_table(table_name: str) -> bool:
            if table_name not in there and look(table_name):
                there.add(table_name)
            return table_name in there

        history._connect, history.has_table = connect, has_table  # type: ignore[method-assign]
        closing.callback(setattr, history, "_connect", open_once)
        closing.callback(setattr, history, "has_table", look)
        yield


@contextmanager
def _runs_kept_open(runs: SqliteRunStorage) -> Iterator[None]:
    open_once, engine = runs.connect, _engine(runs._conn_string)
    runs.connect = engine.begin  # type: ignore[method-assign]
    try:
        yield
    finally:
        runs.connect = open_once  # type: ignore[method-assign]
        engine.dispose()


def _engine(address: str) -> Engine:
    return create_engine(address, connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS})
