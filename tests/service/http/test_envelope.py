"""A page is cut into its records byte for byte (I6), and one odd record does not cost the page (I7)."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.service.http.envelope import created_record, record_with_id, split_records

VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "around",
    ['{{"records": [{}]}}', ' {{ "a": {{"records": 1}}, "records" :[ {} ] , "z": [1, "]"] }} ', "[{}]", " [ {} ] "],
)
@given(records=st.lists(VALUE, max_size=4), blank=st.sampled_from(["", " ", "\n\t"]), odd=st.booleans())
def test_every_record_comes_out_byte_for_byte(around: str, records: list[object], blank: str, odd: bool) -> None:
    """Bare or in an envelope, with any white space, with or without half a surrogate pair: each record, byte for byte, in order."""
    texts = [json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode() for record in records]
    texts += ['{"id": 7, "title": "\\ud800"}'] if odd else []
    body = around.format(f"{blank},{blank}".join(texts)).encode()

    assert [bytes(record).decode() for record in split_records(body)] == texts


@pytest.mark.parametrize(
    "odd",
    [
        r'{"number": NaN, "least": -Infinity, "most": Infinity}',
        '{"text": "a\x01b, a\ttabulator and a\nline"}',
        '{"number": ' + "9" * 5000 + ', "exponent": 1e99999, "a": 1, "a": 2}',
        '{"text": "é", "deep": ' + "[" * 50 + "]" * 50 + "}",
        r'{"text": "\\\ud800, \uD83D\uDE00, \\ud800, \\\" NaN ]}"}',
        r'{"text": "-Infinity, \udfff"}',
    ],
)
@pytest.mark.parametrize("around", ["[{}]", '{{"records": [{}]}}', '{{"total": NaN, "users": [{}]}}'])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_an_odd_record_costs_nothing(odd: str, around: str, begin: str) -> None:
    """I6, I7: what careless services send comes out byte for byte, and so do the records beside it."""
    records = ['{"id": 1}', odd, '{"id": 1}', odd]
    body = (begin + around.format(" , ".join(records))).encode()
    assert [bytes(record).decode() for record in split_records(body)] == records


@pytest.mark.parametrize(
    "around",
    [
        '{"total": 2, "page": {"next": null}, "users": [%s]}',
        '{"_embedded": {"tasks": [%s]}, "_links": {"self": "/tasks"}, "page": {"size": 50}}',
        '{"data": {"total": 2, "items": [%s]}}',
        '{"data": [%s], "included": [{"id": 5}], "meta": {}}',
        '{"success": true, "errors": [], "messages": [{"code": 1}], "result": [%s]}',
    ],
)
@pytest.mark.parametrize("records", [['{"id": 1, "x": [1]}', '{ "id":2 }'], ['{"id": 1, "name": "\\ud800"}'], []])
def test_a_list_may_be_named_otherwise(around: str, records: list[str]) -> None:
    """service.md#lists shows the envelope of publications only: in another list, the only array of objects counts as the envelope.

    It may be one level below, as HAL has it; and beside the records of JSON:API others may be included.
    """
    body = (around % ",".join(records)).encode()
    assert [bytes(record).decode() for record in split_records(body)] == records


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"data": {"id": 7, "items": [{}]}}',
        b'{"data": {"error": "x", "items": [{}]}}',
        b'{"data": {"messages": [{}]}}',
        b'{"data": {"data": {"items": [{}]}}}',
        b'{"data": {"items": ["a"]}}',
        b'{"data": {"items": [], "records": []}}',
        b'{"data": {"a": "\\ud800", "messages": []}}',
        b'{"included": [{"id": 5}]}',
        b'{"records": {}, "data": []}',
        b'{"id": 7, "authors": [{}]}',
        b'{"id": null, "authors": [{}]}',
        b'{"error": {"code": "x"}, "details": [{}]}',
        b'{"errors": []}',
        b'{"errors": [{}], "result": [{}]}',
        b'{"one": [], "two": []}',
        b'{"names": ["a"]}',
        b"{}",
        b"3",
        b'{"records": 3}',
        b'{"records": [1',
        b'{"records": ["\\ud800"',
        b'"\\ud800"',
        b'{"a": "\\ud800"}',
        b"\xff",
    ],
)
def test_a_body_that_is_no_list_is_refused(body: bytes) -> None:
    """No list, no records: never an empty list by mistake."""
    with pytest.raises((msgspec.DecodeError, ValueError)):
        split_records(body)


@pytest.mark.parametrize("number", [7, "a7"])
def test_a_record_of_json_api_is_read_as_its_list_has_it(number: int | str) -> None:
    """Else an undo would take each of its fields for one that people changed."""
    record = {"id": str(number), "type": "tasks", "attributes": {"title": "A"}, "relationships": {}}
    answer = {"data": record, "included": [{"id": "3", "type": "users"}]}
    assert record_with_id(answer, number) == created_record(answer, {"type", "attributes"}) == record
    assert created_record(answer, {"title"}) == {"id": str(number), "title": "A"}


def test_an_object_beside_the_id_of_a_record_is_another_one_unless_it_has_most_of_what_was_sent() -> None:
    record = {"id": 9, "title": "A", "publication_id": 3}
    fields, publication = record.keys() - {"id"}, {"id": 3, "title": "B"}
    answer = {"id": 9, "title": "A", "publication": publication}
    assert created_record(answer, fields) == answer
    assert created_record({"id": 55, "task": record}, fields) == record
    assert created_record({"id": 9, "publication": publication}, fields) is None, "it may be an event"


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ({"collection": {"id": 504}, "user": {"id": 502, "name": "Me"}}, 504),
        ({"job": {"id": 8}, "collection": {"id": 504, "name": "Seas", "note": "N"}}, 504),
        ({"job": {"id": 8}, "made": {"id": 504, "name": "Seas", "note": "N"}}, 504),
        ({"job": {"id": 8}, "user": {"id": 502, "name": "Me"}}, None),
        ({"job": {"id": 502, "state": "done", "name": "import"}}, None),
        ({"user": {"id": 502}}, None),
        ({"created_by": {"id": 502}}, None),
        ({"made": {"id": 504}}, 504),
        ({"status": "done", "result": {"collection": {"id": 504}}}, 504),
        ({"result": {"user": {"id": 502}}}, None),
        ({"collection": "made", "data": {"id": 504}}, 504),
        ({"collection": {"id": 504}, "collections": {"id": 505}}, None),
        ({"id": 612, "status": "accepted", "collection_id": 504, "name": "Seas"}, None),
        ({"version": 1, "revision": {"id": 620, "collection_id": 504, "name": "Seas", "note": "N"}}, None),
        ({"id": 504, "collection_id": 504, "name": "Seas"}, 504),
        ({"id": 504, "created": True}, 504),
        ({"id": 504, "result": "created"}, 504),
        ({"jsonrpc": "2.0", "id": 701, "result": 504}, None),
        ({"id": 701, "collection": 504}, None),
        ({"id": 701, "action": "add", "target": {"id": 504}, "actor": {"id": 502}}, None),
        ({"id": 701, "type": "made", "data": {"object": {"id": 504, "name": "Seas"}}}, 504),
        ({"id": 701, "event": "create", "item": {"id": 504, "name": "Seas"}}, 504),
        ({"id": 701, "record_id": 504, "name": "Seas"}, None),
    ],
)
def test_of_several_objects_the_record_has_the_name_of_its_resource_or_most_of_what_was_sent(
    answer: dict[str, object], number: int | None
) -> None:
    """An id of something else would be that of a record which a later request changes, and an undo deletes."""
    record = created_record(answer, {"name", "note"}, "collections")
    assert (record and record["id"]) == number
