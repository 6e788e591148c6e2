"""Texts that are taken from the JSON of a record as it stands are those that its form would give (I7)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.migration.plan.files import described_files, unsent_with_files
from pipelines.records.canonical_json import SENT_OTHERWISE, CanonicalReader
from pipelines.records.files import AttachedFile
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import count_left_out
from pipelines.records.identifiers.verdicts import GOOD, INVALID, VERDICTS
from pipelines.records.matching import comparable, fingerprint, identifying_keys
from pipelines.records.residue import residue_json
from pipelines.records.values import compact_json, decode_json, decode_record, whole_number
from tests.records.json_values import Members, meaning, records, text_of
from tests.records.test_forms import PMCID, RECORD, SIGNED

SENT = GOOD | {INVALID}


def without_keys(files: list[AttachedFile]) -> list[AttachedFile]:
    """The address has a part in the content key of a file that has no id of its own; who matches records needs none."""
    return [replace(one, content_key="") for one in files]


def decoded(text: str | None) -> Any:
    """What a column of JSON holds."""
    return None if text is None else decode_json(text.encode())


def check(payload: bytes, kinds: Kinds = STANDARD_KINDS, sent: frozenset[str] = GOOD) -> None:
    """What is read of a record is what its form says."""
    record = decode_record(payload)
    found = CanonicalReader(kinds, sent).read(payload)
    number = whole_number(record.get("id"))
    if number is None:
        assert found is None
        return
    assert found is not None
    form = form_of(record, kinds, sent)
    assert found.id == number
    assert found.compared == comparable(form.fields, kinds)
    assert found.sent == {name: compact_json(form.fields[name]) for name in SENT_OTHERWISE if name in form.fields}
    assert found.fingerprint == fingerprint(form.fields)
    assert list(found.keys) == identifying_keys(form, kinds)
    assert found.invalid == count_left_out(form.identifiers, sent)
    assert without_keys(described_files(found.files)) == without_keys(form.files)
    unsent = unsent_with_files(found.unsent, found.files) if found.files else found.unsent
    assert decoded(unsent) == decoded(residue_json(form.unsent)), "numbers may be written in another way, 1e+16 as 1e16"


@given(records, st.sampled_from([STANDARD_KINDS, PMCID]), st.sampled_from([GOOD, SENT, frozenset(VERDICTS)]))
def test_any_record_reads_as_its_form(value: Any, kinds: Kinds, sent: frozenset[str]) -> None:
    pairs = value.pairs if isinstance(value, Members) else ()
    for one in (value, Members((*pairs, ("id", 7)))):
        check(text_of(one).encode(), kinds, sent)
        check(compact_json(meaning(one)).encode(), kinds, sent)


def test_the_real_library_reads_as_its_forms(real_payloads: list[str], typed_payloads: list[str]) -> None:
    for payload in (*real_payloads, *typed_payloads):
        check(payload.encode())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"title": 'A "quoted" title\n\\ é \u2028'},
        {"authors": [{"name": "A", "type": "person"}, {"name": 'B "b"', "type": "corporate"}]},
        {
            "authors": [{"name": "A", "type": "person", "id": 3}],
            "identifiers": [{"type": "doi", "value": "10.1000/182"}],
        },
        {
            "isbn": None,
            "pmid": None,
            "identifiers": [{"type": "doi", "value": "10.1000/A"}, {"type": "x", "value": "y"}],
        },
        {"isbn": None, "pmid": None, "doi": "https://doi.org/10.1000/A"},
        {
            "isbn": [],
            "organization": {"id": 3, "name": "x", "more": 1},
            "import_state": None,
            "foreign": {"url": SIGNED},
        },
        {
            "id": "7",
            "cover": SIGNED,
            "assets": [1, {"id": 2, "file": {"id": "x", "source_url": "mine", "url": SIGNED}}],
        },
        {"categories": [{"name": "b"}, {"name": "a"}, {"name": "b"}], "published_on": "2009", "abstract": 5},
        {"contributor": [], "organization": "", "published_on": [], "cover": [], "assets": ""},
        {
            "authors": "",
            "categories": {},
            "identifiers": "",
            "doi": "",
            "isbn": {},
            "title": [],
            "cover": "",
            "assets": [],
        },
        {"id": "seven"},
    ],
)
def test_what_is_not_plain_reads_as_its_form(changes: dict[str, Any]) -> None:
    for written in (msgspec.json.encode, lambda one: json.dumps(one, indent=1).encode()):
        check(written({**RECORD, **changes}))


@pytest.mark.parametrize(
    "payload", [b"[]", b"7", b"{", b'{"id":7,"title":"\xff"}', b'{"id":7,"title":"\\ud800"}', b'{"id":7,"n":NaN}']
)
def test_what_careless_services_send_reads_as_its_form(payload: bytes) -> None:
    check(payload)


def test_no_address_stays() -> None:
    """I10: what is laid out holds no signed address, however that is written."""
    record = {**RECORD, "cover": {"id": "c", "thumb_url": SIGNED, "url": SIGNED + '\\"&'}}
    found = CanonicalReader(STANDARD_KINDS, GOOD).read(msgspec.json.encode(record))
    assert found is not None
    assert "X-Amz-Signature" not in repr(found)
