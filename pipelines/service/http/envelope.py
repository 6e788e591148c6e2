"""Cuts a page into its records, byte for byte (I6): an object with `records`, a bare array, or an object with one other array of objects.

The service shows the envelope of publications only (service.md#lists); the array of another list may have its resource's name, or be one
level below, in `data` or `_embedded`. An object with an `id` is a record and an object with errors is a refusal: neither is an envelope.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from pipelines.inventory import RESOURCES
from pipelines.records.values import whole_number


class _Envelope(msgspec.Struct):
    records: list[msgspec.Raw]


_DECODER = msgspec.json.Decoder(_Envelope | list[msgspec.Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_NO_LISTING = "there is neither an array `records` in it nor one other array of objects"
_NO_ENVELOPE = frozenset({"id", "error", "errors"})
"""Keys that an envelope of another name does not have."""

_AROUND = frozenset({"data", "_embedded"})
"""Names of an object around the array, as HAL and others have it."""

_INSIDE = frozenset({"records", "items", "results", *RESOURCES})
"""Names of an array in such an object."""

_LENIENT = json.JSONDecoder(
    strict=False, parse_int=str, parse_float=str
)  # numbers stay text, because they may have any length
_BLANK = re.compile(r"[ \t\n\r]*")


def split_usual_page(body: bytes) -> list[msgspec.Raw] | None:
    """Returns the JSON of each record of a usual page; `None` for anything else, valid JSON or not."""
    try:
        return _cut(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def split_records(body: bytes) -> list[msgspec.Raw]:
    """Returns the JSON of each record of a page. Raises `msgspec.DecodeError`, `ValueError` or `RecursionError` if the page is no list.

    One odd record must not cost the page (I7): the slower parser reads what msgspec does not read, such as half of a surrogate pair.
    """
    try:
        return _cut(body)
    except msgspec.ValidationError:
        return _split_envelope(body, _MEMBERS.decode, _ARRAY.decode)
    except (msgspec.DecodeError, UnicodeDecodeError):
        page = body.decode("utf-8-sig").encode()
        return _elements(page) if page.lstrip().startswith(b"[") else _split_envelope(page, _members, _elements)


def _cut(body: bytes) -> list[msgspec.Raw]:
    decoded = _DECODER.decode(body)
    return decoded.records if isinstance(decoded, _Envelope) else decoded


def _split_envelope(
    body: bytes,
    members_of: Callable[[bytes], dict[str, msgspec.Raw]],
    elements_of: Callable[[bytes], list[msgspec.Raw]],
) -> list[msgspec.Raw]:
    """Returns the records of an envelope: those of its array `records`, or of its only array, all of objects."""
    members = members_of(body)
    if "records" in members and _begins(members["records"], b"["):
        return elements_of(bytes(members["records"]))
    arrays = [name for name, value in members.items() if _begins(value, b"[")]
    objects = [name for name, value in members.items() if _begins(value, b"{")]
    name = _envelope_of(members, arrays, objects)
    if name in objects:
        members = members_of(bytes(members[name]))
        name = _only_array(members, [name for name in _INSIDE & members.keys() if _begins(members[name], b"[")])
    records = elements_of(bytes(members[name]))
    if all(_begins(record, b"{") for record in records):
        return records
    raise ValueError(_NO_LISTING)


def _envelope_of(members: Collection[object], arrays: Sequence[str], objects: Sequence[str]) -> str:
    """The member with the records, or the object in which they are. Raises `ValueError` where that is not clear."""
    inner = [name for name in objects if name in _AROUND]
    if not {"records", *arrays}.intersection(members) and len(inner) == 1 and _NO_ENVELOPE.isdisjoint(members):
        return inner[0]
    if "records" in members:
        raise ValueError(_NO_LISTING)
    return _only_array(members, arrays)


def _only_array(members: Collection[object], arrays: Sequence[str]) -> str:
    """The only array of an envelope, besides what JSON:API has beside its records."""
    names = [name for name in arrays if name not in _BESIDE]
    if len(names) == 1 and _NO_ENVELOPE.isdisjoint(members):
        return names[0]
    raise ValueError(_NO_LISTING)


def _begins(value: msgspec.Raw, sign: bytes) -> bool:
    return bytes(memoryview(value)[:1]) == sign


def check_leniently(body: bytes) -> None:
    """Raise `ValueError` unless the body is JSON, or near-JSON of a careless service: NaN, control characters in texts."""
    _LENIENT.decode(body.decode("utf-8-sig"))


def _members(value: bytes) -> dict[str, msgspec.Raw]:
    """The members of an object, read leniently."""
    text, members = value.decode(), dict[str, msgspec.Raw]()
    at = _skip(text, 0)
    if not isinstance(_LENIENT.raw_decode(text, at)[0], dict):
        raise ValueError("it is neither an object nor an array")  # noqa: TRY004  callers catch one kind of error
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _LENIENT.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _value, end = _LENIENT.raw_decode(text, start)
        members[str(key)] = msgspec.Raw(text[start:end].encode())
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return members


def _elements(value: bytes) -> list[msgspec.Raw]:
    """The elements of an array, read leniently."""
    text, elements = value.decode(), list[msgspec.Raw]()
    at = _skip(text, _skip(text, 0) + 1)
    while text[at : at + 1] != "]":
        _value, end = _LENIENT.raw_decode(text, at)
        elements.append(msgspec.Raw(text[at:end].encode()))
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at : at + 1] == "," else at
    return elements


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


_BESIDE = frozenset({"included", "meta", "links", "error", "errors"})
"""Members of an answer that are beside its record, as JSON:API names them."""

_RESOURCE_OBJECT = frozenset({"id", "type", "attributes", "relationships", "links", "meta"})
"""Members of a record in JSON:API."""


def created_record(answer: object, fields: Collection[str]) -> dict[str, Any] | None:
    """Returns the record in the answer to a create: the answer itself, or the one object in it, under any name, that has an id.

    None where there is none, or several. `fields`: the names that were sent: what has one of them is a record and no envelope, so that an
    object in it is another record, to which it refers; and beside other objects, only what has one of them is the record.
    """
    if isinstance(answer, list):
        return created_record(answer[0], fields) if len(answer) == 1 else None
    if not isinstance(answer, dict):
        return None
    record = _plain(answer)
    if _has_id(record):
        return record
    if not record.keys().isdisjoint(fields):
        return None
    inner = _inner_objects(answer)
    named = [
        member for member in inner if _has_id(member) and (len(inner) == 1 or not member.keys().isdisjoint(fields))
    ]
    return named[0] if len(named) == 1 else None


def record_with_id(answer: dict[str, Any], number: int | None) -> dict[str, Any]:
    """Returns the record with this id in an answer: the answer itself, or the object in it; the answer where neither has the id."""
    record = _plain(answer)
    if whole_number(record.get("id")) == number:
        return record
    inner = [member for member in _inner_objects(answer) if _has_id(member) and whole_number(member["id"]) == number]
    return inner[0] if len(inner) == 1 else answer


def _has_id(record: Mapping[str, Any]) -> bool:
    return (whole_number(record.get("id")) or 0) > 0


def _inner_objects(answer: dict[str, Any]) -> list[dict[str, Any]]:
    members = [
        member
        for name, value in answer.items()
        if name not in _BESIDE
        for member in (value if isinstance(value, list) else [value])
    ]
    return [_plain(member) for member in members if isinstance(member, dict)]


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """A record with its fields beside its id, also where they are the `attributes` of JSON:API."""
    attributes = record.get("attributes")
    if isinstance(attributes, dict) and record.keys() <= _RESOURCE_OBJECT and "id" in record:
        return {**attributes, "id": record["id"]}
    return record
