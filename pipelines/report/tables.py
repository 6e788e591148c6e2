"""Tables for librarians: as text with tabs (.tsv) for programs, and issues also as a workbook (.xlsx) for people.

Safe to open in a spreadsheet (I13): UTF-8 with a byte order mark, which Excel needs. Every cell is one short line, and none is read as a
formula. A spreadsheet reads numbers in a text file as numbers; the workbook keeps them as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple

from pipelines.records.spreadsheets import safe_cell
from pipelines.report.workbook import Column, WorkbookWriter, open_workbook
from pipelines.store.durable import storage_errors

CACHED_TEXTS = 1000
"""Texts whose safe form is cached, because many records have the same ones."""

_COLUMNS = (
    Column("record", 10),
    Column("title", 44),
    Column("field", 18),
    Column("value", 30),
    Column("problem", 72),
    Column("suggestion", 78),
    Column("code", 18),
    Column("link", 48, is_link=True),
)

COLUMNS = tuple(column.heading for column in _COLUMNS)
"""The columns of issues.tsv and issues.xlsx."""

SHEET = "Issues"


class IssueLine(NamedTuple):
    """One line of a table of issues. A record that is not a publication is a text, such as `user 12`."""

    record: int | str
    title: str
    field: str
    value: str
    problem: str
    suggestion: str
    code: str
    link: str


def write_lines(columns: Sequence[str], lines: Iterable[Sequence[str | int]], file: IO[str]) -> None:
    """Write a table for librarians: its heading, then its lines."""
    writer = LineWriter(file, columns)
    for line in lines:
        writer.write(line)


class LineWriter:
    """Writes such a table, or a part of it without a heading."""

    def __init__(self, file: IO[str], columns: Sequence[str] = ()) -> None:
        self._file = file
        self._cell = lru_cache(CACHED_TEXTS)(cell)
        if columns:
            file.write("\ufeff" + "\t".join(columns) + "\n")

    def write(self, line: Sequence[str | int]) -> None:
        """Append one line."""
        cells = [str(one) if isinstance(one, int) else self._cell(one) for one in line]
        self._file.write("\t".join(cells) + "\n")


def cell(text: str) -> str:
    """One cell, quoted if it has a quotation mark, which could begin a cell of several lines."""
    safe = safe_cell(text)
    return '"' + safe.replace('"', '""') + '"' if '"' in safe else safe


class IssueTables:
    """Writes the same lines as text and as a workbook. Made by `open_issue_tables`."""

    def __init__(self, text: LineWriter, workbook: WorkbookWriter) -> None:
        self._text = text
        self._workbook = workbook

    @property
    def lines(self) -> int:
        """The lines that were written."""
        return self._workbook.rows

    def write(self, line: IssueLine) -> None:
        """Append one line to both."""
        self._text.write(line)
        self._workbook.write(line)


@contextmanager
def open_issue_tables(text: Path, workbook: Path) -> Iterator[IssueTables]:
    """The tables of issues at two paths; memory does not grow with their lines. Raises `StorageError` where the disk takes no more."""
    with (
        open_workbook(workbook, SHEET, _COLUMNS) as rows,
        storage_errors(text),
        text.open("w", encoding="utf-8", newline="") as file,
    ):
        yield IssueTables(LineWriter(file, COLUMNS), rows)
