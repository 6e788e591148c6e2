"""Makes pages from templates; Jinja escapes every text from a record (I13).

A page needs no network, and its content security policy forbids it, as it forbids scripts, except for the one of a plan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from importlib import resources
from typing import TYPE_CHECKING, Any

from pipelines.report.plots import Plot, for_page

if TYPE_CHECKING:
    from jinja2 import Environment

NOT_SHOWN = "(not shown: it may name a person)"

_PERSON = re.compile(r"contributor|user|person|owner|editor|_by\b|mail|phone|borrow|patron|assign", re.IGNORECASE)
"""Parts of the names of keys whose values may name a person."""


def html(package: str, name: str, context: Mapping[str, Any], plots: Mapping[str, Plot | str]) -> str:
    """The page of a template with the variables of `context`, `plots` by name (a text is SVG already), and the common style sheet."""
    from markupsafe import Markup  # noqa: PLC0415  with Jinja

    drawn = {key: Markup(_svg(plot)) for key, plot in plots.items()}  # noqa: S704  it escapes its labels
    css = Markup(_template("pipelines.report", "report.css"))  # noqa: S704  a file of the project
    return _environment().from_string(_template(package, name)).render(**context, plots=drawn, css=css)


def _svg(plot: Plot | str) -> str:
    return plot if isinstance(plot, str) else for_page(plot)


def linked(text: object, link: str) -> str:
    """A text of a page, as a link where there is an address."""
    from markupsafe import Markup, escape  # noqa: PLC0415  with Jinja

    return Markup('<a href="{}">{}</a>').format(link, text) if link else escape(text)


def commands_as_code(text: object) -> str:
    """A text of a page, escaped, with what stands between backticks as code: messages are written for a terminal, too."""
    from markupsafe import Markup, escape  # noqa: PLC0415  with Jinja

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  escaped before the tags are added


def day(moment: date) -> str:
    """`21 November 2026`."""
    return f"{moment.day} {moment:%B %Y}"


def names_a_person(key: str) -> bool:
    """Whether the value of a key may name a person who uses the library; reports leave such a value out."""
    return _PERSON.search(key) is not None


def _template(package: str, name: str) -> str:
    return resources.files(package).joinpath("templates", name).read_text(encoding="utf-8")


def _environment() -> Environment:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  only a page needs it

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["linked"] = linked
    environment.filters["commands_as_code"] = commands_as_code
    return environment
