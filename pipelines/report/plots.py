"""The plots of a report: horizontal bars as SVG, for a page with its colours or as an image.

There is no plotting library: bars are rectangles, and its import would cost every backup a second. Nothing is told by colour alone: each
colour has a texture of its own, neighbours in a bar differ in brightness by 3 to 1 and have a gap between them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

WIDTH, NOTES = 460, 60
"""Width of a plot, and of the numbers behind the longest bar in it; pixels on a wide page."""

ROW, BAR, TEXT = 26, 15, 12.5
"""Heights of a row, of its bar and of its text, in pixels."""

LONGEST, CHARACTER = 26, 7.4
"""Most characters of a label, and the width of a character in a wide font."""

GAP = 1.5
"""Pixels between the parts of a bar."""

COLOURS = {
    "paper": "#ffffff",
    "ink": "#1f2933",
    "line": "#d5dae0",
    "valid": "#17483c",
    "repaired": "#6a9e86",
    "invalid": "#7f1d12",
    "unrecognised": "#c0862a",
    "plain": "#1f3f78",
}
"""Colours of an image. A page has a CSS variable for each."""

TEXTURES = {
    "repaired": ((2, 6), 45),
    "invalid": ((1, 4), 0),
    "unrecognised": ((2, 5), -45),
}
"""Colour → texture: stripes in the colour of the paper, with their width, their distance and their angle. report.css has the same."""

Colour = Callable[[str], str]
"""Name of a colour → its value in SVG."""


class Bar(NamedTuple):
    """One bar: its label, its parts, and the text after it."""

    label: str
    parts: Sequence[int]
    note: str


class Plot(NamedTuple):
    """Bars below a title. `colours`: the colour of each part; `legend`: its meaning."""

    title: str
    colours: Sequence[str]
    bars: Sequence[Bar]
    legend: Sequence[str] = ()

    @property
    def compares(self) -> bool:
        """Whether there is anything to compare: a single bar tells no more than its number, and bars of zeros nothing."""
        return len(self.bars) > 1 and any(any(bar.parts) for bar in self.bars)


def for_page(plot: Plot) -> str:
    """An `<svg>` for a page that has title and legend of its own; nothing where there is nothing to compare."""
    if not plot.compares:
        return ""
    fills = Fills(plot.title, variable)
    bars = "".join(_bars(plot, 0, fills))
    return svg_for_page(plot.title, ROW * len(plot.bars), fills.patterns() + bars)


def as_image(plot: Plot) -> str:
    """An image with title and legend, as a data URI."""
    top = 2 * ROW if plot.legend else ROW
    fills = Fills(plot.title, COLOURS.__getitem__)
    inside = [*_legend(plot, fills), *_bars(plot, top, fills)]
    return svg_as_image(plot.title, top + ROW * len(plot.bars) + 6, fills.patterns() + "".join(inside))


def variable(name: str) -> str:
    """The colour of a page, which follows light, dark and paper."""
    return f"var(--{name})"


def svg_for_page(title: str, height: float, inside: str) -> str:
    """An `<svg>` element of a page. `title` is what a screen reader says."""
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">{inside}</svg>'


def svg_as_image(title: str, height: float, inside: str) -> str:
    """A data URI of an image with its title in the first row."""
    paper = f'<rect width="{WIDTH}" height="{height:g}" fill="{COLOURS["paper"]}"/>'
    heading = text_at(8, 18, title, COLOURS["ink"], 'font-weight="bold"')
    shape = f'width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" font-family="sans-serif"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>{paper}{heading}{inside}</svg>'
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


class Fills:
    """The colours of one picture, and their textures. `title` keeps the names of textures apart on a page with several pictures."""

    def __init__(self, title: str, colour: Colour) -> None:
        self.colour = colour
        self._prefix = "".join(letter for letter in title.lower() if letter.isascii() and letter.isalnum())
        self._used: dict[str, None] = {}

    def __getitem__(self, name: str) -> str:
        """The fill of a shape."""
        if name not in TEXTURES:
            return self.colour(name)
        self._used[name] = None
        return f"url(#{self._prefix}-{name})"

    def patterns(self) -> str:
        """The definitions of the textures that were used."""
        return "".join(map(self._pattern, self._used))

    def _pattern(self, name: str) -> str:
        (stripe, distance), angle = TEXTURES[name]
        size = f'width="{distance}" height="{distance}"'
        base = f'<rect {size} fill="{self.colour(name)}"/>'
        line = f'<rect width="{stripe / 2:g}" height="{distance}" fill="{self.colour("paper")}"/>'
        turned = f'patternTransform="rotate({angle})"'
        return (
            f'<pattern id="{self._prefix}-{name}" {size} patternUnits="userSpaceOnUse" {turned}>{base}{line}</pattern>'
        )


def _bars(plot: Plot, top: int, fills: Fills) -> Iterator[str]:
    labels = [one.label if len(one.label) <= LONGEST else f"{one.label[: LONGEST - 1]}…" for one in plot.bars]
    left = 8 + CHARACTER * max(map(len, labels), default=0)
    scale = (WIDTH - left - NOTES) / max((sum(bar.parts) for bar in plot.bars), default=1)
    ink = fills.colour("ink")
    for row, (label, bar) in enumerate(zip(labels, plot.bars, strict=True)):
        y, x = top + row * ROW, left
        base = y + ROW / 2 + TEXT / 3
        yield text_at(left - 8, base, label, ink, 'text-anchor="end"')
        for part, name in zip(bar.parts, plot.colours, strict=True):
            if part:
                width = max(part * scale, GAP + 1)  # a part that is not zero stays visible
                yield rectangle(x, y + (ROW - BAR) / 2, width - GAP, BAR, fills[name])
                x += width
        yield text_at(x + 6, base, bar.note, ink)
    if plot.bars:
        bottom = top + ROW * len(plot.bars)
        yield thin_line((left - 1, top), (left - 1, bottom), fills.colour("line"))


def _legend(plot: Plot, fills: Fills) -> Iterator[str]:
    yield from legend_at(8, ROW + 2, zip(plot.colours, plot.legend, strict=False), fills)


def legend_at(x: float, y: float, entries: Iterable[tuple[str, str]], fills: Fills) -> Iterator[str]:
    """A row of swatches with their meaning. `entries`: colour and meaning."""
    for name, meaning in entries:
        yield rectangle(x, y, 11, 11, fills[name])
        yield text_at(x + 16, y + 10, meaning, fills.colour("ink"))
        x += 34 + CHARACTER * len(meaning)


def rectangle(x: float, y: float, width: float, height: float, fill: str) -> str:
    """A rectangle."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>'


def thin_line(start: tuple[float, float], end: tuple[float, float], colour: str) -> str:
    """A thin line."""
    return f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{colour}"/>'


def text_at(x: float, y: float, text: str, colour: str, how: str = "") -> str:
    """A text whose base line begins at a point; `how`: more attributes."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{TEXT}" fill="{colour}" {how}>{escape(text)}</text>'
