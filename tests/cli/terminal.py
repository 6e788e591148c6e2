"""Runs a command on a pseudo-terminal of a chosen width."""

from __future__ import annotations

import errno
import os
import pty
import re
import struct
import subprocess
from collections.abc import Mapping
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from tests.cli.command import BOOKFERRY, PATIENCE, environment


def printed(*arguments: str, folder: Path, columns: int, variables: Mapping[str, str] = {}) -> list[str]:
    """The lines that `bookferry ARGUMENTS` sends to a terminal of so many columns, without colors. The command must succeed."""
    screen, terminal = pty.openpty()
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*BOOKFERRY, *arguments],
        cwd=folder,
        env=environment(TERM="xterm-256color", **variables),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    output = b""
    while chunk := read(screen):
        output += chunk
    os.close(screen)
    assert process.wait(PATIENCE) == 0, output.decode()
    return drawn(output.decode()).split("\r\n")


def read(descriptor: int) -> bytes:
    """The next bytes that the other side of a terminal wrote; none after it was closed."""
    try:
        return os.read(descriptor, 65536)
    except OSError as error:
        if error.errno != errno.EIO:  # how Linux says that the other side is closed
            raise
        return b""


def drawn(output: str) -> str:
    """Everything that was ever on the screen, without colors and moves."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
