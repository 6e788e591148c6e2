"""Text for the cells of a table that somebody opens in a spreadsheet: it is shown as text, whatever it holds (I13)."""

from __future__ import annotations

import re

LONGEST = 32_000
"""Characters of a cell. Excel takes 32,767 and spills the rest over the rows below."""

_FORMULA = re.compile(r"(^|;)(?=\s*[=+\-@＝＋－＠])")
"""What begins a formula: at the start of a cell, and where a program that separates by semicolons would see a start."""

_BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
"""Control characters, and the signs that show them."""


def safe_cell(text: str) -> str:
    """`text` on one line, so that no spreadsheet takes it for a formula, cuts it, or lets it flow over. Plain text stays as it is."""
    safe = _FORMULA.sub(r"\1'", _BREAKS.sub(" ", text).translate(_PICTURES))
    return safe if len(safe) <= LONGEST else f"{safe[:LONGEST]}… ({len(text):,} characters)"
