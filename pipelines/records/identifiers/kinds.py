"""All kinds of identifiers of a library: the fields of each kind, and the search for identifiers of another kind in a field.

The type is never guessed from a value alone. Only if a field's text is no identifier of its own kind, it is searched for unambiguous
identifiers of other kinds: a DOI, an ISBN with its bar code prefix, an ISSN in its standard form, anything after its name or in an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pipelines.records.identifiers import arxiv, doi, isbn, issn, pmid
from pipelines.records.identifiers.cleaning import MAX_CHARACTERS, cleaned
from pipelines.records.identifiers.numbers_in_text import LIKE_A_PRICE, only_words
from pipelines.records.identifiers.rules import Rule
from pipelines.records.identifiers.verdicts import (
    GOOD,
    INVALID,
    REPAIRED,
    UNRECOGNISED,
    VALID,
    FoundIdentifier,
    join_rules,
    rule_names,
    without_repetition,
)
from pipelines.records.tables.publication_fields import IDENTIFIER_LIST, PUBLICATION_KEYS


class Kind(NamedTuple):
    """One type of identifiers. `read`: every value in any text. `certain`: matches its values where no field says the type; may be empty.

    `is_canonical`: whether a text is plainly one valid value in its canonical form, as most are, so that `read` is not asked.
    `identifies`: two publications with the same value are one and the same.
    """

    name: str
    fields: tuple[str, ...]
    is_canonical: Callable[[str], object]
    read: Callable[[str], list[FoundIdentifier]]
    certain: str
    identifies: bool


STANDARD = (
    Kind("doi", ("doi",), doi.is_canonical, doi.read, doi.UNAMBIGUOUS, identifies=True),
    Kind("isbn", ("isbn",), isbn.is_canonical, isbn.read, isbn.UNAMBIGUOUS, identifies=True),
    Kind("issn", ("issn",), issn.is_canonical, issn.read, issn.UNAMBIGUOUS, identifies=False),
    Kind("arxiv_id", ("arxiv_id",), arxiv.is_canonical, arxiv.read, arxiv.UNAMBIGUOUS, identifies=True),
    Kind("pmid", ("pmid",), pmid.is_canonical, pmid.read, pmid.UNAMBIGUOUS, identifies=True),
)
"""The types that the service documents (service.md#identifiers), in the order of their positions in `publication_identifiers`."""


class Kinds:
    """The kinds of a library: the standard ones, and those of its configuration, which may replace a standard one."""

    def __init__(self, configured: Iterable[Kind] = ()) -> None:
        self._kinds = {kind.name: kind for kind in (*STANDARD, *configured)}
        self.fields = tuple((field, kind) for kind in self._kinds.values() for field in kind.fields)
        self.identifying = frozenset(kind.name for kind in self._kinds.values() if kind.identifies)
        """Types whose values identify one publication."""
        self.record_keys = PUBLICATION_KEYS.union((IDENTIFIER_LIST,), (field for field, _kind in self.fields))
        """Keys of a record that a rule maps."""
        self._others: dict[str, re.Pattern[str]] = {}

    def read(self, kind: str, text: str) -> list[FoundIdentifier]:
        """Every value in the text of a field of this kind, or of an entry with this type. Never raises; never empty."""
        known_kind = self._kinds.get(kind) or self._kinds.get(kind.lower())
        if known_kind is None:
            return [FoundIdentifier(kind, text, UNRECOGNISED, Rule.UNKNOWN_TYPE if kind else Rule.TYPE_MISSING)]
        if len(text) > MAX_CHARACTERS:
            return [FoundIdentifier(known_kind.name, text, UNRECOGNISED, Rule.TOO_LONG)]
        if known_kind.is_canonical(text):
            return [FoundIdentifier(known_kind.name, text, VALID, "")]
        tidy, _rules = cleaned(text)
        if not tidy or _NOTHING.fullmatch(tidy):
            return [FoundIdentifier(known_kind.name, text, UNRECOGNISED, Rule.NOTHING if tidy else Rule.BLANK)]
        identifiers = without_repetition(self._read_repeatedly(known_kind, text))
        if identifiers[0].verdict == VALID and identifiers[0].value != text:
            return [identifiers[0]._replace(verdict=REPAIRED, rule=_rule_of_surroundings(identifiers[0].value, text))]
        return identifiers

    def _read_repeatedly(self, kind: Kind, text: str) -> list[FoundIdentifier]:
        """The values of its own kind in a text, or else of other kinds; invalid pieces are read again until nothing changes."""
        identifiers = kind.read(text)
        if all(identifier.verdict in GOOD for identifier in identifiers):
            return identifiers
        if moved := self._of_other_kinds(kind, text):
            return moved
        return [
            again
            for identifier in identifiers
            for again in (
                [identifier]
                if identifier.verdict in GOOD or identifier.value == text or identifier.rule == Rule.ZEROS_UNPROVED
                else self._read_repeatedly(kind, identifier.value)
            )
        ]

    def _of_other_kinds(self, kind: Kind, text: str) -> list[FoundIdentifier]:
        """The values of a text with unambiguous identifiers of other kinds; empty if it has none."""
        tidy, rules = cleaned(text)
        identifiers: list[FoundIdentifier] = []
        end = 0
        moved = False
        prices = [price.span() for price in LIKE_A_PRICE.finditer(tidy) if not price["named"]]
        for token in self._other_kinds_pattern(kind.name).finditer(tidy):
            of_another_kind = self._kinds[token.lastgroup or ""].read(token[0])
            if any(first <= token.start() and token.end() <= last for first, last in prices):
                continue
            if all(identifier.verdict in GOOD for identifier in of_another_kind):
                identifiers += self._remaining(kind, tidy[end : token.start()])
                identifiers += [
                    identifier._replace(
                        verdict=REPAIRED, rule=join_rules((Rule.OTHER_TYPE, *rules, *rule_names(identifier.rule)))
                    )
                    for identifier in of_another_kind
                ]
                end = token.end()
                moved = True
        return identifiers + self._remaining(kind, tidy[end:]) if moved else []

    def _remaining(self, kind: Kind, text: str) -> list[FoundIdentifier]:
        """The values of the text beside identifiers of another kind."""
        rest = text.strip(" ;,|")
        if only_words(rest):
            return []
        return [
            FoundIdentifier(kind.name, rest, INVALID, Rule.ZEROS_UNPROVED)
            if Rule.LEADING_ZEROS in rule_names(identifier.rule)
            else identifier
            for identifier in self._read_repeatedly(kind, rest)
        ]

    def _other_kinds_pattern(self, name: str) -> re.Pattern[str]:
        """Matches unambiguous identifiers of the other kinds; compiled on first use."""
        if name not in self._others:
            patterns = [
                f"(?P<{kind.name}>{kind.certain})"
                for kind in self._kinds.values()
                if kind.certain and kind.name != name
            ]
            self._others[name] = re.compile("|".join(patterns), re.IGNORECASE)
        return self._others[name]


_NOTHING = re.compile(
    r"(?:n/?a|none|null|nil|nan|unknown|no (?:doi|isbn|issn|pmid)|tbd|tba|[-–—?.x]+)\.?", re.IGNORECASE
)
"""Says that there is no identifier."""


def _rule_of_surroundings(value: str, text: str) -> Rule:
    """The rule for words or separators that were removed beside a valid value."""
    return Rule.QUALIFIER if any(map(str.isalnum, text.replace(value, "", 1))) else Rule.PUNCTUATION


STANDARD_KINDS = Kinds()
"""The kinds of a library without configured types."""
