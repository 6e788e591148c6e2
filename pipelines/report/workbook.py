"""Tables as .xlsx for Excel, LibreOffice and Google Sheets: text stays text, the heading stays in sight, and every column has a filter.

No cell can be a formula (I13), because texts are written as cells of type text. Rows go to the disk as they come, so that memory does not
grow with their number (I11). The same rows make the same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.records.spreadsheets import shortened
from pipelines.store.durable import storage_errors, temporary_folder

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

SHEET_ROWS = 1_048_576
"""Rows of a sheet, its heading included. What follows goes to another sheet."""

MOST_LINKS = 20_000
"""Addresses of a workbook that can be clicked. Excel takes 65,530 in a sheet, and each of them takes memory; the others are text."""

LONGEST_LINK = 2000
"""Characters of an address that Excel opens."""

WIDEST = 60
"""Width of a column whose content is unknown, in characters, at most."""

_EXACT = 2**53
"""Whole numbers up to this one are exact in a cell; larger ones are written as text."""

_NO_CHARACTERS = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, besides control characters, which the writer escapes."""

_BEGINNING = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)
"""The date inside of every file. The true one would make two files of the same rows differ."""

Cell = str | int | float | bool | None


class Column(NamedTuple):
    """A column: its heading, its width in characters, and whether its texts are addresses to click."""

    heading: str
    width: int
    is_link: bool = False


class WorkbookWriter:
    """Writes the rows of one table. Made by `open_workbook`."""

    def __init__(self, book: Any, name: str, columns: Sequence[Column], sheet_rows: int) -> None:
        self.rows = 0
        self._book = book
        self._name = name
        self._columns = columns
        self._sheet_rows = sheet_rows
        self._heading: Format = book.add_format({"bold": True, "bg_color": "#E4EAE6", "bottom": 1, "valign": "top"})
        self._whole: Format = book.add_format({"num_format": "0", "align": "left"})
        self._links = 0
        self._sheets = 0
        self._next = 0
        self._sheet = self._begin_sheet()

    def write(self, row: Sequence[Cell]) -> None:
        """Append one row: texts, numbers, booleans, or None for an empty cell. Texts are cut at what a spreadsheet takes."""
        if self._next == self._sheet_rows:
            self._end_sheet()
            self._sheet = self._begin_sheet()
        for place, value in enumerate(row):
            self._write(place, value)
        self._next += 1
        self.rows += 1

    def end(self) -> None:
        """Finish the last sheet."""
        self._end_sheet()

    def _write(self, place: int, value: Cell) -> None:
        sheet, row = self._sheet, self._next
        if value is None or value == "":
            return
        if isinstance(value, str):
            if self._columns[place].is_link and self._links < MOST_LINKS and _is_address(value):
                self._links += 1
                sheet.write_url(row, place, value)
            else:
                sheet.write_string(row, place, _text(value))
        elif isinstance(value, bool):
            sheet.write_boolean(row, place, value)
        elif abs(value) > _EXACT if isinstance(value, int) else not math.isfinite(value):
            sheet.write_string(row, place, str(value))
        else:
            sheet.write_number(row, place, value, self._whole if isinstance(value, int) else None)

    def _begin_sheet(self) -> Worksheet:
        self._sheets += 1
        name = self._name if self._sheets == 1 else f"{self._name} {self._sheets}"
        sheet: Worksheet = self._book.add_worksheet(name)
        for place, column in enumerate(self._columns):
            sheet.set_column(place, place, column.width)
            sheet.write_string(0, place, _text(column.heading), self._heading)
        sheet.freeze_panes(1, 0)
        sheet.repeat_rows(0)  # on paper: the heading on each page, and all columns beside each other
        sheet.set_landscape()
        sheet.fit_to_pages(1, 0)
        self._next = 1
        return sheet

    def _end_sheet(self) -> None:
        last = max(self._next - 1, 1)
        self._sheet.autofilter(0, 0, last, len(self._columns) - 1)
        self._sheet.ignore_errors({"number_stored_as_text": f"A1:XFD{last + 1}"})


@contextmanager
def open_workbook(
    path: Path, name: str, columns: Sequence[Column], *, sheet_rows: int = SHEET_ROWS
) -> Iterator[WorkbookWriter]:
    """A workbook with one table, whose sheets are called `name`. The file appears when the block ends without an error.

    A folder beside the file has the rows meanwhile. Raises `StorageError` where the disk does not take them.
    """
    from xlsxwriter import Workbook  # noqa: PLC0415  only a report and --xlsx need it
    from xlsxwriter.exceptions import FileCreateError, FileSizeError  # noqa: PLC0415

    with storage_errors(path), temporary_folder(path.with_name(f".{path.name}.rows")) as rows:
        unfinished = rows / "workbook.xlsx"
        # Every cell is written by its type: nothing is to be guessed from a text
        book = Workbook(str(unfinished), {"constant_memory": True, "tmpdir": str(rows), "use_zip64": True})
        book.set_properties({"created": _BEGINNING})
        writer = WorkbookWriter(book, name, columns, sheet_rows)
        yield writer
        writer.end()
        try:
            book.close()
        except (FileCreateError, FileSizeError) as error:
            raise error.args[0] if isinstance(error.args[0], OSError) else OSError(str(error)) from error
        unfinished.replace(path)


def columns_for(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[Column]:
    """Columns as wide as their headings and their first rows, within limits."""
    longest = [
        max((len(str(row[place])) for row in rows if row[place] is not None), default=0)
        for place in range(len(headings))
    ]
    return [
        Column(name, min(max(len(name) + 3, most + 1, 6), WIDEST)) for name, most in zip(headings, longest, strict=True)
    ]


def _text(value: str) -> str:
    """A text that XML can hold, and a cell."""
    return shortened(value if value.isascii() else _NO_CHARACTERS.sub("\ufffd", value))


def _is_address(text: str) -> bool:
    return text.startswith(("https://", "http://")) and len(text) <= LONGEST_LINK
