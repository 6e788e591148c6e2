"""Further kinds of identifiers, each from a table of the configuration (settings/identifier_types.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pydantic import TypeAdapter
from stdnum import damm, luhn, verhoeff
from stdnum.iso7064 import mod_11_2, mod_11_10, mod_37_2, mod_37_36, mod_97_10

from pipelines.records.identifiers.cleaning import cleaned
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kind, Kinds
from pipelines.records.identifiers.verdicts import GOOD, INVALID, VALID, FoundIdentifier, accepted, without_repetition
from pipelines.settings.identifier_types import IdentifierSettings

_TABLES = TypeAdapter(dict[str, IdentifierSettings])

_HOLDS: dict[str, Callable[[str], bool]] = {
    "luhn": luhn.is_valid,
    "verhoeff": verhoeff.is_valid,
    "damm": damm.is_valid,
    "mod_11_2": mod_11_2.is_valid,
    "mod_11_10": mod_11_10.is_valid,
    "mod_37_2": mod_37_2.is_valid,
    "mod_37_36": mod_37_36.is_valid,
    "mod_97_10": mod_97_10.is_valid,
}
_NOT_CHECKED = re.compile(r"[^0-9A-Za-z*]")
_CASES: dict[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower, "keep": str}


def kinds_of(tables: Mapping[str, IdentifierSettings]) -> Kinds:
    """The standard kinds, and those of the tables."""
    if not tables:
        return STANDARD_KINDS
    described = _TABLES.dump_json(dict(tables), exclude_defaults=True).decode()
    return Kinds([kind_of(name, table) for name, table in tables.items()], described)


def kind_of(name: str, settings: IdentifierSettings) -> Kind:
    """The kind of a table."""
    reader = _Reader(name, settings)
    certain = rf"(?<![\w.-])(?:{settings.pattern})(?![\w-])" if settings.certain else ""
    return Kind(name, settings.fields or (name,), reader.read_clean, reader.read, certain, settings.identifies)


class _Reader:
    """Reads texts by the rules of a table."""

    def __init__(self, name: str, settings: IdentifierSettings) -> None:
        self._name = name
        self._pattern = re.compile(settings.pattern, re.ASCII)
        self._in_case = _CASES[settings.case]
        self._holds = _HOLDS[settings.check_digit] if settings.check_digit else None
        self._labels = _any_of(settings.labels)
        self._addresses = _any_of(settings.addresses)
        self._separators = re.compile(rf"\s*[{re.escape(settings.separators)}]\s*") if settings.separators else None

    def read_clean(self, text: str) -> FoundIdentifier | None:
        """The value of a text that is an unchanged identifier; else None."""
        if self._pattern.fullmatch(text) and self._in_case(text) == text and self._checked(text):
            return FoundIdentifier(self._name, text, VALID, "")
        return None

    def read(self, text: str) -> list[FoundIdentifier]:
        """Every value in a text, valid or not. A text that is one value is never split."""
        tidy, rules = cleaned(text)
        whole = self._read_one(tidy, rules)
        if whole.verdict == INVALID and self._separators:
            pieces = [self._read_one(piece, rules) for piece in self._separators.split(tidy) if piece.strip()]
            if any(one.verdict in GOOD for one in pieces):
                return without_repetition(pieces)
        return [whole]

    def _read_one(self, text: str, rules: tuple[str, ...]) -> FoundIdentifier:
        used = list(rules)
        bare, before = text, None
        while before != bare:
            before = bare
            for pattern, rule in ((self._labels, "label"), (self._addresses, "address")):
                if pattern and (wrapping := pattern.match(bare)) and wrapping.end() < len(bare):
                    bare = bare[wrapping.end() :].strip()
                    used.append(rule)
        value = self._in_case(bare)
        used += ["case"] * (value != bare)
        if not self._pattern.fullmatch(value):
            return FoundIdentifier(self._name, bare, INVALID, "form")
        return (
            accepted(self._name, value, used)
            if self._checked(value)
            else FoundIdentifier(self._name, bare, INVALID, "check_digit")
        )

    def _checked(self, value: str) -> bool:
        return self._holds is None or self._holds(_NOT_CHECKED.sub("", value).upper())


def _any_of(texts: tuple[str, ...]) -> re.Pattern[str] | None:
    """Matches any of these texts and the blanks after it."""
    return re.compile(rf"(?:{'|'.join(map(re.escape, texts))})\s*", re.IGNORECASE) if texts else None
