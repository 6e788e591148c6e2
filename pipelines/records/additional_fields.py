"""Fields of publications that the service does not document: the form in which a migration moves and compares them.

Which of them a plan moves is learned when it is made (`migration/plan/learned_types.py`) and travels with the kinds of identifiers
(`Kinds.with_additional`), because every function that makes a form has these.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pipelines.records.residue import IGNORED, MAX_DEPTH, without_signatures
from pipelines.records.values import compact_json, text_of, valid_text, whole_number

MANAGED = frozenset(
    {"created_at", "updated_at", "created_on", "updated_on", "links", "_links", "self", "href", "html_url", "api_url"}
)
"""Fields that a service fills itself, besides ids, addresses of files, and counters."""

_COUNTER = re.compile(r".+_count")
_EMPTY: tuple[Any, ...] = (None, "", [], {})

_EXACT = 2.0**53
"""Whole numbers below it are exact as floats."""

_TYPES: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
}
"""Type of a decoded value → the names that JSON Schema has for it."""


class FieldRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the target takes in a field; any value where nothing is said."""

    choices: tuple[str, ...] = ()
    """The values, or the entries of a list, as text."""
    types: tuple[str, ...] = ()
    """Names of JSON Schema."""
    entry_types: tuple[str, ...] = ()
    """The same for the entries of a list."""
    leads_to: str = ""
    """The resource to whose records the field refers, by ids; empty for any other field."""
    as_object: bool = False
    """Whether such ids are sent as `{"id"}`; `as_text`: as texts."""
    as_text: bool = False

    @property
    def of_target(self) -> FieldRule:
        """The rule for what the target has, whatever it takes."""
        return FieldRule(leads_to=self.leads_to)

    def ids(self, value: Any) -> Any:
        """The ids in a value, in order and each once where it is a list. Raises `ValueError` for what is no id."""
        if isinstance(value, list):
            return sorted({self.ids(entry) for entry in value})
        number = whole_number(value.get("id") if isinstance(value, dict) else value)
        if number is None:
            raise ValueError("no id")
        return number

    def sent(self, value: Any) -> Any:
        """Ids in the form in which they are sent."""
        if isinstance(value, list):
            return [self.sent(one) for one in value]
        if type(value) is not int:
            return value
        number = str(value) if self.as_text else value
        return {"id": number} if self.as_object else number

    def takes(self, value: Any) -> bool:
        """Whether the target takes a value that is not null."""
        entries = value if type(value) is list else [value]
        if self.choices and not {text_of(entry) for entry in entries} <= {*self.choices}:
            return False
        if not _is_of(value, self.types):
            return False
        return type(value) is not list or all(_is_of(entry, self.entry_types) for entry in value if entry is not None)


def _is_of(value: Any, types: tuple[str, ...]) -> bool:
    return not types or not {*types}.isdisjoint(_TYPES.get(type(value), ()))


def is_managed(name: str) -> bool:
    """Whether a service fills a field of this name itself: ids, times, counters and addresses."""
    return name == "id" or name in MANAGED or name in IGNORED or _COUNTER.fullmatch(name) is not None


def plain(value: Any) -> Any:
    """A nested value without what a service fills itself."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items() if not is_managed(name)}
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def in_order(value: Any) -> Any:
    """A nested value with its members in a fixed order."""
    if isinstance(value, dict):
        return {name: in_order(value[name]) for name in sorted(value)}
    return [in_order(entry) for entry in value] if isinstance(value, list) else value


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
    found = _canonical(value, MAX_DEPTH)
    text = compact_json(found)
    if "://" in text and without_signatures(text) != text:
        raise ValueError("a signed address")
    return found


def _canonical(value: Any, depth: int) -> Any:
    if depth == 0:
        raise ValueError("nested too deeply")
    if type(value) is dict:
        members = {valid_text(name): member for name, member in value.items() if not is_managed(name)}
        return {name: _canonical(members[name], depth - 1) for name in sorted(members)}
    if type(value) is list:
        return [_canonical(entry, depth - 1) for entry in value]
    if type(value) is float and value.is_integer() and abs(value) < _EXACT:
        value = int(value)  # a service may answer 1.0 for 1
    if type(value) is int and whole_number(value) is None:
        raise ValueError("more than 64 bits")
    return valid_text(value) if type(value) is str else value
