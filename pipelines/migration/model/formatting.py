"""Formats values of fields for people, next to each other: one short line each, without secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from unicodedata import is_normalized, normalize

import msgspec

from pipelines.records.advice import name_of
from pipelines.records.tables.publication_fields import IDENTIFIER_LIST
from pipelines.records.values import RecordId, compact_json
from pipelines.report.issues import safe_text

NOTHING = "(nothing)"

WHOLE = 5000
"""Characters of a value that are formatted at most."""

SHORT = 80
"""Characters of each of two values in a table."""

BEFORE = 20
"""Characters before the first difference of two long values."""


def value_of(text: str | None) -> Any:
    """The value of a JSON text; a text that is no JSON is the value itself."""
    try:
        return None if text is None else msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def display_text(field: str, value: Any) -> str:
    """A value of a field in one line: `A history of printing`, `DOI 10.1000/182; ISBN 9780306406157`, `Doe, Jane; Roe, Richard`."""
    items = value if type(value) is list else [] if value is None else [value]
    return safe_text("; ".join(filter(None, (_item(field, item) for item in items))), WHOLE) or NOTHING


def display_both(field: str, source: Any, target: Any, most: int = SHORT) -> tuple[str, str]:
    """Two values of one field, cut so that both show their first difference."""
    return cut_both(*display_pair(field, source, target), most)


def differences(fields: Mapping[str, Sequence[str | None]]) -> str:
    """The fields that differ: `title: «source» | «target»`."""
    pairs = ((field, *display_both(field, *map(value_of, values))) for field, values in fields.items())
    return " · ".join(f"{safe_text(field, 40)}: «{source}» | «{target}»" for field, source, target in pairs)


def target_numbers(ids: Iterable[RecordId]) -> str:
    """Ids of the target in a form that a spreadsheet keeps as text: `#12 or #34`."""
    return " or ".join(f"#{number}" for number in ids)


def display_pair(field: str, source: Any, target: Any) -> tuple[str, str]:
    """Two values of one field in one line each, which differ wherever the values do."""
    left, right = display_text(field, source), display_text(field, target)
    look_alike = normalize("NFC", left) == normalize("NFC", right)
    return (_exact(source), _exact(target)) if look_alike and source != target else (left, right)


def cut_both(left: str, right: str, most: int) -> tuple[str, str]:
    """Two displayed values, cut so that both show their first difference."""
    if max(len(left), len(right)) <= most:
        return left, right
    equal = next(
        (place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )
    start = max(0, equal - BEFORE) if equal > most // 2 else 0
    return _cut(left, start, most), _cut(right, start, most)


def _exact(value: Any) -> str:
    """A value as JSON with blanks as `␣`, and escaped where it has signs in parts (NFD), for two values that look alike."""
    text = compact_json(value)
    if not is_normalized("NFC", text):
        text = "".join(sign if sign.isascii() else f"\\u{ord(sign):04x}" for sign in text)
    return safe_text(text.replace(" ", "␣"), WHOLE)


def _item(field: str, value: Any) -> str:
    """One entry of a list, or a single value."""
    if field == IDENTIFIER_LIST and type(value) is list and len(value) == 2:  # noqa: PLR2004  type and value, in compared form
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
    """`most` characters from a position on."""
    end = start + most
    return f"{'…' if start else ''}{text[start:end]}{'…' if len(text) > end else ''}"
