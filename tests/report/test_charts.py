"""The charts: neighbours differ in brightness, nothing is told by colour alone, and there is none where nothing is to be compared."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from pipelines.migration.report.pages import COLOURS
from pipelines.records.identifiers.verdicts import VERDICTS
from pipelines.report.build import make_report
from pipelines.report.history import Changes, Night
from pipelines.report.pages import Report
from pipelines.report.rendering import longest_bar
from pipelines.report.timeline import changes_context
from pipelines.store.snapshots.snapshots import DataFolder
from tests.report.library import NOW, snapshot_of
from tests.store.snapshot_factory import STARTED_AT

CSS = files("pipelines.report").joinpath("templates", "report.css").read_text("utf-8")

PALETTES = [
    dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
]
"""The colours of light, dark and paper."""

TEXTURES = dict(re.findall(r"\.(\w+) \{ --fill: ([^;]*);", CSS))

NEIGHBOURS = (*pairwise(VERDICTS), ("valid", "unrecognised"), *pairwise(COLOURS))


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark", "paper"])
def test_neighbours_differ_in_brightness(palette: dict[str, str]) -> None:
    """3 to 1 between neighbours in a bar and to the page; each has another texture than its neighbours."""
    for name in TEXTURES:
        assert contrast(palette[name], palette["paper"]) >= 3
    for one, other in NEIGHBOURS:
        assert contrast(palette[one], palette[other]) >= 3, (one, other)
        assert TEXTURES[one].replace(one, "") != TEXTURES[other].replace(other, "")


def test_verdicts_have_the_words_of_the_tables(real: Report) -> None:
    """One word for one verdict: in tables, notebook, report and legend."""
    text = Path(real.paths.html).read_text("utf-8").partition("</style>")[2]
    for verdict in VERDICTS:
        assert f'<span class="{verdict}">{verdict}: ' in text
        assert f'<th class="n">{verdict}</th>' in text
    assert not re.search(r"mended|not recognised|arxiv_id|published_on|publishable_type|residue", text)


def test_there_is_no_chart_of_a_single_bar(data: DataFolder) -> None:
    """Its number is in the table; nor is there one of bars of zeros."""
    assert longest_bar([{"parts": [("plain", 3)]}]) == 0
    assert longest_bar([{"parts": [("plain", 0)]}] * 2) == 0
    assert longest_bar([{"parts": [("valid", 3), ("invalid", 2)]}, {"parts": [("plain", 4)]}]) == 5
    report = make_report(data, snapshot_of(data, [{"id": 1, "title": "A title", "isbn": "978-0-306-40615-8"}]), now=NOW)
    page = Path(report.paths.html).read_text("utf-8").partition("</style>")[2]
    assert "<i " not in page
    assert "wrong check digit" in page


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
