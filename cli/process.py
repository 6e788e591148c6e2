"""Replaces this process with another program."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def replace_process(command: list[str]) -> NoReturn:
    """Run another program in the place of this one, under its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)
