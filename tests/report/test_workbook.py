"""Tables as .xlsx, read back by openpyxl: text stays text, nothing is a formula (I13), and memory does not grow with the rows (I11)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from pipelines.errors import StorageError
from pipelines.records.text_table_cells import LONGEST
from pipelines.report import workbook
from pipelines.report.pages import Report
from pipelines.report.tables import COLUMNS, SHEET
from pipelines.report.workbook import Cell, Column, open_workbook
from tests.report.library import HOSTILE, lines_of

TWO = (Column("record", 8), Column("link", 40, is_link=True))


def written(path: Path, rows: Iterable[Sequence[Cell]], columns: Sequence[Column] = TWO) -> list[Worksheet]:
    """The sheets of a workbook with these rows."""
    with open_workbook(path, "Rows", columns) as book:
        for row in rows:
            book.write(row)
    assert [file.name for file in path.parent.iterdir()] == [path.name], "nothing else is left"
    return load_workbook(path).worksheets


def sheet_of(path: str) -> Worksheet:
    [sheet] = load_workbook(path).worksheets
    return sheet


@pytest.mark.long
@pytest.mark.parametrize("name", ["real", "hostile"])
def test_it_has_the_lines_of_the_text(name: str, request: pytest.FixtureRequest) -> None:
    """Every line of issues.tsv; texts are texts without an apostrophe, and no cell is a formula."""
    report: Report = request.getfixturevalue(name)
    sheet = sheet_of(report.paths.workbook)
    heading, *rows = sheet.iter_rows()
    assert (sheet.title, tuple(cell.value for cell in heading)) == (SHEET, COLUMNS)
    assert len(rows) == len(lines_of(report)) == report.to_do + report.repaired
    for row, line in zip(rows, lines_of(report), strict=True):
        assert {cell.data_type for cell in row} <= {"n", "s"}, "n is a number, or an empty cell"
        for cell, text in zip(row, line.values(), strict=True):
            assert str(cell.value or "").lstrip("'") == text.replace(";'", ";").lstrip("'") or "'" in text
            assert isinstance(cell.value, int) == (cell.column_letter == "A" and cell.value is not None)


def test_links_can_be_clicked_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are text, and so is what is no address of the web, or is longer than Excel opens."""
    monkeypatch.setattr(workbook, "MOST_LINKS", 2)
    addresses = [
        "https://a/1",
        "javascript:alert(1)",
        "https://a/" + "x" * 3000,
        "internal:Sheet1!A1",
        "https://a/2",
        "https://a/3",
    ]
    [sheet] = written(tmp_path / "a.xlsx", enumerate(addresses))
    cells = [sheet.cell(row, 2) for row in range(2, 8)]
    assert [cell.value for cell in cells] == addresses
    linked = [cell.hyperlink.target if cell.hyperlink else None for cell in cells]
    assert linked == ["https://a/1", None, None, None, "https://a/2", None]


def test_a_long_table_continues_on_another_sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sheet has the heading and its own filter."""
    monkeypatch.setattr(workbook, "SHEET_ROWS", 4)
    sheets = written(tmp_path / "a.xlsx", ((number, "") for number in range(7)))
    assert [sheet.title for sheet in sheets] == ["Rows", "Rows 2", "Rows 3"]
    assert [[row[0] for row in sheet.iter_rows(values_only=True)] for sheet in sheets] == [
        ["record", 0, 1, 2],
        ["record", 3, 4, 5],
        ["record", 6],
    ]
    assert [sheet.auto_filter.ref for sheet in sheets] == ["A1:B4", "A1:B4", "A1:B2"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text() | st.sampled_from(HOSTILE) | st.just("x" * 40_000), min_size=1))
def test_any_text_is_a_text(tmp_path: Path, texts: list[str]) -> None:
    """What XML cannot hold is replaced, what is too long is cut, and nothing else changes."""
    [sheet] = written(tmp_path / "a.xlsx", ((None, text) for text in texts), (TWO[0], Column("text", 9)))
    for row, text in enumerate(texts, start=2):
        cell = sheet.cell(row, 2)
        if text:
            assert cell.data_type in {"s", "inlineStr"}
        plain = "".join(
            "\ufffd" if character in "\ufffe\uffff" or "\ud800" <= character <= "\udfff" else character
            for character in text
        )
        if len(text) <= LONGEST and not any(character < " " or character == "_" for character in plain):
            assert (cell.value or "") == plain


def test_numbers_are_numbers_where_they_are_exact(tmp_path: Path) -> None:
    """A number of more digits than a cell keeps is a text; so is one that is none."""
    exact: list[Cell] = [2.5, True, None, 10**15 - 1]
    texts = [10**15, -(10**15), float("nan")]
    [sheet] = written(tmp_path / "a.xlsx", [(value,) for value in (*exact, *texts)], [Column("value", 9)])
    values = [value for (value,) in sheet.iter_rows(min_row=2, values_only=True)]
    assert values == [*exact, *map(str, texts)]


@pytest.mark.long
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """I11. Ten times the rows take at most a few kilobytes more."""

    def peak(rows: int) -> int:
        tracemalloc.start()
        written_rows = ((number, "A title that is as long as titles are") for number in range(rows))
        with open_workbook(tmp_path / "a.xlsx", "Rows", TWO) as book:
            for row in written_rows:
                book.write(row)
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)  # imports
    assert peak(5000) - peak(500) < 300_000


def test_a_disk_that_takes_no_more_is_a_storage_error(tmp_path: Path) -> None:
    """And no half of a file is left."""
    target = tmp_path / "a.xlsx"
    target.mkdir()
    with pytest.raises(StorageError, match=r"a\.xlsx"), open_workbook(target, "Rows", TWO) as book:
        book.write((1, ""))
    assert [file.name for file in tmp_path.iterdir()] == ["a.xlsx"]
