"""Command lines in messages, so that a person can paste them: the program as it was called, with the configuration that it was given."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

CONFIG = "--config"

_WITHOUT_CONFIG = frozenset({"demo"})
"""Commands that take no configuration."""

_PROPOSED = re.compile(r"`bookferry ([^`]+)`")

_given_config: ContextVar[str | None] = ContextVar("given_config", default=None)


@contextmanager
def one_call() -> Iterator[None]:
    """Within this block one command runs: what `remember_config` was told is forgotten after it."""
    before = _given_config.set(None)
    try:
        yield
    finally:
        _given_config.reset(before)


def remember_config(file: str | None) -> None:
    """Add `--config` with this file to each command line from now on. The variable needs none: it is there for the next command, too."""
    _given_config.set(file)


def command_line(*words: str) -> str:
    """A command line to paste, with quotes where words need them."""
    file = _given_config.get()
    config = [CONFIG, file] if file and CONFIG not in words and words[0] not in _WITHOUT_CONFIG else []
    return f"{_program()} {shlex.join([*words, *config])}"


def with_command_lines(text: str) -> str:
    """The text, with each command in backquotes (`bookferry backup TENANT`) as a command line to paste."""
    return _PROPOSED.sub(_completed, text)


def _completed(proposed: re.Match[str]) -> str:
    try:
        return f"`{command_line(*shlex.split(proposed[1]))}`"
    except ValueError:  # a quote without its end
        return proposed[0]


def _program() -> str:
    """How this program was called: by its name, by its path, or as a module of an interpreter."""
    script = Path(sys.argv[0])
    if script.name == "bookferry.py":
        return f"{_shortest(Path(sys.executable))} -m bookferry"
    return _shortest(script) if script.name == "bookferry" and script.exists() else "bookferry"


def _shortest(program: Path) -> str:
    """The name alone if the shell finds this program by it, else its path, absolute or from here: the shorter one."""
    on_path = shutil.which(program.name)
    if on_path is not None and Path(on_path).absolute() == program.absolute():
        return program.name
    return shlex.quote(min(str(program), os.path.relpath(program), key=len))
