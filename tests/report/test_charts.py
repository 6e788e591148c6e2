"""The charts: neighbours differ in brightness, nothing is told by colour alone, and there is none where nothing is to be compared."""

from __future__ import annotations

from datetime import timedelta

from pipelines.report.history import Changes, Night
from pipelines.report.timeline import changes_context
from tests.store.snapshot_factory import STARTED_AT


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
    changes = changes_context(nights(None, (1, 2, 3, 4, 5), (1, 0, 0, 0, 0)))
    records, issues = changes["panels"]
    assert records["columns"] == [
        [[("plain", 0), ("unrecognised", 0)], [("invalid", 0)]],
        [[("plain", 1), ("unrecognised", 2)], [("invalid", 3)]],
        [[("plain", 1), ("unrecognised", 0)], [("invalid", 0)]],
    ]
    assert (records["high"], records["deep"], issues["high"], issues["deep"]) == (3, 3, 4, 5)
    assert [row["added"] for row in changes["nights"]] == [1, 1, None]
