"""The plots of a report: horizontal bars as SVG, for a page with its colours or as an image.

There is no plotting library: bars are rectangles, and its import would cost every backup a second.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

WIDTH, NOTES = 460, 60
"""Width of a plot, and of the numbers behind the longest bar in it; pixels on a wide page."""

ROW, BAR, TEXT = 26, 15, 12.5
"""Heights of a row, of its bar and of its text, in pixels."""

LONGEST, CHARACTER = 26, 7.4
"""Most characters of a label, and the width of a character in a wide font."""

COLOURS = {
    "paper": "#ffffff",
    "ink": "#1f2933",
    "line": "#d5dae0",
    "valid": "#2f6f5e",
    "repaired": "#8fbfa5",
    "invalid": "#b3402e",
    "unrecognised": "#d99a3c",
    "plain": "#44679f",
}
"""Colours of an image. A page has a CSS variable for each."""


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


def for_page(plot: Plot) -> str:
    """An `<svg>` for a page that has title and legend of its own."""
    height = ROW * len(plot.bars)
    bars = "".join(_bars(plot, 0, lambda name: f"var(--{name})"))
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(plot.title)}">{bars}</svg>'


def as_image(plot: Plot) -> str:
    """An image with title and legend, as a data URI."""
    top = 2 * ROW if plot.legend else ROW
    height = top + ROW * len(plot.bars) + 6
    inside = [
        f'<rect width="{WIDTH}" height="{height}" fill="{COLOURS["paper"]}"/>',
        _text(8, 18, plot.title, COLOURS["ink"], 'font-weight="bold"'),
        *_legend(plot),
        *_bars(plot, top, COLOURS.__getitem__),
    ]
    shape = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>{"".join(inside)}</svg>'
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _bars(plot: Plot, top: int, colour: Callable[[str], str]) -> Iterator[str]:
    labels = [one.label if len(one.label) <= LONGEST else f"{one.label[: LONGEST - 1]}…" for one in plot.bars]
    left = 8 + CHARACTER * max(map(len, labels), default=0)
    scale = (WIDTH - left - NOTES) / max((sum(bar.parts) for bar in plot.bars), default=1)
    for row, (label, bar) in enumerate(zip(labels, plot.bars, strict=True)):
        y, x = top + row * ROW, left
        base = y + ROW / 2 + TEXT / 3
        yield _text(left - 8, base, label, colour("ink"), 'text-anchor="end"')
        for part, name in zip(bar.parts, plot.colours, strict=True):
            width = max(part * scale, 1) if part else 0  # a bar that is not zero stays visible
            yield f'<rect x="{x:.1f}" y="{y + (ROW - BAR) / 2}" width="{width:.1f}" height="{BAR}" fill="{colour(name)}"/>'
            x += width
        yield _text(x + 6, base, bar.note, colour("ink"))
    if plot.bars:
        bottom = top + ROW * len(plot.bars)
        yield f'<line x1="{left:.1f}" x2="{left:.1f}" y1="{top}" y2="{bottom}" stroke="{colour("line")}"/>'


def _legend(plot: Plot) -> Iterator[str]:
    x = 8.0
    for name, meaning in zip(plot.colours, plot.legend, strict=False):
        yield f'<rect x="{x:.0f}" y="{ROW + 2}" width="10" height="10" fill="{COLOURS[name]}"/>'
        yield _text(x + 15, ROW + 12, meaning, COLOURS["ink"])
        x += 32 + CHARACTER * len(meaning)


def _text(x: float, y: float, text: str, colour: str, how: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{TEXT}" fill="{colour}" {how}>{escape(text)}</text>'
