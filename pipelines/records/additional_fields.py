"""Values of fields that the service does not document: the form in which a migration moves and compares them.

Which of these fields a plan moves is learned when it is made (`migration/mapping/learned_types.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from pipelines.records.paths import ATTRIBUTES
from pipelines.records.residue import IGNORED, MAX_DEPTH, without_signatures
from pipelines.records.values import compact_json, valid_text, whole_number

MANAGED = frozenset(
    {"created_at", "updated_at", "created_on", "updated_on", "links", "_links", "self", "href", "html_url", "api_url"}
)
"""Fields that a service fills itself, at any depth, besides ids. Those of a record are addresses of files and counters, too."""

_CODE = re.compile(r"[^\W\d]+(?:[-_ .][^\W\d]+)*")
"""Matches words without digits."""

_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]")
_COUNTER = re.compile(r".+_count")
_EMPTY: tuple[Any, ...] = (None, "", [], {})

_EXACT = 2.0**53
"""Whole numbers below it are exact as floats."""


def is_managed(path: str) -> bool:
    """Whether a service fills a field of this name itself: ids, times, counters and addresses; within objects only times, and links."""
    above, _, last = path.rpartition("/")
    name = in_snake_case(last)
    return name in MANAGED or (above in ("", ATTRIBUTES) and (last == "id" or name in IGNORED or is_counter(name)))


def filled_within(path: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of what a service fills itself in the objects of a value, but for numbers of their own."""
    if isinstance(value, list):
        for entry in value:
            yield from filled_within(path, entry)
    for name, member in value.items() if isinstance(value, dict) else ():
        if not _is_filled(name, member):
            yield from filled_within(f"{path}/{name}", member)
        elif not (is_empty(member) or (name == "id" and type(member) is int)):
            yield f"{path}/{name}", member


def _is_filled(name: str, value: object) -> bool:
    """Whether a service fills a member of an object itself. A text such as `en` is no id that it gave."""
    return in_snake_case(name) in MANAGED or (name == "id" and not (isinstance(value, str) and _CODE.fullmatch(value)))


def is_counter(name: str) -> bool:
    """Whether a field of this name counts something; a service may still let a client write it, such as `page_count`."""
    return _COUNTER.fullmatch(in_snake_case(name)) is not None


@lru_cache(4096)
def in_snake_case(name: str) -> str:
    """A name as the document spells those of the service: `created_at` for `createdAt` and `created-at`."""
    return _BETWEEN_WORDS.sub("_", name).lower()


def is_empty(value: Any) -> bool:
    """Whether a value counts as none."""
    return value in _EMPTY


def is_sent_empty(value: Any) -> bool:
    """Whether a value is an empty text or list, which a new record gets as it is, although it equals null in every comparison."""
    return value == "" or (type(value) is list and not value)


def sendable(value: Any) -> Any:
    """A value as it is sent and compared: without what a service fills itself, its members in a fixed order.

    Raises `ValueError` for what cannot be sent: nested too deeply, a number of more than 64 bits, or a signed address, which gives access
    to a file and changes in every response (I10).
    """
    canonical = _canonical(value, MAX_DEPTH)
    text = compact_json(canonical)
    if "://" in text and without_signatures(text) != text:
        raise ValueError("a signed address")
    return canonical


def _canonical(value: Any, depth: int) -> Any:
    if depth == 0:
        raise ValueError("nested too deeply")
    if type(value) is dict:
        members = {valid_text(name): member for name, member in value.items() if not _is_filled(name, member)}
        return {name: _canonical(members[name], depth - 1) for name in sorted(members)}
    if type(value) is list:
        return [_canonical(entry, depth - 1) for entry in value]
    if type(value) is float and value.is_integer() and abs(value) < _EXACT:
        value = int(value)  # a service may answer 1.0 for 1
    if type(value) is int and whole_number(value) is None:
        raise ValueError("more than 64 bits")
    return valid_text(value) if type(value) is str else value
