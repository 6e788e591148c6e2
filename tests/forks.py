"""Runs commands, and functions that are to be killed, in their own processes without importing everything again for each of them.

Python's fork server imports what the command line imports, and forks for each process. A command has its own folder, environment,
standard streams and exit status, as after a normal start, but without the second or two of the imports. Tests of the start and the stop
use a normal process (`Installation.start`, test_project, test_docs_readme).
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *(f"cli.{path.stem}" for path in sorted((ROOT / "cli").glob("*.py")) if path.stem != "__init__"),
        "assets_defs.definitions",
        "duckdb",
        "pyarrow.parquet",
        # What these import only when they are used: in the process that forks once, instead of in each command.
        "alembic.command",
        "dagster._core.execution.execute_in_process",
        "dagster._core.instance.factory",
        "dagster._core.launcher.default_run_launcher",
        "dagster._core.run_coordinator.default_run_coordinator",
        "dagster._core.storage.event_log.sqlite",
        "dagster._core.storage.noop_compute_log_manager",
        "dagster._core.storage.root",
        "dagster._core.storage.runs.sqlite",
        "dagster._core.storage.schedules.sqlite",
        "dagster._core.storage.sqlite_storage",
        "httpcore",
        "jinja2.ext",
        "dotenv",
        "pandas",
        "sqlalchemy.dialects.sqlite.pysqlite",
        "upath.implementations.local",
        "tests.migration.chaos",
        "tests.frozen",
    ]
)


def start(work: Callable[..., object], *arguments: object) -> BaseProcess:
    """Start a function in a process of its own, with the environment of this one. It ends with this one, if not before."""
    _start_server()
    process = CONTEXT.Process(target=_work, args=(dict(os.environ), work, *arguments), daemon=True)
    process.start()
    return process


def kill_at(owner: object, name: str, moment: str, matches: Callable[..., bool]) -> None:
    """Kill this process (kill -9) before or after the first call of a method or function for whose arguments `matches` holds."""
    method = getattr(owner, name)

    def dying(*arguments: Any, **options: Any) -> Any:
        kills = matches(*arguments)
        if kills and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = method(*arguments, **options)
        if kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, dying)


def _work(environment: dict[str, str], work: Callable[..., object], *arguments: object) -> None:
    os.environ.clear()
    os.environ.update(environment)
    work(*arguments)


def run_forked(
    arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], typed: str, seconds: float
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` with these."""
    _start_server()
    with TemporaryDirectory() as files:
        streams = [Path(files, name) for name in ("stdin", "stdout", "stderr")]
        streams[0].write_text(typed, encoding="utf-8")
        process = CONTEXT.Process(target=_run, args=(list(arguments), folder, dict(environment), streams))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(list(arguments), seconds)
        texts = (stream.read_bytes().decode().replace("\r\n", "\n") for stream in streams[1:])
        return subprocess.CompletedProcess(list(arguments), process.exitcode, *texts)


@cache
def _start_server() -> None:
    """It finds our packages, and has no variable of a test. A process with threads must not fork."""
    with patch.dict(os.environ, PYTHONPATH=str(ROOT), PYTHONWARNINGS="default", OPENBLAS_NUM_THREADS="1"):
        forkserver.ensure_running()


def _run(arguments: list[str], folder: Path, environment: dict[str, str], streams: list[Path]) -> NoReturn:
    from cli.main import main  # noqa: PLC0415  imported long since, for what forks

    for number, stream in enumerate(streams):
        opened = os.open(stream, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path.insert(0, "")
    sys.argv = [str(ROOT / "cli" / "main.py"), *arguments]
    try:
        main()
    except SystemExit as end:
        _end(end.code)
    _end(None)


def _end(status: object) -> NoReturn:
    """As the interpreter ends, but for taking apart a thousand modules, which takes longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))
