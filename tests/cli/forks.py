"""Runs many commands in processes of their own without importing everything again for each of them.

One process imports what the command line imports, and forks for each command: what runs then has its own process, folder, environment,
standard streams and end, as if it had been started anew, except for the second or two that the imports take. How the command starts and
stops in earnest is the business of tests that start it in earnest (`Home.start`, test_project, test_readme).
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
from typing import NoReturn

MODULES = ("cli.main", "cli.boundary", "cli.app", "assets_defs.definitions", "duckdb", "pyarrow.parquet")
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
            told, tells = socket.socketpair()
            with told, tells:
                request = {"arguments": list(arguments), "folder": str(folder), "environment": dict(environment)}
                with self._lock:
                    socket.send_fds(
                        self._started(),
                        [json.dumps(request).encode()],
                        [stdin.fileno(), out.fileno(), err.fileno(), tells.fileno()],
                    )
                tells.close()
                status = _status(told, arguments, seconds)
            out.seek(0)
            err.seek(0)
            texts = (stream.read().decode().replace("\r\n", "\n") for stream in (out, err))
            return subprocess.CompletedProcess(list(arguments), status, *texts)

    def _started(self) -> socket.socket:
        if self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.cli.forks"], cwd=self._root, env=self._environment, stdin=theirs
                )
            self._socket = ours
            atexit.register(process.wait)
            atexit.register(ours.close)  # the first to be called: then the process ends
        return self._socket


def _status(told: socket.socket, arguments: Sequence[str], seconds: float) -> int:
    """The exit status as subprocess gives it: negative where a signal ended the process."""
    told.settimeout(seconds)
    process = _number(told)
    try:
        return os.waitstatus_to_exitcode(_number(told))
    except TimeoutError:
        os.kill(process, signal.SIGKILL)
        raise subprocess.TimeoutExpired(list(arguments), seconds) from None


def _number(told: socket.socket) -> int:
    found = array.array("i")
    found.frombytes(told.recv(found.itemsize, socket.MSG_WAITALL))
    return found[0]


def _tell(tells: socket.socket, number: int) -> None:
    tells.sendall(array.array("i", [number]).tobytes())


def _next_command() -> tuple[Sequence[str], str, Mapping[str, str], Sequence[int]] | None:
    """Waits for commands; returns in a process of its own for each of them, and with `None` when nobody wants one any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    with socket.socket(fileno=os.dup(0)) as asked:
        while True:
            body, files, _flags, _address = socket.recv_fds(asked, _MESSAGE, 4)
            if not body:
                return None
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, last = files
    with socket.socket(fileno=last) as tells:
        process = os.fork()
        if process:
            for stream in streams:
                os.close(stream)
            _tell(tells, process)
            _tell(tells, os.waitpid(process, 0)[1])
            os._exit(0)
    request = json.loads(body)
    return request["arguments"], request["folder"], request["environment"], streams


def main() -> None:
    """The process that forks."""
    for module in MODULES:
        __import__(module)
    assert threading.active_count() == 1, threading.enumerate()
    gc.collect()
    gc.freeze()  # what is there stays there, and its pages need no copy
    found = _next_command()
    if found is None:
        os._exit(0)  # as below
    arguments, folder, environment, streams = found
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = ""
    sys.argv = [sys.argv[0].replace("tests/cli/forks.py", "cli/main.py"), *arguments]
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
