"""The comparable form of a record: whatever it holds, it has what its form says, and no address (I7, I10)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.migration.model.field_mapping import plain
from pipelines.migration.model.file_comparison import files_of
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import PUBLICATIONS, FieldRule, ResourceType
from pipelines.records.additional_fields import is_empty, sendable
from pipelines.records.files import attached_files
from pipelines.records.forms import PublicationForm, add_unsent_files, form_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import GOOD, INVALID, VERDICTS
from pipelines.records.matching import comparable, identifying_keys
from pipelines.records.residue import residue_json
from pipelines.records.values import compact_json, decode_json, decode_record
from tests.records.json_values import Members, any_value, meaning, records, text_of
from tests.records.test_forms import PMCID, RECORD, SIGNED

SENT = GOOD | {INVALID}

TAKEN = {
    "subtitle": FieldRule(types=("string",)),
    "shelf": FieldRule(),
    "binding": FieldRule(choices=("paper", "7", "true")),
    "pages": FieldRule(types=("integer",)),
    "marks": FieldRule(types=("array",), entry_types=("string",)),
}
ADDITIONAL = publication_type(PMCID, learned=ResourceType(PUBLICATIONS, plain(*TAKEN), (), takes=TAKEN))


def check(payload: bytes, kinds: Kinds = STANDARD_KINDS, sent: frozenset[str] = GOOD) -> None:
    """What is read of a record is what its form says, whatever is sent of partial dates."""
    for first_day in (False, True):
        check_with(payload, kinds, sent, first_day=first_day)


def check_with(payload: bytes, kinds: Kinds, sent: frozenset[str], *, first_day: bool) -> None:
    record = decode_record(payload)
    publications = publication_type(kinds, sent, first_day=first_day)
    form = publications.form(record)
    assert form.unsent.keys() == form.why.keys()
    expected = form_of(record, kinds, sent, first_day=first_day, parts_of_author=publications._parts_of_author)
    assert publications.compared(form.values) == comparable(expected.fields, kinds)
    keys = [(kind, value) for stage, kind, value in publications.match_keys(form.values) if stage == "identifier"]
    assert sorted(keys) == sorted(identifying_keys(expected.fields, kinds))
    text = publications.files(record)
    assert attached_files(files_of(text)) == attached_files(record)
    add_unsent_files(files_of(text), PublicationForm(unsent=form.unsent, why=form.why))
    add_unsent_files(record, expected)
    assert form.why == expected.why
    assert decode_json((residue_json(form.unsent) or "null").encode()) == decode_json(
        (residue_json(expected.unsent) or "null").encode()
    ), "numbers may be written in another way, 1e+16 as 1e16"


def shelf_of(value: Any) -> tuple[str | None, dict[str, Any]]:
    """The compared form of an additional field, and what is not sent."""
    form = ADDITIONAL.form({"id": 7, "shelf": value})
    return ADDITIONAL.compared(form.values).get("shelf"), form.unsent


@given(st.dictionaries(st.sampled_from([*TAKEN]), any_value))
def test_additional_fields_are_sent_in_the_form_in_which_they_are_compared(fields: dict[str, Any]) -> None:
    """What is sent reads as itself, whatever the order of its members, and no value is lost without a word (I6)."""
    record = decode_record(text_of(Members(tuple(fields.items()))).encode())
    form = ADDITIONAL.form(record)
    second_form = ADDITIONAL.form(decode_record(compact_json(form.values).encode()))
    assert ADDITIONAL.compared(second_form.values) == ADDITIONAL.compared(form.values)
    assert not second_form.unsent
    for name, value in record.items():
        kept = name in form.values or name in form.unsent
        assert kept or is_empty(value) or is_empty(sendable(value))
    for name, value in form.values.items():
        assert TAKEN[name].refusal(value) is None


@pytest.mark.parametrize(
    ("value", "text", "unsent"),
    [
        (
            {"side": "left", "row": 1.0, "id": 7, "updated_at": "2026"},
            '{"row":1,"side":"left"}',
            {"shelf/updated_at": "2026"},
        ),
        ([{"b": 1, "a": [True, None]}, "x"], '[{"a":[true,null],"b":1},"x"]', {}),
        (
            [{"url": "https://a", "page_count": 2, "links": {"self": "/1"}}],
            '[{"page_count":2,"url":"https://a"}]',
            {"shelf/links": {"self": "/1"}},
        ),
        (0, "0", {}),
        (False, "false", {}),
        (1.5, "1.5", {}),
        ("see https://example.org/a?page=2", '"see https://example.org/a?page=2"', {}),
        *((empty, None, {}) for empty in ("", [], {}, None, {"id": 7})),
    ],
)
def test_the_form_of_an_additional_field(value: Any, text: str | None, unsent: dict[str, Any]) -> None:
    """What a service fills itself is not sent, and named; only ids of objects are not."""
    payload = msgspec.json.encode({"id": 7, "shelf": value})
    assert shelf_of(decode_record(payload)["shelf"]) == (text, unsent)


@pytest.mark.parametrize("value", [SIGNED, {"link": [SIGNED]}, 2**64, [[2**70]]])
def test_what_cannot_be_sent_is_listed(value: Any) -> None:
    """I10: a signed address is in no plan."""
    payload = json.dumps({"id": 7, "shelf": value}).encode()
    text, unsent = shelf_of(decode_record(payload)["shelf"])
    assert text is None
    assert unsent
    assert "X-Amz-Signature" not in repr(unsent)


@given(records, st.sampled_from([STANDARD_KINDS, PMCID]), st.sampled_from([GOOD, SENT, frozenset(VERDICTS)]))
@example(Members((("assets", Members(())),)), STANDARD_KINDS, GOOD)
def test_any_record_reads_as_its_form(value: Any, kinds: Kinds, sent: frozenset[str]) -> None:
    pairs = value.pairs if isinstance(value, Members) else ()
    for record in (value, Members((*pairs, ("id", 7)))):
        check(text_of(record).encode(), kinds, sent)
        check(compact_json(meaning(record)).encode(), kinds, sent)


@pytest.mark.parametrize(
    "payload", [b"[]", b"7", b"{", b'{"id":7,"title":"\xff"}', b'{"id":7,"title":"\\ud800"}', b'{"id":7,"n":NaN}']
)
def test_what_careless_services_send_reads_as_its_form(payload: bytes) -> None:
    check(payload)


def test_no_address_stays() -> None:
    """I10: what is laid out holds no signed address, however that is written."""
    record = {**RECORD, "cover": {"id": "c", "thumb_url": SIGNED, "url": SIGNED + '\\"&'}}
    publications = publication_type(STANDARD_KINDS)
    assert "X-Amz-Signature" not in repr((publications.form(record), publications.files(record)))
