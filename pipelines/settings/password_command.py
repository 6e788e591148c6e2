"""Runs the command that prints a password, such as that of a password manager."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

from pipelines.errors import ConfigurationError

SECONDS = 30.0
"""How long a command may take: longer than a person needs to unlock a password manager would hold up a night."""


@functools.cache
def first_line(command: tuple[str, ...], folder: Path, where: str, seconds: float = SECONDS) -> str:
    """The first line of what a command prints, asked once in a process. It runs without a shell, in the folder of bookferry.toml.

    `where`: the key, for messages. These name the program alone: its arguments and what it prints may be secrets.
    """
    program = command[0]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(
            f"{where}: {program} did not end within {seconds:g} seconds. Run it yourself."
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "an argument has a character that none can have"
        raise ConfigurationError(f"{where}: {program} cannot be started: {reason}. Correct the command.") from None
    if done.returncode:
        ended = f"exit status {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise ConfigurationError(f"{where}: {program} ended with {ended}. Run it yourself, as the user of the backup.")
    line = done.stdout.partition(b"\n")[0].removesuffix(b"\r")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{where}: the first line that {program} prints is not UTF-8.") from None
