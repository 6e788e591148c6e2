"""`bookferry sandbox` and `bookferry ui`: servers that replace this process, so that signals reach them directly."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from cli.jobs import dagster_home
from cli.output import Output
from cli.stop_signals import STOP_SIGNALS
from pipelines.drill import snapshot_shapes
from pipelines.errors import ConfigurationError
from pipelines.python_process import SAFE_PATH_VARIABLE, python_command
from pipelines.settings.loading import CONFIG_VARIABLE
from pipelines.settings.settings import Settings
from pipelines.store.durable import storage_errors, write_atomically
from pipelines.store.encryption import personal_keys
from pipelines.store.stores import open_data

OUR_FOLDER = Path(__file__).resolve().parents[1]
"""The folder that has our packages."""


def run_sandbox(arguments: Sequence[str]) -> NoReturn:
    """Run `python -m sandbox` with the same arguments. A stop signal waits until the sandbox can receive it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    _replace_process(python_command("-m", "sandbox", *arguments))


def like_snapshot(settings: Settings, name: str, arguments: Sequence[str]) -> list[str]:
    """The options for a sandbox with the shapes of a snapshot: an empty library, unless `arguments` name one, to restore into."""
    data = open_data(settings, personal_keys(settings))
    data.prepare()
    snapshot = data.find_snapshot(name)
    path = data.path / "rehearsal-shapes.json"
    with storage_errors(path):
        write_atomically(path, msgspec.json.format(msgspec.json.encode(snapshot_shapes(data, snapshot))))
    named = any(one == "--tenant" or one.startswith("--tenant=") for one in arguments)
    return ["--shapes", str(path), *([] if named else ["--tenant", f"{snapshot.manifest.tenant}=empty"])]


def run_ui(settings: Settings, port: int, output: Output) -> NoReturn:
    """Run `dagster dev` with this configuration and the instance of the command line, for this machine only."""
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
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the result on stdout is complete
    _accept_interrupts()
    os.environ["PYTHONWARNINGS"] = "ignore"  # Dagster's warnings about itself, in each of its processes
    os.environ[SAFE_PATH_VARIABLE] = "1"  # in each of its processes, too
    dagster = python_command("-m", "dagster", "dev", "-m", "assets_defs.definitions")
    # Dagster imports the definitions from its "working directory" first. Without the option that is the working folder.
    _replace_process([*dagster, "-d", str(OUR_FOLDER), "--host", "127.0.0.1", "--port", str(port)])


def _accept_interrupts() -> None:
    """Dagster ends its processes with SIGINT. Background jobs of a shell ignore it, and `main` blocks it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _check_port(port: int) -> None:
    """Fail early if the port is taken: Dagster would start everything before it reports that."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigurationError(
                f"Port {port} of this machine cannot be used: {error.strerror}. Is another `bookferry ui` running? "
                "Choose another port: bookferry ui --port NUMBER."
            ) from None


def _replace_process(command: list[str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)
