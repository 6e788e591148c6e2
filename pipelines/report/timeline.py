"""What changed since the last night and the last week, in words, as a table, and as a picture of the last months."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pipelines.humanize import counted
from pipelines.report.history import SHOWN_DAYS, Changes, Night, moment_of
from pipelines.report.plots import (
    COLOURS,
    ROW,
    WIDTH,
    Fills,
    legend_at,
    rectangle,
    svg_as_image,
    svg_for_page,
    text_at,
    thin_line,
    variable,
)
from pipelines.report.rendering import day

TITLE = "What changed from backup to backup"

FEWEST_DAYS = 14
"""Days of the picture at least; it grows with the history."""

WIDEST = 24
"""Pixels of a column at most."""

LEFT, RIGHT = 62, 10
"""Pixels beside the nights: numbers, and an edge."""

PANEL = 64
"""Height of one panel."""

FEWEST = 2
"""Nights of which there is a picture: of one, the table says as much."""

_FIELDS = ("added", "changed", "removed", "new", "solved")

_Series = Sequence[tuple[str, str, Callable[[Night], int | None]]]
"""Colour, meaning, and number of each night."""

_RECORDS_UP: _Series = (
    ("plain", "added", lambda night: night.last_night.added if night.last_night else None),
    ("unrecognised", "changed", lambda night: night.last_night.changed if night.last_night else None),
)
_RECORDS_DOWN: _Series = (("invalid", "removed", lambda night: night.last_night.removed if night.last_night else None),)
_ISSUES_UP: _Series = (
    ("unrecognised", "new issues", lambda night: night.last_night.new if night.last_night else None),
)
_ISSUES_DOWN: _Series = (
    ("valid", "solved issues", lambda night: night.last_night.solved if night.last_night else None),
)
_PANELS = ((_RECORDS_UP, _RECORDS_DOWN), (_ISSUES_UP, _ISSUES_DOWN))


def changes_context(nights: Sequence[Night], *, complete: bool) -> dict[str, Any]:
    """The variables of the section on changes. `nights`: the recent ones, that of the report last."""
    if not nights:
        reason = (
            ""
            if complete
            else "This snapshot is partial, so it is not compared: what it lacks may still be in the library."
        )
        return {"sentences": [reason], "rows": [], "days": 0, "nights": []}
    night = nights[-1]
    named = [("since the backup before", night.last_night), ("since a week before", night.last_week)]
    rows = [_row(f"{name}, {day(moment_of(one.since))}", one) for name, one in named if one is not None]
    return {
        "sentences": list(_sentences(night)),
        "rows": rows,
        "days": _days(nights),
        "nights": [_night_row(one) for one in reversed(nights)] if _are_compared(nights) else [],
    }


def _sentences(night: Night) -> Iterator[str]:
    if night.last_night is None:
        yield "This is the first complete snapshot of this library, so there is nothing to compare it with yet."
        return
    if night.last_night.new is None:
        yield "The backup before has no report with which issues could be compared; the next report will tell which are new and solved."
    if night.last_week is None:
        yield "There is no complete snapshot of about a week before."
    for name, one in (("the backup before", night.last_night), ("a week before", night.last_week)):
        if one is not None and one.new_by_rules + one.solved_by_rules:
            yield (
                f"Since {name}, {counted(one.new_by_rules, 'issue')} came and {one.solved_by_rules:,} went although their records "
                "stayed as they were: Bookferry's rules, or the types of identifiers in its configuration, changed."
            )


def _row(name: str, one: Changes) -> dict[str, str]:
    return {"name": name, **_numbers(one)}


def _numbers(one: Changes | None) -> dict[str, str]:
    found = [getattr(one, field) if one is not None else None for field in _FIELDS]
    return {field: "–" if number is None else f"{number:,}" for field, number in zip(_FIELDS, found, strict=True)}


def _night_row(night: Night) -> dict[str, str]:
    issues = "–" if night.issues is None else f"{night.issues:,}"
    name = f"{day(night.moment)}, {night.moment:%H:%M}"
    return {"name": name, "publications": f"{night.publications:,}", "issues": issues, **_numbers(night.last_night)}


def _are_compared(nights: Sequence[Night]) -> bool:
    return sum(night.last_night is not None for night in nights) >= FEWEST


def _is_drawn(nights: Sequence[Night]) -> bool:
    return _are_compared(nights) and any(_changed(nights, *panel) for panel in _PANELS)


def _changed(nights: Sequence[Night], *sides: _Series) -> bool:
    """Whether a panel has anything to show."""
    return any(_sum(nights, number) for side in sides for _colour, _meaning, number in side)


def _days(nights: Sequence[Night]) -> int:
    """The days of the picture."""
    found = (nights[-1].moment.date() - nights[0].moment.date()).days + 1
    return min(max(found, FEWEST_DAYS), SHOWN_DAYS)


def timeline_for_page(nights: Sequence[Night]) -> str:
    """The picture for a page; nothing where there are too few nights, or nothing changed in any of them."""
    if not _is_drawn(nights):
        return ""
    fills = Fills(TITLE, variable)
    inside, height = _drawn(nights, 0, fills)
    return svg_for_page(_said(nights), height, fills.patterns() + inside)


def timeline_as_image(nights: Sequence[Night]) -> str:
    """The same as a data URI."""
    if not _is_drawn(nights):
        return ""
    fills = Fills(TITLE, COLOURS.__getitem__)
    inside, height = _drawn(nights, ROW, fills)
    return svg_as_image(TITLE, height, fills.patterns() + inside)


def _said(nights: Sequence[Night]) -> str:
    """What a screen reader says instead of the picture; the table has each night."""
    compared = [night.last_night for night in nights if night.last_night is not None]
    sums = {
        name: sum(getattr(one, name) or 0 for one in compared)
        for name in ("added", "changed", "removed", "new", "solved")
    }
    return (
        f"The last {_days(nights)} days, {counted(len(compared), 'comparison')}: {sums['added']:,} records added, "
        f"{sums['changed']:,} changed, {sums['removed']:,} removed; {sums['new']:,} new issues, {sums['solved']:,} solved"
    )


def _drawn(nights: Sequence[Night], top: float, fills: Fills) -> tuple[str, float]:
    """The panels below each other, and the height of all."""
    days = _days(nights)
    first = (nights[-1].moment - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0)
    columns = dict[int, list[Night]]()
    for night in nights:
        if night.moment >= first:
            columns.setdefault((night.moment - first).days, []).append(night)
    parts = list[str]()
    y = top
    for up, down in _PANELS:
        if not _changed(nights, up, down):
            continue
        entries = [(colour, meaning) for colour, meaning, _number in (*up, *down)]
        parts += legend_at(LEFT, y + 4, entries, fills)
        parts += _panel(columns, days, y + ROW, fills, (up, down))
        y += ROW + PANEL + 14
    parts += _dates(first, nights[-1].moment, y, fills)
    return "".join(parts), y + ROW


def _panel(
    of_days: Mapping[int, Sequence[Night]], days: int, top: float, fills: Fills, sides: tuple[_Series, _Series]
) -> Iterator[str]:
    """One panel: what comes above its line, what goes below it. Several backups of one day are one column."""
    columns = {
        place: [[_sum(nights, number) for _colour, _meaning, number in side] for side in sides]
        for place, nights in of_days.items()
    }
    highest, deepest = (max((sum(column[side]) for column in columns.values()), default=0) for side in (0, 1))
    scale = PANEL / max(highest + deepest, 1)
    line = top + highest * scale
    step = (WIDTH - LEFT - RIGHT) / days
    width = min(step - 0.8, WIDEST)
    for place, column in columns.items():
        x = LEFT + place * step + (step - width) / 2
        for direction, side, numbers in zip((-1, 1), sides, column, strict=True):
            y = line
            for number, (colour, _meaning, _number) in zip(numbers, side, strict=True):
                if number:
                    height = max(number * scale, 1.5)
                    yield rectangle(x, min(y, y + direction * height), width, height, fills[colour])
                    y += direction * height
    ink, right = fills.colour("ink"), 'text-anchor="end"'
    yield thin_line((LEFT, line), (WIDTH - RIGHT, line), fills.colour("line"))
    if highest:
        yield text_at(LEFT - 6, top + 9, f"{highest:,}", ink, right)
    if deepest:
        yield text_at(LEFT - 6, max(top + PANEL + 4, line + 14), f"−{deepest:,}", ink, right)


def _sum(nights: Sequence[Night], number: Callable[[Night], int | None]) -> int:
    return sum(number(night) or 0 for night in nights)


def _dates(first: datetime, last: datetime, y: float, fills: Fills) -> Iterator[str]:
    ink = fills.colour("ink")
    middle = first + (last - first) / 2
    for x, moment, anchor in (
        (LEFT, first, "start"),
        ((LEFT + WIDTH - RIGHT) / 2, middle, "middle"),
        (WIDTH - RIGHT, last, "end"),
    ):
        yield text_at(x, y + 12, f"{moment.day} {moment:%b}", ink, f'text-anchor="{anchor}"')
