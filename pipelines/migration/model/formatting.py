"""Values of fields as people read them, beside each other: one short line each, no secret, and no value that only its JSON would tell."""

from __future__ import annotations

from typing import Any

import msgspec

from pipelines.publication_fields import IDENTIFIER_LIST
from pipelines.records.advice import name_of
from pipelines.records.values import compact_json
from pipelines.report.issues import safe_text

NOTHING = "(nothing)"

WHOLE = 5000
"""Characters of a value that are looked at."""

BEFORE = 20
"""Characters that are shown before the first difference of two long values."""


def value_of(text: str | None) -> Any:
    """The value that a compared text tells; a text that is no JSON tells itself."""
    try:
        return None if text is None else msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def display_text(field: str, value: Any) -> str:
    """A value of a field in one line: `A history of printing`, `DOI 10.1000/182; ISBN 9780306406157`, `Doe, Jane; Roe, Richard`."""
    items = value if type(value) is list else [] if value is None else [value]
    return safe_text("; ".join(filter(None, (_item(field, one) for one in items))), WHOLE) or NOTHING


def display_both(field: str, ours: Any, theirs: Any, most: int = 80) -> tuple[str, str]:
    """Two values of one field, cut so that the first difference between them is seen."""
    one, other = display_text(field, ours), display_text(field, theirs)
    if one == other and ours != theirs:
        one, other = _exact(ours), _exact(theirs)
    if max(len(one), len(other)) <= most:
        return one, other
    same = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    start = max(0, same - BEFORE) if same > most // 2 else 0
    return _cut(one, start, most), _cut(other, start, most)


def _exact(value: Any) -> str:
    """A value as JSON with its blanks as `␣`, where it is them, or the type of an author, in which it differs from another one."""
    return safe_text(compact_json(value).replace(" ", "␣"), WHOLE)


def _item(field: str, value: Any) -> str:
    """One entry of a list, or a value that is none."""
    if field == IDENTIFIER_LIST and type(value) is list and len(value) == 2:  # noqa: PLR2004  type and value, as they are compared
        value = {"type": value[0], "value": value[1]}
    if type(value) is dict:
        if "name" in value:
            return str(value["name"])
        if "type" in value and "value" in value:
            return f"{name_of(str(value['type']))} {value['value']}"
        if value.keys() == {"id"}:
            return f"number {value['id']}"
    return value if type(value) is str else compact_json(value)


def _cut(text: str, start: int, most: int) -> str:
    """`most` characters from a place on."""
    end = start + most
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"
