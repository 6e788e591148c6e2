"""Tables as .xlsx for Excel, LibreOffice and Google Sheets: text stays text, the heading stays in sight, and every column has a filter.

No cell can be a formula (I13), because texts are written as cells of type text. XlsxWriter puts each row on the disk as it comes, so that
memory does not grow with their number (I11). The same rows make the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from xlsxwriter import Workbook
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.worksheet import Worksheet

from pipelines.records.text_table_cells import shortened
from pipelines.records.values import valid_text
from pipelines.store.durable import storage_errors, temporary_folder

SHEET_ROWS = 1_048_576
"""Rows of a sheet, its heading included. What follows goes to another sheet."""

SHEET_CHARACTERS = 2**29
"""Characters of a sheet's texts, after which another sheet begins: from 2 GiB on, a ZIP file has a form that not every program reads."""

MOST_LINKS = 20_000
"""Addresses of a workbook that can be clicked. Excel takes 65,530 in a sheet, and each of them takes memory; the others are text."""

LONGEST_LINK = 2000
"""Characters of an address that Excel opens."""

WIDEST = 60
"""Width of a column whose content is unknown, in characters, at most."""

_EXACT = 10**15 - 1
"""A cell has 15 digits; whole numbers with more are written as text."""

_NO_DATE = datetime(1980, 1, 1)  # noqa: DTZ001  a property of the file without a time zone
"""When every workbook was created, as far as the file says."""

Cell = str | int | float | bool | None


class Column(NamedTuple):
    """A column: its heading, its width in characters, and whether its texts are addresses to click."""

    heading: str
    width: int
    is_link: bool = False


class WorkbookWriter:
    """Writes the rows of one table. Made by `open_workbook`."""

    def __init__(self, book: Workbook, name: str, columns: Sequence[Column]) -> None:
        self.rows = 0
        self._book, self._name, self._columns = book, name, columns
        self._heading = book.add_format({"bold": True, "bg_color": "#E4EAE6", "bottom": 1, "valign": "top"})
        self._whole = book.add_format({"num_format": "0", "align": "left"})
        self._link = book.get_default_url_format()
        self._linked = 0
        self._begin_sheet()

    def write(self, row: Sequence[Cell]) -> None:
        """Append one row: texts, numbers, booleans, or None for an empty cell. Texts are cut at what a spreadsheet takes."""
        if self._row == SHEET_ROWS or self._characters > SHEET_CHARACTERS:
            self.end_sheet()
            self._begin_sheet()
        for place, (value, column) in enumerate(zip(row, self._columns, strict=True)):
            if value is not None and value != "":
                self._write_cell(place, value, is_link=column.is_link)
        self._row += 1
        self.rows += 1

    def _write_cell(self, place: int, value: str | float | bool, *, is_link: bool) -> None:
        if isinstance(value, bool):
            self._sheet.write_boolean(self._row, place, value)
        elif isinstance(value, int) and abs(value) <= _EXACT:
            self._sheet.write_number(self._row, place, value, self._whole)
        elif isinstance(value, float) and math.isfinite(value):
            self._sheet.write_number(self._row, place, value)
        else:
            text = shortened(valid_text(str(value)))
            self._characters += len(text)
            if is_link and self._linked < MOST_LINKS and _is_address(text):
                self._linked += 1
                self._sheet.write_url(self._row, place, text, self._link, text)
            else:
                self._sheet.write_string(self._row, place, text)

    def _begin_sheet(self) -> None:
        number = len(self._book.worksheets()) + 1
        self._sheet: Worksheet = self._book.add_worksheet(self._name if number == 1 else f"{self._name} {number}")
        self._characters, self._row = 0, 1
        for place, column in enumerate(self._columns):
            self._sheet.set_column(place, place, column.width)
            self._sheet.write_string(0, place, column.heading, self._heading)

    def end_sheet(self) -> None:
        """Give a sheet its filter, and its form on paper: all columns beside each other, the heading on each page."""
        self._sheet.freeze_panes(1, 0)
        self._sheet.autofilter(0, 0, max(self._row - 1, 1), max(len(self._columns) - 1, 0))
        self._sheet.ignore_errors({"number_stored_as_text": f"A1:XFD{max(self._row, 2)}"})
        self._sheet.set_landscape()
        self._sheet.fit_to_pages(1, 0)
        self._sheet.repeat_rows(0)


@contextmanager
def open_workbook(path: Path, name: str, columns: Sequence[Column]) -> Iterator[WorkbookWriter]:
    """A workbook with one table, whose sheets are called `name`. The file appears when the block ends without an error.

    A folder beside the file has it meanwhile. Raises `StorageError` where the disk does not take the rows.
    """
    with storage_errors(path), temporary_folder(path.with_name(f".{path.name}.rows")) as folder:
        unfinished = folder / "workbook.xlsx"
        book = Workbook(str(unfinished), {"constant_memory": True, "tmpdir": str(folder)})
        book.set_properties({"created": _NO_DATE})
        writer = WorkbookWriter(book, name, columns)
        yield writer
        writer.end_sheet()
        try:
            book.close()
        except FileCreateError as error:
            raise error.__cause__ or error from None
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


def _is_address(text: str) -> bool:
    return text.startswith(("https://", "http://")) and len(text) <= LONGEST_LINK and text.isprintable()
