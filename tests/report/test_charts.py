"""The charts: neighbours differ in brightness, nothing is told by colour alone, and there is none where nothing is to be compared."""

from __future__ import annotations

from datetime import timedelta

from pipelines.report.history import Changes, Night
from pipelines.report.timeline import changes_context
from tests.store.snapshot_factory import STARTED_AT

"""The colours of light, dark and paper."""


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def nights(*changes: tuple[int, int, int, int, int] | None) -> list[Night]:
    names = ("added", "changed", "removed", "new", "solved")
    return [
        Night(
            snapshot=f"{STARTED_AT + timedelta(days=day):%Y%m%dT%H%M%SZ}",
            publications=9,
            last_night=numbers and Changes(since="20261119T020000Z", **dict(zip(names, numbers, strict=True))),
        )
        for day, numbers in enumerate(changes)
    ]


def test_the_columns_of_the_nights() -> None:
    """Oldest first, above or below their line; the table has the same numbers, newest first."""
    changes = changes_context(nights(None, (1, 2, 3, 4, 5), (1, 0, 0, 0, 0)), complete=True)
    records, issues = changes["panels"]
    assert records["columns"] == [
        [[("plain", 0), ("unrecognised", 0)], [("invalid", 0)]],
        [[("plain", 1), ("unrecognised", 2)], [("invalid", 3)]],
        [[("plain", 1), ("unrecognised", 0)], [("invalid", 0)]],
    ]
    assert (records["high"], records["deep"], issues["high"], issues["deep"]) == (3, 3, 4, 5)
    assert [row["added"] for row in changes["nights"]] == [1, 1, None]


def test_what_has_no_data_is_not_drawn() -> None:
    """A single comparison, nights in which nothing changed, a panel without a number."""
    single = changes_context(nights(None, (1, 2, 3, 4, 5)), complete=True)
    assert (single["nights"], single["panels"]) == ([], []), "of a single night the table says as much"
    assert changes_context(nights(None, (0, 0, 0, 0, 0), (0, 0, 0, 0, 0)), complete=True)["panels"] == []
    [records] = changes_context(nights(None, (1, 0, 0, 0, 0), (0, 0, 0, 0, 0)), complete=True)["panels"]
    assert ("plain", "added") in records["legend"]
