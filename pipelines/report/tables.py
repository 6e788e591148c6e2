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

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.records.spreadsheets import safe_cell
from pipelines.report.workbook import Column, WorkbookWriter, open_workbook
from pipelines.store.durable import storage_errors
from pipelines.store.maintenance.reports import ISSUE_ROWS, ISSUES, WORKBOOK
from pipelines.store.parquet import literal, open_in_duckdb

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

_SCHEMA = pa.schema([(name, pa.string()) for name in COLUMNS])

_BATCH = 2_000
"""Lines in memory at a time."""


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
        file.write("\t".join(cell(str(value)) for value in line) + "\n")


def cell(text: str) -> str:
    """One cell, quoted if it has a quotation mark, which could begin a cell of several lines."""
    safe = safe_cell(text)
    return '"' + safe.replace('"', '""') + '"' if '"' in safe else safe


class IssueTables:
    """Writes the lines of a table of issues. Made by `open_issue_tables`."""

    def __init__(self, writer: pq.ParquetWriter, workbook: WorkbookWriter) -> None:
        self._writer, self._workbook = writer, workbook
        self._safe = lru_cache(CACHED_TEXTS)(safe_cell)
        self._cells: list[list[str | None]] = []

    @property
    def lines(self) -> int:
        """The lines that were written."""
        return self._workbook.rows

    def write(self, line: IssueLine) -> None:
        """Append one line."""
        self._workbook.write(line)
        self._cells.append([self._safe(str(value)) or None for value in line])
        if len(self._cells) == _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory."""
        columns = zip(*self._cells, strict=True) if self._cells else [()] * len(COLUMNS)
        self._writer.write(pa.table([pa.array(column, pa.string()) for column in columns], schema=_SCHEMA))
        self._cells = []


@contextmanager
def open_issue_tables(folder: Path) -> Iterator[IssueTables]:
    """The tables of issues in a folder: issues.xlsx, issues.parquet and, made of that, issues.tsv.

    Memory does not grow with their lines. Raises `StorageError` where the disk takes no more.
    """
    rows = folder / ISSUE_ROWS
    with storage_errors(folder), open_workbook(folder / WORKBOOK, SHEET, _COLUMNS) as workbook:
        with pq.ParquetWriter(rows, _SCHEMA, compression="zstd") as writer:
            tables = IssueTables(writer, workbook)
            yield tables
            tables.flush()
        with open_in_duckdb(rows) as database:
            marked = 'SELECT record AS "\ufeffrecord", * EXCLUDE (record) FROM file'
            form = "FORMAT csv, HEADER, DELIMITER '\t'"
            database.execute(f"COPY ({marked}) TO {literal(str(folder / ISSUES))} ({form})")
