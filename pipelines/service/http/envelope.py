"""Cuts a page into its records, byte for byte (I6): an object with `records`, a bare array, or an object with one other array of objects.

The service shows the envelope of publications only (service.md#lists); the array of another list may have its resource's name, or be one
level below, in `data` or `_embedded`. An object with an `id` is a record and an object with errors is a refusal: neither is an envelope.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from pipelines.inventory import RESOURCES
from pipelines.records.paths import ATTRIBUTES, value_at
from pipelines.records.shapes.field_names import (
    is_named_as_id,
    names_doer,
    names_records,
    resource_called,
    singular,
    stem_of,
)
from pipelines.records.values import NOT_JSON, RecordId, record_id


class _Envelope(msgspec.Struct):
    records: list[msgspec.Raw]


_DECODER = msgspec.json.Decoder(_Envelope | list[msgspec.Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_NO_LISTING = "there is neither an array `records` in it nor one other array of objects"
_NO_ENVELOPE = frozenset({"id", "error", "errors"})
"""Keys that an envelope of another name does not have."""

_NO_RECORD = _NO_ENVELOPE | {"records"}

_AROUND = frozenset({"data", "_embedded"})
"""Names of an object around the array, as HAL and others have it."""

_INSIDE = frozenset({"records", "items", "results", "result", "data", *RESOURCES})
"""Names of an array of records, in such an object or beside other arrays."""

_NOTHING = (b"[]", b"null", b"false", b'""', b"0", b"{}")
"""What a member for errors, or for the next records, has where there are none."""

_CONTROLS = bytes(b" x"[code not in b"\t\n\r"] for code in range(32)) + bytes(range(32, 256))
_ESCAPE = re.compile(rb"\\u([dD][89a-fA-F])[0-9a-fA-F]{2}|\\.")
"""Half of a surrogate pair, or any other escape."""
_NO_NUMBER = re.compile(rb"(?<![\w.-])(?:-?Infinity|NaN)(?![\w.])")


def as_plain_json(body: bytes) -> bytes:
    """Returns what careless services send as JSON that msgspec reads, with everything in its place.

    Another text is where there was a byte order mark, a control character, half of a surrogate pair, or a number that is none.
    """
    plain = re.sub(rb"\A\xef\xbb\xbf", b"   ", body).translate(_CONTROLS)
    plain = _ESCAPE.sub(lambda escape: rb"\u0020" if escape[1] else escape[0], plain)
    return _NO_NUMBER.sub(lambda word: b"1" * len(word[0]), plain)


def split_records(body: bytes) -> list[msgspec.Raw]:
    """Returns the JSON of each record of a page. Raises `msgspec.DecodeError`, `ValueError` or `RecursionError` if the page is no list.

    One odd record must not cost the page (I7): it is cut out where it would end without what is odd in it. JSON is UTF-8 (RFC 8259, 8.1).
    """
    body.decode()  # msgspec does not check the bytes of a text that it only passes on
    try:
        return _split(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        plain, end, records = as_plain_json(body), 0, list[msgspec.Raw]()
        for record in map(bytes, _split(plain)):
            begin = plain.index(record, end)
            end = begin + len(record)
            records.append(msgspec.Raw(body[begin:end]))
        return records


def _split(body: bytes) -> list[msgspec.Raw]:
    try:
        decoded = _DECODER.decode(body)
    except msgspec.ValidationError:
        return _split_envelope(body)
    return decoded.records if isinstance(decoded, _Envelope) else decoded


def _split_envelope(body: bytes) -> list[msgspec.Raw]:
    """Returns the records of an envelope: those of its array `records`, or of its only array, all of objects.

    Raises `ValueError` where that is not clear. Besides, an envelope may have what JSON:API has beside its records.
    """
    members = _MEMBERS.decode(body)
    arrays, around = _named(members, b"["), _named(members, b"{") & _AROUND
    if "records" in arrays:
        return _ARRAY.decode(members["records"])
    if not arrays and len(around) == 1 and _NO_RECORD.isdisjoint(members):
        members = _MEMBERS.decode(members[around.pop()])
        arrays = _named(members, b"[") & _INSIDE
    elif "records" in members:
        raise ValueError(_NO_LISTING)
    arrays -= _BESIDE
    arrays = arrays & _INSIDE or arrays
    errors = [bytes(members[name]) for name in _NO_ENVELOPE & members.keys() if name != "id"]
    if len(arrays) == 1 and "id" not in members and {*errors} <= {*_NOTHING}:
        records = _ARRAY.decode(members[arrays.pop()])
        if all(_begins(record, b"{") for record in records):
            return records
    raise ValueError(_NO_LISTING)


def says_more(body: bytes) -> bool:
    """Whether an envelope says that more records follow, itself or in an object of it: `{"records": [...], "next_cursor": "b2"}`."""
    try:
        members = _MEMBERS.decode(body)
        objects = [members, *(_MEMBERS.decode(value) for value in members.values() if _begins(value, b"{"))]
    except NOT_JSON:
        return False
    return any(
        _MORE.fullmatch(name) and bytes(value) not in _NOTHING for mapping in objects for name, value in mapping.items()
    )


_MORE = re.compile(r"next.*|(end_?)?cursor|has_?(more|next).*", re.IGNORECASE)
"""Matches the name of a member that leads to more records."""


def _named(members: Mapping[str, msgspec.Raw], sign: bytes) -> set[str]:
    """The names of the members that are arrays, or objects."""
    return {name for name, value in members.items() if _begins(value, sign)}


def _begins(value: msgspec.Raw, sign: bytes) -> bool:
    return bytes(memoryview(value)[:1]) == sign


_BESIDE = frozenset({"included", "meta", "links", "error", "errors"})
"""Members of an answer that are beside its record, as JSON:API names them."""

_RESOURCE_OBJECT = frozenset({"id", "type", "attributes", "relationships", "links", "meta"})
"""Members of a record in JSON:API."""


def created_record(answer: object, fields: Collection[str], resource: str = "") -> dict[str, Any] | None:
    """Returns the record in the answer to a create: the answer itself, or the one object in it, under any name, that has an id.

    None where there is none, or several. `fields`: the names that were sent: what has one of them is a record and no envelope, so that an
    object in it is another record, to which it refers; and beside other objects, the record is what has the name of its `resource`, or most
    of what was sent. An object that is called otherwise, and has little of that, is a job or a person; so is an answer that has nothing
    of it, but objects with ids.
    """
    if isinstance(answer, list):
        return created_record(answer[0], fields, resource) if len(answer) == 1 else None
    if not isinstance(answer, dict):
        return None
    record, inner = _plain(answer, fields), _inner_objects(answer)
    is_record, members = not record.keys().isdisjoint(fields), [_plain(member, fields) for _name, member in inner]
    alike = [
        member
        for member in members
        if _has_id(member, fields, resource) and len(member.keys() & {*fields}) * 2 > len(fields)
    ]
    has_id = _has_id(record, fields, resource)
    if is_record:
        return record if has_id else None
    if has_id and not (alike or _has_other_id(answer, resource)):
        return record
    alike = alike or [_plain(member, fields) for name, member in inner if _is_called(name, resource)]
    if not alike and len(inner) == 1 and _may_be_around(inner[0][0], members[0], fields):
        if "id" not in members[0]:
            return created_record(members[0], fields, resource)
        alike = members
    records = [
        member
        for member in alike
        if _has_id(member, fields, resource) and not (has_id and member.keys().isdisjoint(fields))
    ]
    return records[0] if len(records) == 1 else None


def _has_other_id(answer: dict[str, Any], resource: str) -> bool:
    """Whether something within an answer has an id, too, or is one by its name, so that the answer's own may be that of an event."""
    inner = _inner_objects(answer)
    within = any(record_id(member.get("id")) is not None or _has_other_id(member, resource) for _name, member in inner)
    return within or any(
        record_id(value) is not None
        and re.search("[0-9]", str(value))  # `"result": "created"` is a word
        and (stem_of(name) in _AROUND_RECORD or _is_called(name, resource))
        for name, value in answer.items()
    )


