"""Output for people and for scripts: one JSON document on stdout with --json, everything else on stderr."""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import MappingProxyType
from typing import IO, Any, Literal, NoReturn

import msgspec
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from cli.command_lines import with_command_lines
from pipelines.humanize import counted
from pipelines.store.durable import storage_error

PIPED_WIDTH = 160
"""Characters in a line when stdout is no terminal."""

READABLE_WIDTH = 16
"""Characters that a column needs to be readable. A table that is too wide for that is printed row by row, one column below the other."""


MOST_PRINTED = 10
"""Failures, findings or problems that are printed; --json lists all."""


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
        self.write(msgspec.json.format(json_text(document)) + "\n")

    def write(self, text: str) -> None:
        """Print a part of a document on stdout, unchanged: JSON and CSV are UTF-8, whatever the terminal's characters are."""
        if isinstance(self._stdout, io.TextIOWrapper) and codecs.lookup(self._stdout.encoding).name != "utf-8":
            self._stdout.reconfigure(encoding="utf-8")
        with _stdout_errors():
            self._stdout.write(text)
            self._stdout.flush()

    @property
    def on_terminal(self) -> bool:
        """Whether stdout is a terminal."""
        return self._stdout.isatty()


class Part(Output):
    """The output of one step of a command: with --json, its document becomes a part of that of the command."""

    document: Mapping[str, Any] = MappingProxyType({})

    def result(self, document: Mapping[str, Any], render: Callable[[Console], None]) -> None:
        """Keep the document, and print the result for people."""
        self.document = document
        if not self.as_json:
            super().result(document, render)


_HIDDEN = re.compile(
    r"[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""What a terminal obeys or does not show, besides what JSON escapes always: C1, the direction of text, marks without a width."""


def json_text(value: object) -> str:
    """JSON on one line, of which a terminal obeys nothing. Values that JSON cannot express become text; infinite numbers and NaN, null."""
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return _HIDDEN.sub(lambda hidden: json.dumps(hidden[0])[1:-1], text)


class _Console(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Make control characters in data visible: a title must not move the cursor, nor change the direction of the text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print lines of text with the commands in them to paste. Cells of tables stay as they are: they are data."""
        super().print(*(with_command_lines(item) if isinstance(item, str) else item for item in objects), **options)

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
    console.print(Text.assemble(("!", "yellow"), f" {with_command_lines(text)}"))


def print_first(
    console: Console,
    lines: Sequence[object],
    total: int | None = None,
    rest: str = "--json lists them",
    *,
    most: int = MOST_PRINTED,
) -> None:
    """Print the first of the lines that need attention, and how many more there are. `rest`: what shows those."""
    for line in lines[:most]:
        print_warning(console, str(line))
    more = (len(lines) if total is None else total) - most
    if more > 0:
        console.print(f"and {more:,} more; {rest}")


def print_verdict(console: Console, word: str, text: str, *, good: bool = True) -> None:
    """Print the last line of a command: in a word, and what it is about."""
    console.print(Text.assemble((word, "bold green" if good else "bold yellow"), f" {with_command_lines(text)}"))


def print_table(
    console: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Iterable[str] = (),
    title: str | None = None,
) -> None:
    """Print rows as a table, or one below the other if a table with so many columns could not be read.

    Lines break between words only, so that ids and numbers can be read and copied whole. The columns `right` are aligned to the right.
    """
    if title is not None:
        console.print(title, style="italic")
    texts = [[_cell(value) for value in row] for row in rows]
    widths = _widths([*map(_cell, columns)], texts, console.width)
    if widths is None:
        _print_rows_below_each_other(console, columns, texts)
        return
    table = Table(header_style="bold", show_edge=False, pad_edge=False)
    for column, width in zip(columns, widths, strict=True):
        # without `fold`, Rich puts an ellipsis for the blank after a line of wide letters
        justify: Literal["left", "right"] = "right" if column in set(right) else "left"
        table.add_column(_cell(column), width=width, justify=justify, overflow="fold")
    for row in texts:
        table.add_row(*map(Text, row))
    console.print(table)


def _widths(columns: Sequence[str], texts: Sequence[Sequence[str]], most: int) -> list[int] | None:
    """The width of each column in a table of at most `most` characters, or None if it would be too narrow to be read."""
    cells = [[name, *column] for name, *column in zip(columns, *texts, strict=True)]
    natural = [max(map(cell_len, column)) for column in cells]
    widths = [
        max(min(width, READABLE_WIDTH), *(cell_len(word) for text in column for word in text.split() or [""]))
        for width, column in zip(natural, cells, strict=True)
    ]
    spare = (
        most - sum(widths) - 3 * len(widths) + 1
    )  # a line and two spaces between columns, and Rich counts one at each edge
    if spare < 0:
        return None
    by_need = sorted(range(len(widths)), key=lambda index: natural[index] - widths[index])
    for place, index in enumerate(by_need):
        more = min(natural[index] - widths[index], spare // (len(by_need) - place))
        widths[index] += more
        spare -= more
    return widths


def _print_rows_below_each_other(console: Console, columns: Sequence[str], texts: Sequence[Sequence[str]]) -> None:
    """Print each value on a line of its own. A word that is too long for the line is left to the terminal, to be copied whole."""
    indent = max(map(cell_len, map(_cell, columns))) + 2
    for number, row in enumerate(texts, start=1):
        console.print(f"row {number}", style="bold")
        for name, text in zip(columns, row, strict=True):
            width = max(READABLE_WIDTH, console.width - indent)
            lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
            for place, line in enumerate(lines or [""]):
                label = "" if place else _cell(name)
                console.print(Text.assemble((label + " " * (indent - cell_len(label)), "dim"), line))


def _cell(value: object) -> str:
    """One value as text: empty for null, with control characters made visible."""
    return visible("" if value is None else str(value)).replace("\n", "\\n")


def visible(text: str) -> str:
    """Text for a terminal: its lines stay, and every other control character is shown as its escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def ago(since_seconds: float) -> str:
    """An age in words, rounded down: 3 hours ago, 2 days ago, just now."""
    past = timedelta(seconds=max(0, since_seconds))
    hours, minutes = past.seconds // 3600, past.seconds // 60
    for number, unit in ((past.days, "day"), (hours, "hour"), (minutes, "minute")):
        if number:
            return f"{counted(number, unit)} ago"
    return "just now"
