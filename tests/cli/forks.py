"""Runs many commands in their own processes without importing everything again for each of them.

One process imports what the command line imports, and forks for each command. A command has its own process, folder, environment,
standard streams and exit status, as after a normal start, but without the second or two of the imports. Tests of the start and the stop
use a normal process (`Installation.start`, test_project, test_docs_readme).
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

COMMANDS = sorted(path.stem for path in (Path(__file__).parents[2] / "cli").glob("*.py") if path.stem != "__init__")
MODULES = (
    *(f"cli.{name}" for name in COMMANDS),
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
)
_MESSAGE = 1 << 20


class Forks:
    """Starts the process that forks with its first command; it ends with this one."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = {**environment, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads must not fork
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def run(
        self, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str], typed: str, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with these."""
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            stdin.write(typed.encode())
            stdin.seek(0)
            reader, writer = socket.socketpair()
            with reader, writer:
                request = {
                    "arguments": list(arguments),
                    "folder": str(folder),
                    "environment": dict(environment),
                }
                with self._lock:
                    socket.send_fds(
                        self._started(),
                        [json.dumps(request).encode()],
                        [stdin.fileno(), out.fileno(), err.fileno(), writer.fileno()],
                    )
                writer.close()
                status = _status(reader, arguments, seconds)
            out.seek(0)
            err.seek(0)
            texts = (stream.read().decode().replace("\r\n", "\n") for stream in (out, err))
            return subprocess.CompletedProcess(list(arguments), status, *texts)

    def _started(self) -> socket.socket:
        if self._socket is None:
            parent, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with child:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.cli.forks"], cwd=self._root, env=self._environment, stdin=child
                )
            self._socket = parent
            atexit.register(process.wait)
            atexit.register(parent.close)  # the first to be called: then the process ends
        return self._socket


def _status(reader: socket.socket, arguments: Sequence[str], seconds: float) -> int:
    """The exit status as subprocess gives it: negative where a signal ended the process."""
    reader.settimeout(seconds)
    process = _number(reader)
    try:
        return os.waitstatus_to_exitcode(_number(reader))
    except TimeoutError:
        os.kill(process, signal.SIGKILL)
        raise subprocess.TimeoutExpired(list(arguments), seconds) from None


def _number(reader: socket.socket) -> int:
    command = array.array("i")
    command.frombytes(reader.recv(command.itemsize, socket.MSG_WAITALL))
    return command[0]


def _send(writer: socket.socket, number: int) -> None:
    writer.sendall(array.array("i", [number]).tobytes())


def _next_command() -> tuple[Mapping[str, Any], Sequence[int]] | None:
    """Waits for commands; returns in a process of its own for each of them, and with `None` when no more are wanted."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing collects the status of the waiting processes
    with socket.socket(fileno=os.dup(0)) as requests:
        while True:
            body, files, _flags, _address = socket.recv_fds(requests, _MESSAGE, 4)
            if not body:
                return None
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, last = files
    with socket.socket(fileno=last) as writer:
        process = os.fork()
        if process:
            for stream in streams:
                os.close(stream)
            _send(writer, process)
            _send(writer, os.waitpid(process, 0)[1])
            os._exit(0)
    return json.loads(body), streams


def main() -> None:
    """The process that forks."""
    for module in MODULES:
        __import__(module)
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()  # what is there stays there, and its pages need no copy
    command = _next_command()
    if command is None:
        os._exit(0)  # as below
    request, streams = command
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = ""
    sys.argv = [sys.argv[0].replace("tests/cli/forks.py", "cli/main.py"), *request["arguments"]]
    from cli.main import main as run_command  # noqa: PLC0415  imported long since, for what forks

    try:
        run_command()
    except SystemExit as end:
        _end(end.code)


def _end(status: object) -> NoReturn:
    """As the interpreter ends, but for taking apart a thousand modules, which takes longer than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    main()