def _is_called(name: str, resource: str) -> bool:
    return bool(resource) and resource_called(stem_of(name)) == resource


def _may_be_around(name: str, member: Mapping[str, Any], fields: Collection[str]) -> bool:
    """Whether the only object of an answer may be the record, which has another name, or little of what was sent."""
    is_other = names_records(stem_of(name)) or names_doer(name) or not member.keys().isdisjoint(fields)
    return name in _AROUND_RECORD or not is_other


_AROUND_RECORD = frozenset(
    {"data", "record", "result", "item", "object", "resource", "entity", "response", "payload", "body", "created"}
)
"""Names of an object in an answer that say nothing of what it is."""


def record_named_at(answer: object, path: str) -> dict[str, Any] | None:
    """Returns the record in the answer to a create whose id has this path, such as `data/number`; None where there is none.

    Only what is beside an `id` is a part of the record.
    """
    number = record_id(value_at(answer, path)) if isinstance(answer, dict) else None
    if not isinstance(answer, dict) or number is None:
        return None
    holder, _, name = path.rpartition("/")
    record = value_at(answer, holder) if holder else answer
    return {**record, "id": number} if name == "id" else {"id": number}


def record_with_id(answer: dict[str, Any], number: RecordId | None) -> dict[str, Any]:
    """Returns the record with this id in an answer: the answer itself, or the object in it; the answer where neither has the id."""
    if record_id(answer.get("id")) == number:
        return answer
    inner = [member for _name, member in _inner_objects(answer) if number and record_id(member.get("id")) == number]
    return inner[0] if len(inner) == 1 else answer


def _has_id(record: Mapping[str, Any], fields: Collection[str], resource: str) -> bool:
    """Whether an object has the id of a record. A text may be that of a request or a job where the object has none of the `fields`.

    So may any id beside that of a record of the resource: `{"id": 612, "task_id": 503}` is a job, or a version of a task, and so is what
    has a `record_id`.
    """
    number = record_id(record.get("id"))
    own_names = {singular(resource), singular(resource.rpartition("_")[2]), *_AROUND_RECORD}
    added = {stem_of(name): record_id(record[name]) for name in record.keys() - fields if is_named_as_id(name)}
    if any(added.get(name, number) not in (None, number) for name in own_names):
        return False
    return number is not None and (not record.keys().isdisjoint(fields) if isinstance(number, str) else number > 0)


def _inner_objects(answer: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The objects in an answer, and in its lists, each with its name."""
    members = [
        (name, member)
        for name, value in answer.items()
        if name not in _BESIDE
        for member in (value if isinstance(value, list) else [value])
    ]
    return [(name, member) for name, member in members if isinstance(member, dict)]


def _plain(record: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """A record with its fields beside its id, as they were sent, also where the answer has them in the `attributes` of JSON:API."""
    attributes = record.get(ATTRIBUTES)
    if (
        isinstance(attributes, dict)
        and record.keys() <= _RESOURCE_OBJECT
        and "id" in record
        and ATTRIBUTES not in fields
    ):
        return {**attributes, "id": record["id"]}
    return record
