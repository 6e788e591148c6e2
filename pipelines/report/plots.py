"""The plots of a report: as SVG in the colours of the page that holds them, and as a PNG for whoever shows no page.

matplotlib costs a second to import, so it is imported when something is drawn.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 5.2
"""Inches: small enough that the labels can be read on a telephone."""

ROW, AROUND = 0.36, 0.5
"""Inches of a bar with its gap, and of what is around all of them."""

LIGHT = {
    "ink": "#1f2933",
    "line": "#d5dae0",
    "valid": "#2f6f5e",
    "repaired": "#8fbfa5",
    "invalid": "#b3402e",
    "unrecognised": "#d99a3c",
    "plain": "#44679f",
}
"""Colour of each name on white."""

_TOKENS = {name: f"#00{number:02x}fe" for number, name in enumerate(LIGHT)}
"""Colours that stand for names until the page's own take their place."""

_SETTINGS: Any = {
    "text.parse_math": False,  # a label from a library may look like TeX
    "svg.fonttype": "none",
    "svg.hashsalt": "bookferry",
    "font.family": "sans-serif",
    "font.size": 10,
}


class Bar(NamedTuple):
    """One bar: its name, the parts of it, and what stands behind it."""

    label: str
    parts: Sequence[int]
    note: str


class Plot(NamedTuple):
    """Horizontal bars; `colours` names the colour of each part, which `legend` explains."""

    title: str
    colours: Sequence[str]
    bars: Sequence[Bar]
    legend: Sequence[str] = ()


def as_svg(plot: Plot) -> str:
    """An `<svg>` to be put into a page that has a CSS variable for each colour."""
    import matplotlib as mpl  # noqa: PLC0415  see the module's charter

    with mpl.rc_context(_SETTINGS), io.StringIO() as file:
        figure = _figure([plot], _TOKENS)
        figure.savefig(
            file, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Type", "Format"))
        )
        return _for_page(file.getvalue(), plot.title)


def as_png(plots: Sequence[Plot]) -> bytes:
    """Plots side by side, on white."""
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context(_SETTINGS), io.BytesIO() as file:
        _figure(plots, LIGHT, titles=True).savefig(file, format="png", dpi=100, metadata={"Software": None})
        return file.getvalue()


def _figure(plots: Sequence[Plot], colours: Mapping[str, str], *, titles: bool = False) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows = max(len(plot.bars) for plot in plots)
    height = AROUND + ROW * max(rows, 1) + (0.6 if titles else 0)
    figure = Figure(figsize=(WIDTH * len(plots), height), layout="constrained")
    for number, plot in enumerate(plots, start=1):
        _draw(figure.add_subplot(1, len(plots), number), plot, colours, titles=titles)
    return figure


def _draw(axes: Axes, plot: Plot, colours: Mapping[str, str], *, titles: bool) -> None:
    places = range(len(plot.bars))
    left = [0] * len(plot.bars)
    for part, colour in enumerate(plot.colours):
        widths = [bar.parts[part] for bar in plot.bars]
        label = plot.legend[part] if plot.legend else None
        axes.barh(places, widths, left=left, height=0.62, color=colours[colour], label=label, clip_on=False)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    longest = max(left, default=0) or 1
    for place, bar, end in zip(places, plot.bars, left, strict=True):
        axes.text(end + longest * 0.02, place, bar.note, va="center", color=colours["ink"], fontsize=9)
    axes.set_yticks(places, [_label(bar.label) for bar in plot.bars], color=colours["ink"])
    axes.set_xlim(0, longest * 1.3)
    axes.set_ylim(max(len(plot.bars), 1) - 0.5, -0.5)
    axes.xaxis.set_visible(False)
    axes.tick_params(left=False)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "left")
        spine.set_color(colours["line"])
    if titles:
        axes.set_title(plot.title, loc="left", color=colours["ink"], fontsize=11)
        if plot.legend:
            axes.legend(loc="upper center", bbox_to_anchor=(0.45, 0), ncols=len(plot.legend), frameon=False, fontsize=8)


def _label(text: str) -> str:
    """A label that the font of every machine has signs for; the table beside the plot has the text itself."""
    return text.encode("ascii", "replace").decode()


def _for_page(svg: str, title: str) -> str:
    """Without what only a file of its own needs, with the page's colours, and with a name for those who do not see it."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<defs>.*?</defs>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r' id="[^"]*"', "", body)
    body = re.sub(r"font-family: [^;]*; ", "", body)
    body = re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{title}">', body, count=1
    )
    for name, token in _TOKENS.items():
        body = body.replace(token, f"var(--{name})")
    return body.strip()
