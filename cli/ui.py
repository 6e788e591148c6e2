"""`bookferry ui`: a server that replaces this process, so that signals reach it directly."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from cli.dagster_instance import dagster_home, workspace
from cli.options import settings_of
from cli.output import Answer, print_answer
from cli.process import replace_process
from pipelines.errors import ConfigurationError
from pipelines.python_process import SAFE_PATH_VARIABLE, python_command
from pipelines.settings.config_file import CONFIG_VARIABLE

OUR_FOLDER = Path(__file__).resolve().parents[1]
"""The folder that has our packages."""


def run_ui(*, host: str, port: int, config: str | None, json: bool) -> NoReturn:
    """Run `dagster dev` with this configuration and the instance of the command line."""
    settings = settings_of(config)
    _check_installation()
    _check_port(host, port)
    os.environ[CONFIG_VARIABLE] = str(settings.path)
    home = dagster_home(settings)
    os.environ["DAGSTER_HOME"] = str(home)
    # Dagster imports the definitions from the "working directory" of a workspace first. Without one that is the working folder.
    location = workspace(home, OUR_FOLDER)
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    lines = f"Dagster's web interface: {url}  (Ctrl-C ends it)", f"configuration: {settings.path}"
    print_answer(Answer({"url": url, "dagster_home": str(home)}, lines), as_json=json)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the result on stdout is complete
    _accept_interrupts()
    os.environ["PYTHONWARNINGS"] = "ignore"  # Dagster's warnings about itself, in each of its processes
    os.environ[SAFE_PATH_VARIABLE] = "1"  # in each of its processes, too
    dagster = python_command("-m", "dagster", "dev", "-w", str(location))
    replace_process([*dagster, "--host", host, "--port", str(port)])


def _accept_interrupts() -> None:
    """Dagster ends its processes with SIGINT. Background jobs of a shell ignore it, and `main` blocks it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _check_installation() -> None:
    """The web interface is an extra of the package, because nothing else here needs it."""
    if importlib.util.find_spec("dagster_webserver") is None:
        raise ConfigurationError(
            'Dagster\'s web interface is not installed. Install it with `pip install "bookferry[ui]"`; everything else works without it.'
        )


def _check_port(host: str, port: int) -> None:
    """Fail early if the port is taken: Dagster would start everything before it reports that."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"Port {port} of {host} cannot be used: {error.strerror}. Is another web interface running? "
                "Choose another port: `bookferry ui --port NUMBER`."
            ) from None
