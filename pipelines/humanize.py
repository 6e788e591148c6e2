"""Numbers, bytes and durations as text for people; commands, reports and plans all use these functions."""

from __future__ import annotations

from collections.abc import Sequence

MOST_LISTED = 1000
"""Entries that a list in a result document has at most; the document also has their number (I11)."""


def size(count: int) -> str:
    """Returns bytes as text: `1.4 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:  # noqa: PLR2004  SI
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Returns a number with its noun: `1 request`, `1,090 requests`. `plural`: where that is not made with an `s`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def last_and_more(names: Sequence[str]) -> str:
    """Returns the last of some names, and how many there are besides: `new and 3 more`."""
    return names[-1] if len(names) == 1 else f"{names[-1]} and {len(names) - 1:,} more"


def duration(seconds: float) -> str:
    """Returns seconds as text: `4 s`, `2 min 10 s`, `5 h 33 min`, `3 days 11 h`."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004
        return f"{whole} s"
    if whole < 3600:  # noqa: PLR2004
        return f"{whole // 60} min {whole % 60} s"
    if whole < 2 * 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} days {whole % 86_400 // 3600} h"
