"""Text for cells of a table that people open in a spreadsheet: a spreadsheet displays it as text and runs no formula (I13)."""

from __future__ import annotations

import re

LONGEST = 32_000
"""Most characters of a cell. Excel takes 32,767 and writes the rest into the rows below."""

_FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@＝＋－＠])")
"""Start of a formula: at the start of a cell, or after a semicolon, which some programs take for a separator."""

_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
"""Control character → its visible symbol."""


def safe_cell(text: str) -> str:
    """`text` on one line, safe from being read as a formula, cut, or continued in other rows. Plain text stays unchanged."""
    safe = _FORMULA.sub(r"\1'", _BREAKS.sub(" ", text).translate(_PICTURES))
    return safe if len(safe) <= LONGEST else f"{safe[:LONGEST]}… ({len(text):,} characters)"
