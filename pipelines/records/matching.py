"""When two publications are the same one, and when they say the same: what a plan matches and a verification compares.

Both sides are forms (`forms.form_of`), so that version 2, version 3 and what is wanted are compared alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.publication_fields import IDENTIFIER_LIST, WRITTEN
from pipelines.records.forms import PublicationForm
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import GOOD, Identifier
from pipelines.records.values import compact_json

BOOK = "Book"
"""The kind of publication whose ISBN is its own: on an article or a chapter it names the book that holds it (trap A8)."""

_WORDS = re.compile(r"\w+")
_ASCII_WORDS = str.maketrans({code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)})


def comparable(fields: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS) -> dict[str, str]:
    """Field of a form → JSON text that is equal where two publications say the same.

    A field that is absent, null or empty has none. Texts and authors are equal if they are the same, character by character, authors also
    in their order. Categories are a set of names, identifiers a set of canonical values: the order in which a service shows them says
    nothing, nor does the way in which one is written.
    """
    texts = {key: compact_json(value) for key, value in fields.items() if key not in (IDENTIFIER_LIST, "categories")}
    if entries := fields.get(IDENTIFIER_LIST):
        read = {one[:2] for entry in entries for one in kinds.read(entry["type"], entry["value"])}
        texts[IDENTIFIER_LIST] = compact_json(sorted(read))
    if categories := fields.get("categories"):
        texts["categories"] = compact_json(sorted({one["name"] for one in categories}))
    return texts


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The fields in which two comparable publications differ, in the document's order."""
    return [key for key in WRITTEN if one.get(key) != other.get(key)]


def identifying_keys(form: PublicationForm, kinds: Kinds = STANDARD_KINDS) -> list[tuple[str, str]]:
    """Type and value of each identifier that names this publication and no other (trap A8).

    An ISSN names a journal and never counts; an ISBN counts for a book; a configured type counts where its table says `identifies`.
    """
    return keys_of(form.identifiers, form.fields.get("publishable_type") == BOOK, kinds)


def keys_of(identifiers: Iterable[Identifier], is_book: bool, kinds: Kinds) -> list[tuple[str, str]]:
    """The same of identifiers alone."""
    names = kinds.identifying
    found = [
        one[:2] for one in identifiers if one.verdict in GOOD and one.type in names and (is_book or one.type != "isbn")
    ]
    return list(dict.fromkeys(found)) if len(found) > 1 else found


def fingerprint(fields: Mapping[str, Any]) -> str | None:
    """Title, year and first author without case, accents, punctuation and the order of names; None where one of the three is missing.

    Less than all three names too many publications: a wrong match overwrites a record, a missed one only makes a second.
    """
    title, published, authors = fields.get("title"), fields.get("published_on"), fields.get("authors")
    if not (title and published and authors):
        return None
    return fingerprint_of(title, published[:4], authors[0]["name"])


def fingerprint_of(title: str, year: str, author: str) -> str | None:
    """The same of the three alone."""
    words, names = _words(title), sorted(_words(author))
    return f"{' '.join(words)}|{year}|{' '.join(names)}" if words and names else None


def same_title(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two publications have a title of the same words: too little to match them, and enough to ask a person."""
    titles = [fields.get("title") for fields in (one, other)]
    return all(titles) and [*_words(str(titles[0]))] == [*_words(str(titles[1]))] != []


def with_plain_blanks(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with one blank for several and none at the ends of a text, as services like to keep them."""
    plain = {name: " ".join(value.split()) if type(value) is str else value for name, value in fields.items()}
    return {name: value for name, value in plain.items() if value != ""}


def _words(text: str) -> list[str]:
    if text.isascii():
        return text.translate(_ASCII_WORDS).split()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return _WORDS.findall("".join(one for one in plain if not unicodedata.combining(one)).replace("_", " "))
