"""Output for people and for scripts: one JSON document on stdout with --json, everything else on stderr."""

from __future__ import annotations

import codecs
import io
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, Literal

import msgspec
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from cli.command_lines import with_command_lines
from pipelines.errors import ExitStatus
from pipelines.store.durable import storage_error

PIPED_WIDTH = 160
"""Characters in a line when stdout is no terminal."""

READABLE_WIDTH = 16
"""Characters that a column needs to be readable. A table that is too wide for that is printed row by row, one column below the other."""


MOST_PRINTED = 10
"""Failures, findings or problems that are printed; --json lists all."""


@dataclass(frozen=True)
class Answer:
    """What a command answers."""

    document: Any
    """For --json: a result, or a mapping that has some; None where the command has written its document itself."""
    lines: Iterable[RenderableType] = ()
    """For people: text with commands to paste, tables, warnings, and the verdict as the last one."""
    status: ExitStatus = ExitStatus.COMPLETE


def print_answer(answer: Answer, *, as_json: bool) -> None:
    """Print an answer on stdout: its document, or its lines."""
    if not as_json:
        console = plain_console(sys.stdout, width=None if sys.stdout.isatty() else PIPED_WIDTH)
        with stdout_errors():
            for line in answer.lines:
                console.print(line)
    elif answer.document is not None:
        write_json(answer.document)


def say(text: str = "") -> None:
    """Print a line for people, on stderr."""
    plain_console(sys.stderr).print(text)


def write_json(document: object) -> None:
    """Print one JSON document on stdout. Values that JSON cannot express become text; infinite numbers and NaN become null."""
    write(msgspec.json.format(json_text(document)) + "\n")


def write(text: str) -> None:
    """Print a part of a document on stdout, unchanged: JSON and CSV are UTF-8, whatever the terminal's characters are."""
    if isinstance(sys.stdout, io.TextIOWrapper) and codecs.lookup(sys.stdout.encoding).name != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")
    with stdout_errors():
        sys.stdout.write(text)
        sys.stdout.flush()


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


def plain_console(file: IO[str], *, width: int | None = None) -> Console:
    """A console that prints text unchanged: text from a library may look like markup or like the name of an emoji."""
    return _Console(file=file, width=width, markup=False, emoji=False, highlight=False, soft_wrap=True)


@contextmanager
def stdout_errors() -> Iterator[None]:
    """Turns a full disk behind stdout into a `StorageError`, and a reader that closed the pipe into the `SystemExit` of Rich's printing."""
    try:
        yield
    except BrokenPipeError:
        Console().on_broken_pipe()
    except OSError as error:
        raise storage_error(error, "standard output") from error


def warning(text: str) -> Text:
    """A line that needs attention, after a yellow exclamation mark."""
    return Text.assemble(("!", "yellow"), f" {with_command_lines(text)}")


def first(
    lines: Sequence[object], total: int | None = None, rest: str = "--json lists them"
) -> Iterator[RenderableType]:
    """The first of the lines that need attention, and how many more there are. `rest`: what shows those."""
    for line in lines[:MOST_PRINTED]:
        yield warning(str(line))
    more = (len(lines) if total is None else total) - MOST_PRINTED
    if more > 0:
        yield f"and {more:,} more; {rest}"


def verdict(word: str, text: str, *, good: bool = True) -> Text:
    """The last line of a command: in a word, and what it is about."""
    return Text.assemble((word, "bold green" if good else "bold yellow"), f" {with_command_lines(text)}")


class ReadableTable:
    """Rows as a table, or one below the other if a table with so many columns could not be read.

    Lines break between words only, so that ids and numbers can be read and copied whole. The columns `right` are aligned to the right.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        right: Iterable[str] = (),
        title: str | None = None,
    ) -> None:
        self._columns = [*map(_cell, columns)]
        self._texts = [[_cell(value) for value in row] for row in rows]
        self._right = {*map(_cell, right)}
        self._title = title

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> Iterator[RenderableType]:
        """The parts, for a console of this width."""
        if self._title is not None:
            yield Text(with_command_lines(self._title), "italic")
        widths = _widths(self._columns, self._texts, console.width)
        if widths is None:
            yield from self._below_each_other(console.width)
            return
        table = Table(header_style="bold", show_edge=False, pad_edge=False)
        for column, width in zip(self._columns, widths, strict=True):
            # without `fold`, Rich puts an ellipsis for the blank after a line of wide letters
            justify: Literal["left", "right"] = "right" if column in self._right else "left"
            table.add_column(column, width=width, justify=justify, overflow="fold")
        for row in self._texts:
            table.add_row(*map(Text, row))
        yield table

    def _below_each_other(self, width: int) -> Iterator[Text]:
        """Each value on a line of its own. A word that is too long for the line is left to the terminal, to be copied whole."""
        indent = max(map(cell_len, self._columns)) + 2
        for number, row in enumerate(self._texts, start=1):
            yield Text(f"row {number}", "bold")
            for name, text in zip(self._columns, row, strict=True):
                room = max(READABLE_WIDTH, width - indent)
                lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
                for place, line in enumerate(lines or [""]):
                    label = "" if place else name
                    yield Text.assemble((label + " " * (indent - cell_len(label)), "dim"), line)


def _widths(columns: Sequence[str], texts: Sequence[Sequence[str]], most: int) -> list[int] | None:
    """The width of each column in a table of at most `most` characters, or None if it would be too narrow to be read."""
    cells = [[name, *column] for name, *column in zip(columns, *texts, strict=True)]
    widths = [max(map(cell_len, column)) for column in cells]
    least = [
        max(min(width, READABLE_WIDTH), *(cell_len(word) for text in column for word in text.split() or [""]))
        for width, column in zip(widths, cells, strict=True)
    ]
    widths = [max(narrow, min(width, most)) for narrow, width in zip(least, widths, strict=True)]
    # a line and two spaces between columns, and Rich counts one at each edge
    while sum(widths) + 3 * len(widths) - 1 > most:
        index = max(range(len(widths)), key=lambda column: widths[column] - least[column])
        if widths[index] == least[index]:
            return None
        widths[index] -= 1
    return widths


def _cell(value: object) -> str:
    """One value as text: empty for null, with control characters made visible."""
    return visible("" if value is None else str(value)).replace("\n", "\\n")


def visible(text: str) -> str:
    """Text for a terminal: its lines stay, and every other control character is shown as its escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
