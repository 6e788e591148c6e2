"""I13: what a library's records hold is text in a spreadsheet, never a formula."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.records.text_table_cells import LONGEST, safe_cell


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "+4.5",
        "007",
        "9780306406157",
        "2021-05",
        'Plain, with "quotes" – and ü',
        "10.1002/(SICI)1097(1998)49:8<693::AID>3.0.CO;2-O",
        "a=b",
    ],
)
def test_plain_text_stays(text: str) -> None:
    assert safe_cell(text) == text


@given(st.text())
def test_any_text_becomes_one_printable_line_without_a_formula(text: str) -> None:
    cell = safe_cell(text)
    assert len(cell.splitlines()) <= 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", cell)
    assert cell.lstrip()[:1] not in set("=+-@＝＋－＠") or re.fullmatch(r"[+-][0-9]+([.,][0-9]+)?", cell)


@pytest.mark.long
def test_a_cell_is_never_longer_than_a_spreadsheet_takes() -> None:
    assert safe_cell("x" * 40_000) == "x" * LONGEST + "… (40,000 characters)"
    assert len(safe_cell(";=" * 1_000_000)) < 32_767
