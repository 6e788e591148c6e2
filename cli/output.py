"""Output for people and for scripts: one JSON document on stdout with --json, everything else on stderr."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, NoReturn

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.humanize import counted
from pipelines.store.durable import storage_error

PIPED_WIDTH = 160
"""Characters in a line when stdout is no terminal."""

READABLE_WIDTH = 16
"""Characters that a column needs to be readable. A table that is too wide for that is printed row by row, one column below the other."""


class Output:
    """Prints the result of a command: as JSON if `as_json`, else for people. A command provides both."""

    def __init__(self, *, as_json: bool, stdout: IO[str] | None = None, stderr: IO[str] | None = None) -> None:
        self.as_json = as_json
        self._stdout = stdout or sys.stdout
        self._messages = plain_console(stderr or sys.stderr)
        self._result = plain_console(self._stdout, width=None if self.on_terminal else PIPED_WIDTH)

    def say(self, text: str = "") -> None:
        """Print a line for people, on stderr."""
        self._messages.print(text)

    def result(self, document: Mapping[str, Any], render: Callable[[Console], None]) -> None:
        """Print the result on stdout: `document` with --json, else what `render` prints."""
        if self.as_json:
            self.write_json(document)
        else:
            with _stdout_errors():
                render(self._result)

    def write_json(self, document: Mapping[str, Any]) -> None:
        """Print one JSON document on stdout. Values that JSON cannot express become text; infinite numbers and NaN become null."""
        self.write(msgspec.json.format(msgspec.json.encode(document, enc_hook=str)).decode() + "\n")

    def write(self, text: str) -> None:
        """Print a part of a result on stdout, unchanged."""
        with _stdout_errors():
            self._stdout.write(text)
            self._stdout.flush()

    @property
    def on_terminal(self) -> bool:
        """Whether stdout is a terminal."""
        return self._stdout.isatty()


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave the `BrokenPipeError` to `cli.boundary`; Rich would exit with 1."""
        raise  # noqa: PLE0704  called where Rich handles it


def plain_console(file: IO[str], *, width: int | None = None) -> Console:
    """A console that prints text unchanged: text from a library may look like markup or like the name of an emoji."""
    return _Console(file=file, width=width, markup=False, emoji=False, highlight=False, soft_wrap=True)


@contextmanager
def _stdout_errors() -> Iterator[None]:
    """Turns a full disk behind stdout into a `StorageError`. A reader that closed the pipe is no such error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise storage_error(error, "standard output") from error


def print_warning(console: Console, text: str) -> None:
    """Print a line that needs attention, after a yellow exclamation mark."""
    console.print(Text.assemble(("!", "yellow"), f" {text}"))


def table_of(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    right: Iterable[str] = (),
    whole: Iterable[str] = (),
) -> Table:
    """A plain table. The columns `right` are aligned to the right; cells of the columns `whole` are never broken."""
    table = Table(title=title, title_justify="left", header_style="bold", show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(
            _cell(column),
            justify="right" if column in set(right) else "left",
            overflow="fold",
            no_wrap=column in set(whole),
        )
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def print_table(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[object]], right: Iterable[str]
) -> None:
    """Print rows as a table, or one below the other if a table with so many columns could not be read."""
    texts = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    if not texts or sum(min(width, READABLE_WIDTH) + 3 for width in widths) <= console.width:
        console.print(table_of(columns, rows, right=right))
        return
    for number, row in enumerate(texts, start=1):
        console.print(f"row {number}", style="bold")
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for name, text in zip(columns, row, strict=True):
            grid.add_row(_cell(name), text)
        console.print(grid)


def _cell(value: object) -> str:
    """One value as text: empty for null, with control characters made visible."""
    text = "" if value is None else str(value)
    return text if text.isprintable() else "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def command_line(*words: str) -> str:
    """A command line to copy: `bookferry` by the path of this process, with quotes where words need them."""
    script, on_path = Path(sys.argv[0]), shutil.which("bookferry")
    other = script.name == "bookferry" and script.exists() and (on_path is None or not script.samefile(on_path))
    name = min(str(script), os.path.relpath(script), key=len) if other else "bookferry"
    return shlex.join([name, *words])


def age(since_seconds: float) -> str:
    """An age in words, rounded down: 3 hours, 2 days."""
    past = timedelta(seconds=max(0, since_seconds))
    if past.days >= 1:
        return counted(past.days, "day")
    hours, minutes = past.seconds // 3600, past.seconds // 60
    if hours:
        return counted(hours, "hour")
    return counted(minutes, "minute") if minutes else "just now"
