"""Makes pages from templates; Jinja escapes every text from a record (I13).

A page needs no network, and its content security policy forbids it, as it forbids scripts, except for the one of a plan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from pipelines.records.values import RecordId

NOT_SHOWN = "(not shown: it may name a person)"

_PERSON = re.compile(r"contributor|user|person|owner|editor|_by\b|mail|phone|borrow|patron|assign", re.IGNORECASE)
"""Parts of the names of keys whose values may name a person."""


def html(package: str, name: str, context: Mapping[str, Any]) -> str:
    """The page of a template of `package`, which may use the parts and the style sheet of this one."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  only a page needs it

    loader = ChoiceLoader([PackageLoader(package), PackageLoader("pipelines.report")])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"commands_as_code": commands_as_code, "number": number}
    return environment.get_template(name).render(context)


def number(count: int | None) -> str:
    """A number on a page; a dash where it is unknown."""
    return "–" if count is None else f"{count:,}"


def longest_bar(rows: Sequence[Mapping[str, Any]]) -> int:
    """The length of the longest bar of a table whose rows have `parts`: colour and number.

    0 where there is nothing to compare: a single bar says no more than its number, and bars of zeros say nothing.
    """
    return max(sum(part for _, part in row["parts"]) for row in rows) if len(rows) > 1 else 0


def link_to(record_url: str | None, record: RecordId | None) -> str:
    """The address of a record's page; empty where it is unknown. `record_url` may come from the file of a plan (I13)."""
    if record is None or not record_url or not record_url.startswith(("https://", "http://")):
        return ""
    return record_url.replace("{id}", str(record))


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
