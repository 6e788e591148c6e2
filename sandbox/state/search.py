"""Search criteria and their SQL.

Identifiers are compared as a whole, without outer blanks and case; nothing else is normalised: ``10.1000/1`` does not find
``https://doi.org/10.1000/1``. Texts are compared by whole words, without case and accents; every word has to occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Condition = tuple[str, tuple[object, ...]]

_NEVER: Condition = ("0", ())


@dataclass(frozen=True, slots=True)
class Criteria:
    """All criteria have to match."""

    identifiers: Mapping[str, str] = field(default_factory=dict)
    author: str = ""
    category: str = ""
    year: str = ""
    text: str = ""


def fold(value: str) -> str:
    """Returns the form in which identifiers and names of categories are compared."""
    return value.strip().casefold()


def where(criteria: Criteria) -> tuple[list[str], list[object]]:
    """Returns the conditions on publications, and their values."""
    conditions = list(_conditions(criteria))
    return [sql for sql, _ in conditions], [value for _, values in conditions for value in values]


def _conditions(criteria: Criteria) -> Iterator[Condition]:
    for kind, value in criteria.identifiers.items():
        yield _term(kind, value)
    if criteria.category:
        yield _term("category", criteria.category)
    if criteria.year:
        yield _year(criteria.year.strip())
    if criteria.author:
        yield _words(criteria.author, column="authors")
    if criteria.text:
        yield _words(criteria.text)


def _term(kind: str, text: str) -> Condition:
    """The condition of an identifier, or of a category's name."""
    return "key IN (SELECT publication FROM terms WHERE kind = ? AND folded = ?)", (kind, fold(text))


def _year(year: str) -> Condition:
    if not (len(year) == len("YYYY") and year.isascii() and year.isdigit()):
        return _NEVER
    return "json_extract(document, '$.published_on') BETWEEN ? AND ?", (f"{year}-01-01", f"{year}-12-31")


def _words(text: str, column: str | None = None) -> Condition:
    """Quotes each word as a phrase, so that no character is an operator of the search engine.

    Adjacent phrases all have to match, and one without a letter or digit is ignored; with ``AND`` it would match nothing.
    """
    phrases = " ".join('"' + part.replace('"', '""') + '"' for part in text.replace("\0", " ").split())
    if not phrases:
        return _NEVER
    match = f"{column} : ({phrases})" if column else phrases
    return "key IN (SELECT rowid FROM words WHERE words MATCH ?)", (match,)
