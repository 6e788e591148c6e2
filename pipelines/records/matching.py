"""Rules for a match of two publications, and for the comparison of their contents; plans and verifications use them.

Both sides are forms (`forms.form_of`), so version 2, version 3 and the intended state are compared in the same way.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.tables.publication_fields import IDENTIFIER_LIST, WRITTEN
from pipelines.records.values import compact_json

BOOK = "Book"
"""The kind of publication that an ISBN identifies: on an article or a chapter, the ISBN names the book around it (I8)."""

_WORDS = re.compile(r"\w+")


def comparable(fields: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS) -> dict[str, str]:
    """Field of a form → JSON text; two publications agree in a field if these texts are equal.

    A field that is absent, null or empty has no text. Texts and authors must agree in every character, authors also in their order.
    Categories are a set of names, and identifiers a set of canonical values: their order and their spelling have no meaning.
    """
    texts = {key: compact_json(value) for key, value in fields.items() if key not in (IDENTIFIER_LIST, "categories")}
    if entries := fields.get(IDENTIFIER_LIST):
        read = {identifier[:2] for entry in entries for identifier in kinds.read(entry["type"], entry["value"])}
        texts[IDENTIFIER_LIST] = compact_json(sorted(read))
    if categories := fields.get("categories"):
        texts["categories"] = compact_json(sorted({category["name"] for category in categories}))
    return texts


def differing(publication: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The fields in which two comparable publications differ; those of `WRITTEN` come first, in their order."""
    return [key for key in dict.fromkeys((*WRITTEN, *publication, *other)) if publication.get(key) != other.get(key)]


def identifying_keys(fields: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS) -> list[tuple[str, str]]:
    """Type and value of each identifier that names this publication and no other (I8).

    An ISSN names a journal and never counts; an ISBN counts for a book; a configured type counts if its table has `identifies`.
    """
    names, is_book = kinds.identifying, fields.get("publishable_type") == BOOK
    keys = (
        (identifier.type, identifier.value)
        for entry in fields.get(IDENTIFIER_LIST, ())
        for identifier in kinds.read(entry["type"], entry["value"])
        if identifier.verdict in GOOD and identifier.type in names and (is_book or identifier.type != "isbn")
    )
    return list(dict.fromkeys(keys))


def fingerprint(fields: Mapping[str, Any]) -> str | None:
    """Title, year and first author without case, accents, punctuation and the order of names; None if one of the three is missing.

    Two of the three fit too many publications. A wrong match overwrites a record; a missed match only creates a second one.
    """
    title, published, authors = fields.get("title"), fields.get("published_on"), fields.get("authors")
    if not (title and published and authors):
        return None
    words, names = _words(title), sorted(_words(authors[0]["name"]))
    return f"{' '.join(words)}|{published[:4]}|{' '.join(names)}" if words and names else None


def same_title(publication: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether the titles of two publications have the same words: too little for a match, but enough to ask a person."""
    words, other_words = (_words(str(fields.get("title") or "")) for fields in (publication, other))
    return words == other_words != []


def with_plain_blanks(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with single blanks inside texts and none at their ends; some services store texts like that."""
    plain = {name: " ".join(value.split()) if type(value) is str else value for name, value in fields.items()}
    return {name: value for name, value in plain.items() if value != ""}


def _words(text: str) -> list[str]:
    plain = text.casefold()
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        plain = "".join(character for character in plain if not unicodedata.combining(character))
    return _WORDS.findall(plain.replace("_", " "))
