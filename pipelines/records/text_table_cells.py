"""Cells of text tables (.tsv, .csv) that people open in a spreadsheet: it displays them as text and runs no formula (I13).

Cells of a workbook are written as texts by report/workbook.py, and need none of this.
"""

from __future__ import annotations

import re

LONGEST = 32_000
"""Most characters of a cell. Excel takes 32,767 and writes the rest into the rows below."""

_FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@＝＋－＠])")
"""Start of a formula: at the start of a cell, or after a semicolon, which some programs take for a separator."""

_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")

_PICTURES: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **{code: repr(chr(code))[1:-1] for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))},
}
"""Control character → its visible symbol, or its escape: C1, and what turns the direction of the text behind it."""


_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?")
"""A number alone: a sign before it makes no formula."""


def safe_cell(text: str) -> str:
    """`text` on one line, safe from being read as a formula, cut, or continued in other rows. Plain text and numbers stay unchanged."""
    if _NUMBER.fullmatch(text):
        return shortened(text)
    plain = text if text.isprintable() else _BREAKS.sub(" ", text).translate(_PICTURES)
    safe = _FORMULA.sub(r"\1'", plain)
    return shortened(safe, len(text))


def shortened(text: str, whole: int | None = None) -> str:
    """`text`, cut at what a cell takes. `whole`: its length in the record, where that is another one."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text) if whole is None else whole:,} characters)"
