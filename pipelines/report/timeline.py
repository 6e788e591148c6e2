"""What changed since the last night and the last week, in words, as a table, and as columns from backup to backup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pipelines.humanize import counted
from pipelines.report.history import Night, moment_of
from pipelines.report.rendering import day

CHANGES = ("added", "changed", "removed", "new", "solved")
"""Numbers of records and of issues that changed."""

FEWEST = 2
"""Compared nights of which there are columns: of one, the table says as much."""

_Sides = Sequence[Sequence[tuple[str, str, str]]]

_PANELS: Sequence[_Sides] = (
    ((("added", "plain", "added"), ("changed", "unrecognised", "changed")), (("removed", "invalid", "removed"),)),
    ((("new", "unrecognised", "new issues"),), (("solved", "valid", "solved issues"),)),
)
"""What comes above the line of each panel and what goes below it: number of a night, its colour, its meaning."""


def changes_context(nights: Sequence[Night]) -> dict[str, Any]:
    """The variables of the section on changes. `nights`: the recent ones, that of the report last; none for a partial snapshot."""
    if not nights:
        reason = "This snapshot is partial, so it is not compared: what it lacks may still be in the library."
        return {"sentences": [reason], "since": [], "nights": [], "panels": []}
    night = nights[-1]
    named = (("since the backup before", night.last_night), ("since a week before", night.last_week))
    since = [
        {**msgspec.structs.asdict(changes), "name": f"{name}, {day(moment_of(changes.since))}"}
        for name, changes in named
        if changes is not None
    ]
    compared = sum(past.last_night is not None for past in nights) >= FEWEST
    rows = [_night_row(past) for past in reversed(nights)] if compared else []
    panels = [_panel(rows, sides) for sides in _PANELS] if rows else []
    return {
        "sentences": [*_sentences(night)],
        "since": since,
        "nights": rows,
        "panels": [panel for panel in panels if panel["high"] or panel["deep"]],
    }


def _sentences(night: Night) -> Iterator[str]:
    if night.last_night is None:
        yield "This is the first complete snapshot of this library, so there is nothing to compare it with yet."
        return
    if night.last_night.new is None:
        yield "The backup before has no report with which issues could be compared; the next report will tell which are new and solved."
    if night.last_week is None:
        yield "There is no complete snapshot of about a week before."
    for name, changes in (("the backup before", night.last_night), ("a week before", night.last_week)):
        if changes is not None and changes.new_by_rules + changes.solved_by_rules:
            yield (
                f"Since {name}, {counted(changes.new_by_rules, 'issue')} came and {changes.solved_by_rules:,} went although their records "
                "stayed as they were: Bookferry's rules, or the types of identifiers in its configuration, changed."
            )


def _night_row(night: Night) -> dict[str, Any]:
    name = f"{day(night.moment)}, {night.moment:%H:%M}"
    numbers = msgspec.structs.asdict(night.last_night) if night.last_night else dict.fromkeys(CHANGES)
    return {**numbers, "name": name, "publications": night.publications, "issues": night.issues}


def _panel(rows: Sequence[Mapping[str, Any]], sides: _Sides) -> dict[str, Any]:
    """One panel of columns, oldest first, and how high and how deep they go."""
    columns = [[[(colour, row[number] or 0) for number, colour, _ in side] for side in sides] for row in reversed(rows)]
    high, deep = (
        max((sum(number for _, number in side) for side in ends), default=0) for ends in zip(*columns, strict=True)
    )
    return {
        "legend": [(colour, meaning) for side in sides for _, colour, meaning in side],
        "columns": columns,
        "high": high,
        "deep": deep,
    }
