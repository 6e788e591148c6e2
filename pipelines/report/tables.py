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

from pipelines.records.text_table_cells import safe_cell
from pipelines.report.workbook import Column, WorkbookWriter, open_workbook
from pipelines.store.durable import storage_errors
from pipelines.store.maintenance.reports import ISSUES, WORKBOOK
from pipelines.store.parquet import escaped, literal

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
    file.write("\ufeff" + "\t".join(columns) + "\n")
    for line in lines:
        write_line(line, file)


def write_line(line: Sequence[str | int], file: IO[str]) -> None:
    """Append a line to a table for librarians."""
    file.write("\t".join(cell(str(value)) for value in line) + "\n")


@lru_cache(CACHED_TEXTS)
def cell(text: str) -> str:
    """One cell, quoted if it has a quotation mark, which could begin a cell of several lines."""
    safe = safe_cell(text)
    return '"' + safe.replace('"', '""') + '"' if '"' in safe else safe


class IssueTables:
    """Writes the lines of a table of issues. Made by `open_issue_tables`."""

    def __init__(self, file: IO[str], workbook: WorkbookWriter) -> None:
        self._file, self._workbook = file, workbook

    @property
    def lines(self) -> int:
        """The lines that were written."""
        return self._workbook.rows

    def write(self, line: IssueLine) -> None:
        """Append one line."""
        self._workbook.write(line)
        write_line(line, self._file)


@contextmanager
def open_issue_tables(folder: Path) -> Iterator[IssueTables]:
    """The tables of issues in a folder: issues.xlsx and issues.tsv.

    Memory does not grow with their lines. Raises `StorageError` where the disk takes no more.
    """
    with (
        storage_errors(folder),
        open_workbook(folder / WORKBOOK, SHEET, _COLUMNS) as workbook,
        (folder / ISSUES).open("w", encoding="utf-8", newline="") as file,
    ):
        write_lines(COLUMNS, (), file)
        yield IssueTables(file, workbook)


def issue_lines(address: str) -> str:
    """The SQL source of an issues.tsv."""
    columns = ", ".join(f"{name}: 'VARCHAR'" for name in COLUMNS)
    form = "auto_detect = false, header = true, delim = '\t', quote = '\"', escape = '\"'"
    return f"read_csv({literal(escaped(address))}, columns = {{{columns}}}, {form})"
