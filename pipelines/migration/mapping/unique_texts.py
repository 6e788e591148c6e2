"""Finds the texts that tell the records of a resource from each other where nothing documents its keys, such as an inventory number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipelines.records.additional_fields import is_managed
from pipelines.records.shapes.field_names import in_words
from pipelines.records.shapes.observation import Kind, kind_of

MOST_RECORDS = 100_000
"""Records of a library whose texts are compared; of more, no text is known to be unique."""


def unique_texts(source: Iterable[Mapping[str, Any]], target: Iterable[Mapping[str, Any]]) -> set[str]:
    """The paths, in words, of texts that each record of the source has, no two records of either library share, and some of both have."""
    unique = dict[str, set[int]]()
    for count, record in enumerate(source):
        texts = dict(_texts_in(record))
        if count == 0:
            unique = {path: set() for path in texts}
        unique = {
            path: known
            for path, known in unique.items()
            if path in texts and texts[path] not in known and count < MOST_RECORDS
        }
        for path, known in unique.items():
            known.add(texts[path])
    in_target = {path: set[int]() for path in unique}
    for count, record in enumerate(target if unique else ()):
        for path, text in _texts_in(record):
            if path in in_target and (text in in_target[path] or count >= MOST_RECORDS):
                del in_target[path]
            elif path in in_target:
                in_target[path].add(text)
    return {path for path, known in in_target.items() if not known.isdisjoint(unique[path])}


def _texts_in(record: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, int]]:
    """Yield the path in words, and the hash, of each text of a record that is neither in a list nor filled by the service."""
    for name, value in record.items():
        path = f"{above}{name}"
        if isinstance(value, dict):
            yield from _texts_in(value, f"{path}/")
        elif isinstance(value, str) and value and kind_of(value) is Kind.TEXT and not is_managed(path):
            yield in_words(path), hash(value)
