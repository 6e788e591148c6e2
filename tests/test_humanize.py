"""Numbers, bytes and durations as text for people."""

from __future__ import annotations

import pytest

from pipelines.humanize import counted, duration, size


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h 0 min"),
        (172_799, "47 h 59 min"),
        (300_000, "3 days 11 h"),
    ],
)
def test_a_time_has_two_units_at_most(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_numbers_and_bytes() -> None:
    assert [counted(number, "file") for number in (0, 1, 5445)] == ["0 files", "1 file", "5,445 files"]
    assert [size(number) for number in (999, 1000, 12_300_000, 5 * 10**15)] == [
        "999 B",
        "1.0 kB",
        "12.3 MB",
        "5000.0 TB",
    ]
