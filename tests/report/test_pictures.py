"""The pictures: neighbours differ in brightness, nothing is told by colour alone, and there is none of a single bar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pipelines.records.identifiers.verdicts import VERDICTS
from pipelines.report.build import make_report
from pipelines.report.history import Changes, Night
from pipelines.report.pages import Report, plots_of
from pipelines.report.plots import COLOURS, TEXTURES, Bar, Plot, as_image, for_page
from pipelines.report.timeline import timeline_as_image, timeline_for_page
from pipelines.store.snapshots.snapshots import DataFolder
from tests.report.library import NOW, snapshot_of
from tests.store.snapshot_factory import STARTED_AT

CSS = files("pipelines.report").joinpath("templates", "report.css").read_text("utf-8")


def palettes() -> Iterator[dict[str, str]]:
    """The colours of light, dark and paper, and those of images."""
    for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL):
        yield dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
    yield COLOURS


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", list(palettes()), ids=["light", "dark", "paper", "image"])
def test_neighbours_differ_in_brightness(palette: dict[str, str], real: Report) -> None:
    """3 to 1 between neighbours in a bar and to the page; each colour of a bar has another texture than its neighbours."""
    for plot in plots_of(real).values():
        for name in plot.colours:
            assert contrast(palette[name], palette["paper"]) >= 3
        for one, other in (*pairwise(plot.colours), *pairwise(("plain", "unrecognised", "valid"))):
            assert contrast(palette[one], palette[other]) >= 3, (one, other)
            assert TEXTURES.get(one) != TEXTURES.get(other)


def test_the_style_sheet_has_the_textures() -> None:
    """A swatch of a legend looks like its part of a bar."""
    striped = {
        name for name in COLOURS if re.search(rf"\.{name}::before \{{ background: repeating-linear-gradient", CSS)
    }
    assert striped == TEXTURES.keys()


def test_verdicts_have_the_words_of_the_tables(real: Report) -> None:
    """One word for one verdict: in tables, notebook, report and legend."""
    assert plots_of(real)["verdicts"].legend == VERDICTS
    text = Path(real.paths.html).read_text("utf-8")
    assert all(verdict in text for verdict in VERDICTS)
    assert not re.search(
        r"mended|not recognised|arxiv_id|published_on|publishable_type|residue", text.partition("</style>")[2]
    )


def test_there_is_no_picture_of_a_single_bar(data: DataFolder) -> None:
    """Its number is in the table."""
    one = Plot("Kinds", ("plain",), [Bar("Book", [3], "3")])
    assert for_page(one) == ""
    found = make_report(data, snapshot_of(data, [{"id": 1, "title": "A title", "isbn": "978-0-306-40615-8"}]), now=NOW)
    page = Path(found.paths.html).read_text("utf-8")
    assert "<svg" not in page
    assert "wrong check digit" in page


def test_texture_names_are_unique_on_a_page(real: Report) -> None:
    """Two pictures with the same texture do not share its definition, which a browser would take from the first."""
    page = Path(real.paths.html).read_text("utf-8")
    names = re.findall(r'id="([^"]*)"', page)
    assert names
    assert len(names) == len(set(names))
    assert set(re.findall(r"url\(#([^)]*)\)", page)) == set(names)


def nights(*changes: tuple[int, int, int, int, int] | None, days: Sequence[int] = ()) -> list[Night]:
    found = []
    for place, one in enumerate(changes):
        moment = STARTED_AT + timedelta(days=days[place] if days else place)
        compared = one and Changes(
            since="20261119T020000Z", **dict(zip(("added", "changed", "removed", "new", "solved"), one, strict=True))
        )
        found.append(Night(snapshot=moment.strftime("%Y%m%dT%H%M%SZ"), publications=9, last_night=compared or None))
    return found


def test_the_picture_of_the_nights() -> None:
    """A column for each number that is not zero, above or below its line; a screen reader hears the sums."""
    drawn = timeline_for_page(nights(None, (1, 2, 3, 4, 5), (1, 0, 0, 0, 0)))
    svg = ET.fromstring(drawn)
    assert (
        svg.get("aria-label")
        == "The last 14 days, 2 comparisons: 2 records added, 2 changed, 3 removed; 4 new issues, 5 solved"
    )
    swatches, columns = 5, 6
    assert len([one for one in svg.iter("rect") if one.get("x")]) == swatches + columns
    assert [one.text for one in svg.iter("text")][-3:] == ["9 Nov", "15 Nov", "22 Nov"]
    assert timeline_for_page(nights(None, (1, 2, 3, 4, 5))) == "", "of a single night the table says as much"
    assert timeline_as_image(nights(None, (1, 2, 3, 4, 5))) == ""
    assert timeline_for_page([]) == ""


def test_what_has_no_data_is_not_drawn() -> None:
    """Nights in which nothing changed, a panel without a number, bars of zeros."""
    assert timeline_for_page(nights(None, (0, 0, 0, 0, 0), (0, 0, 0, 0, 0))) == ""
    drawn = timeline_for_page(nights(None, (1, 0, 0, 0, 0), (0, 0, 0, 0, 0)))
    assert "added" in drawn
    assert "solved issues</text>" not in drawn
    assert for_page(Plot("Nothing", ("valid",), [Bar("one", (0,), "0"), Bar("two", (0,), "0")])) == ""


def test_several_backups_of_a_day_are_one_column_and_old_ones_are_left_out() -> None:
    """The picture has at most 90 days."""
    found = nights((5, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 0, 0, 0, 0), days=(0, 95, 95))
    svg = ET.fromstring(timeline_for_page(found))
    assert len([one for one in svg.iter("rect") if one.get("x")]) == 3 + 1
    assert "2" in {one.text for one in svg.iter("text")}


@pytest.mark.parametrize("parts", [(0, 0), (1, 10**9), (10**9, 1)])
def test_a_part_that_is_not_zero_stays_visible(parts: tuple[int, int]) -> None:
    plot = Plot("Parts", ("valid", "invalid"), [Bar("one", parts, ""), Bar("two", (1, 1), "")], ("yes", "no"))
    svg = ET.fromstring(for_page(plot))
    widths = [float(one.get("width", 0)) for one in svg.iter("rect") if one.get("x")]
    assert len(widths) == sum(1 for part in parts if part) + 2
    assert min(widths) >= 1
    assert as_image(plot).startswith("data:image/svg+xml;base64,")
