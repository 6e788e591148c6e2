"""JSON that a hostile library may send: repeated keys, lone surrogates, NaN, numbers of any size, wrong types everywhere."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from pipelines.records.residue import ADDRESSES
from pipelines.records.tables.publication_fields import IDENTIFIER_FIELDS

FILE = {"id": None, "storage": None, "metadata": {"size": None, "filename": None, "mime_type": None}}
SHAPE: dict[str, Any] = {
    "id": None,
    "title": None,
    "publishable_type": None,
    "published_on": None,
    "abstract": None,
    **dict.fromkeys(IDENTIFIER_FIELDS),
    "identifiers": [{"type": None, "value": None}],
    "contributor": {"id": None, "name": None},
    "organization": {"id": None, "name": None},
    "authors": [{"name": None, "type": None}],
    "categories": [{"id": None, "name": None}],
    "cover": FILE,
    "assets": [{"id": None, "publication_id": None, "name": None, "content_type": None, "file": FILE}],
}
"""The shape of a publication of either version (service.md#publications): an object, an array of such, or a plain value (None)."""


@dataclass(frozen=True)
class Members:
    """A JSON object with its members in order; a key may occur twice."""

    pairs: tuple[tuple[str, Any], ...]


def has_one_id(value: object) -> bool:
    """Whether the key `id` occurs at most once; of two, the raw table takes the first, and JSON parsers the last."""
    return not isinstance(value, Members) or [key for key, _ in value.pairs].count("id") <= 1


def text_of(value: object) -> str:
    """The JSON text of a value, in ASCII only, so that lone surrogates can be encoded."""
    if isinstance(value, Members):
        return "{" + ", ".join(f"{json.dumps(key)}:{text_of(member)}" for key, member in value.pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text_of, value)) + "]"
    return json.dumps(value)


def meaning(value: object) -> Any:
    """The decoded value: the last of two equal keys, U+FFFD for lone surrogates, text for a number that JSON does not have."""
    if isinstance(value, Members):
        return {meaning(key): meaning(member) for key, member in value.pairs}
    if isinstance(value, list):
        return [meaning(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


texts = st.text(st.characters(exclude_categories=()), max_size=8)
keys = (
    st.sampled_from(sorted({*SHAPE, *SHAPE["assets"][0], *FILE, *FILE["metadata"], *ADDRESSES}))
    | st.sampled_from(["authors[0].role", "assets[0]", "cover.metadata.size", "(record)", "assets[0].file.id", ""])
    | texts
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**62, 2**70)
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | texts
    | st.sampled_from(
        [
            "",
            "7",
            "2021-02-29",
            "2020-02-29",
            "0000-01-01",
            "10000-01-01",
            "2021",
            "2018-11",
            "7/19/2018",
            "2/3/2018",
            "5.5.2018",
            "２０２０-01-01",
            "\x00",
        ]
    )
)


def _members(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Members]:
    return st.lists(st.tuples(keys, values), max_size=5).map(tuple).map(Members)


any_json = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | _members(inner), max_leaves=12)


def _like(shape: Any) -> st.SearchStrategy[Any]:
    """Values of about this form, with missing and unknown members, wrong types and repeated keys."""
    if isinstance(shape, list):
        right: st.SearchStrategy[Any] = st.lists(_like(shape[0]), max_size=3)
    elif isinstance(shape, dict):
        members = [st.tuples(st.just(key), _like(inner)) for key, inner in shape.items()]
        foreign = st.tuples(keys, any_json)
        right = st.lists(st.one_of(*members, foreign), max_size=8).map(tuple).map(Members)
    else:
        right = scalars
    return right | right | right | any_json


def briefly(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The same under a short name, because Hypothesis warns about long descriptions of a strategy."""

    @st.composite
    def values(draw: st.DrawFn) -> Any:
        return draw(strategy)

    return values()


any_value = briefly(any_json)
records = briefly(_like(SHAPE))
