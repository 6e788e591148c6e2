"""`bookferry sandbox` and `bookferry ui`: servers that take this process's place, so that signals reach them directly."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

from cli.jobs import dagster_home
from cli.output import Output
from pipelines.errors import ConfigurationError
from pipelines.settings.loading import CONFIG_VARIABLE
from pipelines.settings.settings import Settings


def run_sandbox(arguments: Sequence[str]) -> NoReturn:
    """`python -m sandbox` with the same arguments."""
    _become([sys.executable, "-m", "sandbox", *arguments])


def run_ui(settings: Settings, port: int, output: Output) -> NoReturn:
    """`dagster dev` on this configuration and on the instance the command line uses; for this machine only."""
    _check_port(port)
    os.environ[CONFIG_VARIABLE] = str(settings.path)
    os.environ["DAGSTER_HOME"] = str(dagster_home(settings))
    url = f"http://127.0.0.1:{port}"
    output.result(
        {"url": url, "dagster_home": os.environ["DAGSTER_HOME"]},
        lambda console: console.print(
            f"Dagster's web interface: {url}  (Ctrl-C ends it)\nconfiguration: {settings.path}"
        ),
    )
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # stdout has said what it has to
    _hear_interrupts()
    os.environ["PYTHONWARNINGS"] = "ignore"  # Dagster's warnings about itself, in each of its processes
    dagster = [sys.executable, "-m", "dagster", "dev", "-m", "assets_defs.definitions"]
    _become([*dagster, "--host", "127.0.0.1", "--port", str(port)])


def _hear_interrupts() -> None:
    """Dagster ends its processes with SIGINT, which a shell's job in the background ignores and `main` then holds back."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _check_port(port: int) -> None:
    """Dagster would start everything before it tells, at length, that the port is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigurationError(
                f"Port {port} of this machine cannot be used: {error.strerror}. Is another `bookferry ui` running? "
                "Choose another port: bookferry ui --port NUMBER."
            ) from None


def _become(command: list[str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)
