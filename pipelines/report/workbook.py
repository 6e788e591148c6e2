"""Tables as .xlsx for Excel, LibreOffice and Google Sheets: text stays text, the heading stays in sight, and every column has a filter.

No cell can be a formula (I13), because texts are written as cells of type text. Rows are compressed as they come, by a second thread, and
go to the disk, so that memory does not grow with their number (I11). The same rows make the same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from pipelines.records.spreadsheets import shortened
from pipelines.report import workbook_parts as parts
from pipelines.report.workbook_parts import HEADING, LINK, WHOLE, Sheet
from pipelines.store.durable import storage_errors, temporary_folder

SHEET_ROWS = 1_048_576
"""Rows of a sheet, its heading included. What follows goes to another sheet."""

SHEET_BYTES = 2**30
"""Bytes of a sheet's XML, after which another sheet begins: from 2 GiB on, a ZIP file has a form that not every program reads."""

MOST_LINKS = 20_000
"""Addresses of a workbook that can be clicked. Excel takes 65,530 in a sheet, and each of them takes memory; the others are text."""

LONGEST_LINK = 2000
"""Characters of an address that Excel opens."""

WIDEST = 60
"""Width of a column whose content is unknown, in characters, at most."""

CHUNK = 100_000
"""Characters that are compressed at a time."""

COMPRESSION = 3
"""Of zlib's levels: half the work of the usual 6, for a file that is a tenth larger."""

CACHED_TEXTS = 1000
"""Texts whose XML is cached, because many rows have the same ones."""

_EXACT = 10**15 - 1
"""A cell has 15 digits; whole numbers with more are written as text."""

_NO_CHARACTERS = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""What XML cannot hold, besides control characters, which are escaped."""

_MARKUP = re.compile("[&<>_]")
_LIKE_AN_ESCAPE = re.compile("_(?=x[0-9a-fA-F]{4}_)")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f]")

_ROW = "\0"
"""Where the number of its row goes in the XML of a cell; no text has this character there, because control characters are escaped."""

Cell = str | int | float | bool | None


class Column(NamedTuple):
    """A column: its heading, its width in characters, and whether its texts are addresses to click."""

    heading: str
    width: int
    is_link: bool = False


class _Cells:
    """Makes the cells of one column. Each has `_ROW` in the place of its row's number, so that cells with the same text are made once."""

    def __init__(self, letters: str, *, is_link: bool) -> None:
        self.letters = letters
        self.is_link = is_link
        self.text = lru_cache(CACHED_TEXTS)(self.styled_text)
        self._begin = f'<c r="{letters}{_ROW}"'

    def styled_text(self, value: str, style: str = "") -> str:
        """A cell of type text. `style`: the attribute with the number of its format."""
        return f'{self._begin}{style} t="inlineStr"><is><t{_xml(value)}</t></is></c>'

    def other(self, value: float | bool | None) -> str:
        """A number or a boolean; as text, what is no number for a spreadsheet."""
        if isinstance(value, bool):
            return f'{self._begin} t="b"><v>{value:d}</v></c>'
        if value is None or (abs(value) > _EXACT if isinstance(value, int) else not math.isfinite(value)):
            return f'{self._begin} t="inlineStr"><is><t>{value}</t></is></c>'
        return (
            f'{self._begin} s="{WHOLE}"><v>{value}</v></c>'
            if isinstance(value, int)
            else f"{self._begin}><v>{value:.16G}</v></c>"
        )


