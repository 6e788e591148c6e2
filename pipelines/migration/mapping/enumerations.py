"""The words of enumerations: fields that have nothing but a few texts, used again and again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import Any

from pipelines.migration.model.field_mapping import FieldMapping, several
from pipelines.records.shapes.field_names import singular, words_of
from pipelines.records.values import text_of

BOOLEAN, BOOLEANS = ("boolean",), ("true", "false")
"""The only type of a field by its description, and what the target takes there for `Y` and `N`, or for 1 and 0."""


MOST_WORDS, FEWEST_USES = 12, 2
"""Different texts of an enumeration, and how often each is used, on average."""


def words_in(
    records: Iterable[Mapping[str, Any]], parts: Mapping[str, FieldMapping], booleans: Container[str] = ()
) -> dict[str, Counter[str]]:
    """Field that has nothing but a few texts without numbers → these, and how often each is used.

    `parts`: fields by their paths; `booleans`: those that the target takes as booleans, where texts and numbers stand for these.
    """
    plain = {path: part for path, part in parts.items() if not (part.refers or part.entries)}
    words = {path: Counter[str]() for path in plain}
    for path, entry in entries_at(records, plain):
        if len(words[path]) <= MOST_WORDS and not (path in booleans and isinstance(entry, bool)):
            is_word = path in booleans or (isinstance(entry, str) and not re.search("[0-9]", entry))
            words[path][(text_of(entry) or "") if is_word else ""] += 1
    return {path: uses for path, uses in words.items() if 0 < len(uses) <= MOST_WORDS and "" not in uses}


def entries_at(records: Iterable[Mapping[str, Any]], parts: Mapping[str, FieldMapping]) -> Iterator[tuple[str, object]]:
    """Yield path and value of each entry of these fields that is not null. `records`: with the members of objects as fields."""
    for record in records if parts else ():
        for path, part in parts.items():
            entries = several(part.read_apart(record, path))
            yield from ((path, entry) for entry in entries if entry is not None)


def is_taken(entry: object, choices: Collection[str]) -> bool:
    """Whether a value is among those that the target takes; the text `true` is no boolean."""
    return text_of(entry) in choices and not (choices == BOOLEANS and isinstance(entry, str))


_PROSE = frozenset({"abstract", "comment", "description", "note", "remark", "summary"})
"""Last words, in singular, of names of texts that people write freely."""


def is_enumeration(path: str, words: Counter[str]) -> bool:
    """Whether the texts of a field are used again and again, and not written freely."""
    is_prose = any(singular(word) in _PROSE for word in words_of(path)[-1:])
    return words.total() >= FEWEST_USES * len(words) and not is_prose