class WorkbookWriter:
    """Writes the rows of one table. Made by `open_workbook`."""

    def __init__(self, archive: ZipFile, name: str, columns: Sequence[Column], sheet_rows: int) -> None:
        self.rows = 0
        self._archive = archive
        self._name = name
        self._columns = [_Cells(parts.letters(place), is_link=column.is_link) for place, column in enumerate(columns)]
        self._headings = [column.heading for column in columns]
        self._widths = [column.width for column in columns]
        self._sheet_rows = sheet_rows
        self._sheets: list[Sheet] = []
        self._linked = 0
        self._compressor = ThreadPoolExecutor(1, thread_name_prefix="workbook")
        self._pending: Future[int] | None = None
        self._begin_sheet()

    def write(self, row: Sequence[Cell]) -> None:
        """Append one row: texts, numbers, booleans, or None for an empty cell. Texts are cut at what a spreadsheet takes."""
        if self._row == self._sheet_rows or self._bytes > SHEET_BYTES:
            self._end_sheet()
            self._begin_sheet()
        self._row += 1
        self.rows += 1
        cells = [
            (self._link(column, value) if column.is_link and self._can_be_clicked(value) else column.text(value))
            if isinstance(value, str)
            else column.other(value)
            for column, value in zip(self._columns, row, strict=True)
            if value is not None and value != ""
        ]
        self._append_row(cells)

    def end(self) -> None:
        """Finish the last sheet and the file."""
        self._end_sheet()
        count = len(self._sheets)
        for name, text in (
            ("[Content_Types].xml", parts.content_types(count)),
            ("_rels/.rels", parts.ROOT),
            ("xl/workbook.xml", parts.workbook(self._sheets)),
            ("xl/_rels/workbook.xml.rels", parts.workbook_relations(count)),
            ("xl/styles.xml", parts.STYLES),
        ):
            self._add_part(name, text)

    def close(self) -> None:
        """Release thread and file, also where the table is not finished."""
        self._compressor.shutdown()
        with suppress(Exception):  # the first error is the one to report
            self._part.close()

    def _link(self, column: _Cells, address: str) -> str:
        self._links.append((f"{column.letters}{self._row}", address))
        self._linked += 1
        return column.styled_text(address, f' s="{LINK}"')

    def _can_be_clicked(self, text: str) -> bool:
        return self._linked < MOST_LINKS and _is_address(text)

    def _begin_sheet(self) -> None:
        number = len(self._sheets) + 1
        self._links: list[tuple[str, str]] = []
        self._part: IO[bytes] = self._archive.open(f"xl/worksheets/sheet{number}.xml", "w")
        self._chunk: list[str] = []
        self._chunk_characters = 0
        self._bytes = 0
        self._row = 1
        self._append(parts.sheet_start(self._widths, is_first=number == 1))
        headings = zip(self._columns, self._headings, strict=True)
        self._append_row([column.styled_text(heading, f' s="{HEADING}"') for column, heading in headings])

    def _end_sheet(self) -> None:
        number, last = len(self._sheets) + 1, max(self._row, 2)
        column = parts.letters(max(len(self._columns) - 1, 0))
        self._append(parts.sheet_end(column, last, self._links))
        self._compress()
        self._wait()
        self._part.close()
        if self._links:
            self._add_part(f"xl/worksheets/_rels/sheet{number}.xml.rels", parts.link_targets(self._links))
        name = self._name if number == 1 else f"{self._name} {number}"
        self._sheets.append(Sheet(name, f"$A$1:${column}${last}"))

    def _add_part(self, name: str, xml: str) -> None:
        with self._archive.open(name, "w") as part:  # unlike `writestr`, it writes no date
            part.write(xml.encode())

    def _append_row(self, cells: Sequence[str]) -> None:
        self._append(f'<row r="{_ROW}">{"".join(cells)}</row>'.replace(_ROW, str(self._row)))

    def _append(self, xml: str) -> None:
        self._chunk.append(xml)
        self._chunk_characters += len(xml)
        if self._chunk_characters >= CHUNK:
            self._compress()

    def _compress(self) -> None:
        """Give the rows that are in memory to the thread. It has one chunk at a time."""
        self._wait()
        chunk = "".join(self._chunk).encode()
        self._pending = self._compressor.submit(self._part.write, chunk)
        self._bytes += len(chunk)
        self._chunk, self._chunk_characters = [], 0

    def _wait(self) -> None:
        if self._pending is not None:
            self._pending.result()


@contextmanager
def open_workbook(
    path: Path, name: str, columns: Sequence[Column], *, sheet_rows: int = SHEET_ROWS
) -> Iterator[WorkbookWriter]:
    """A workbook with one table, whose sheets are called `name`. The file appears when the block ends without an error.

    A folder beside the file has it meanwhile. Raises `StorageError` where the disk does not take the rows.
    """
    with storage_errors(path), temporary_folder(path.with_name(f".{path.name}.rows")) as folder:
        unfinished = folder / "workbook.xlsx"
        with ZipFile(unfinished, "w", ZIP_DEFLATED, compresslevel=COMPRESSION) as archive:
            writer = WorkbookWriter(archive, name, columns, sheet_rows)
            try:
                yield writer
                writer.end()
            finally:
                writer.close()
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


def _xml(value: str) -> str:
    """The end of the tag before a text, and its XML, cut at what a cell takes."""
    text = shortened(value)
    if not text.isprintable() or _MARKUP.search(text):  # hardly any text
        text = _NO_CHARACTERS.sub("\ufffd", _LIKE_AN_ESCAPE.sub("_x005F_", text))
        text = _CONTROLS.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f">{text}" if text == text.strip() else f' xml:space="preserve">{text}'


def _is_address(text: str) -> bool:
    return text.startswith(("https://", "http://")) and len(text) <= LONGEST_LINK and text.isprintable()
