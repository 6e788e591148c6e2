"""The fast way to stage publications gives the same rows as the general way (I6, I7)."""

from __future__ import annotations

import hashlib
import json

from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.records.batches import StagedBatch
from pipelines.records.staging.fast_staging import MAX_EXTRA_KEYS, RegularPublications
from pipelines.records.staging.general_staging import stage_publications
from pipelines.records.staging.publication_stager import PublicationStager
from tests.records.json_values import records as hostile_records
from tests.records.json_values import text_of

TEXT = st.none() | st.text(max_size=8) | st.sampled_from(["2020-02-29", "2021-02-29", "1999", "1999-12", "1999-13", ""])
NUMBER = st.none() | st.integers(-(2**63), 2**63 - 1)
STORED_FILE = st.fixed_dictionaries(
    {},
    optional={
        "id": TEXT,
        "storage": TEXT,
        "metadata": st.none()
        | st.fixed_dictionaries({}, optional={"size": NUMBER, "filename": TEXT, "mime_type": TEXT}),
        "url": TEXT,
    },
)
ASSET = st.fixed_dictionaries(
    {},
    optional={"id": NUMBER, "name": TEXT, "content_type": TEXT, "file": st.none() | STORED_FILE, "preview_url": TEXT},
)
REGULAR_FIELDS: dict[str, st.SearchStrategy[object]] = {
    "id": NUMBER,
    **dict.fromkeys(("title", "publishable_type", "published_on", "abstract"), TEXT),
    **dict.fromkeys(("doi", "isbn", "issn", "arxiv_id", "pmid"), TEXT),
    "authors": st.none() | st.lists(st.fixed_dictionaries({}, optional={"name": TEXT, "type": TEXT}), max_size=3),
    "categories": st.none()
    | st.lists(st.fixed_dictionaries({}, optional={"id": NUMBER, "name": TEXT}) | st.text(max_size=5), max_size=3),
    "cover": st.none() | STORED_FILE,
    "assets": st.none() | st.lists(ASSET, max_size=3),
    "identifiers": st.none() | st.lists(st.fixed_dictionaries({}, optional={"type": TEXT, "value": TEXT}), max_size=3),
    "contributor": st.none() | st.fixed_dictionaries({}, optional={"id": NUMBER, "name": TEXT}),
    "organization": st.none() | st.fixed_dictionaries({}, optional={"id": NUMBER, "name": TEXT}),
    "thumb_url": TEXT,
    "import_state": TEXT,
    "zz top": st.recursive(
        TEXT | NUMBER,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    ),
}
"""Every documented field, and some that a library may have of its own."""

REGULAR = st.fixed_dictionaries({}, optional=REGULAR_FIELDS)


def _payloads(records: list[object]) -> tuple[list[bytes], list[str]]:
    payloads = [json.dumps(record, ensure_ascii=False).encode() for record in records]
    return payloads, [hashlib.sha256(payload).hexdigest() for payload in payloads]


def _same(one: StagedBatch, other: StagedBatch) -> None:
    assert one.residue == other.residue
    assert {name: batch.to_pylist() for name, batch in one.tables.items()} == {
        name: batch.to_pylist() for name, batch in other.tables.items()
    }


@given(st.lists(REGULAR, max_size=6))
def test_both_ways_stage_regular_records_alike(records: list[object]) -> None:
    """The fast way accepts every regular batch, with the values, positions, residue and counts of the general way."""
    payloads, hashes = _payloads(records)
    fast = RegularPublications()
    fast.learn(["import_state", "zz top"])

    staged = fast.stage(payloads, hashes)

    assert staged is not None
    _same(staged, stage_publications(payloads, hashes))


@given(
    st.lists(
        REGULAR
        | st.dictionaries(st.sampled_from(["id", "title", "authors", "cover", "odd"]), TEXT | NUMBER | st.booleans()),
        max_size=6,
    )
)
def test_a_stager_never_differs_from_the_general_way(records: list[object]) -> None:
    """The rows are the same for any record, and after any learned key (I7)."""
    payloads, hashes = _payloads(records)
    stager = PublicationStager()

    for _ in range(2):
        _same(stager(payloads, hashes), stage_publications(payloads, hashes))


@given(st.lists(st.lists(REGULAR.map(json.dumps) | hostile_records.map(text_of), max_size=4), max_size=4))
@example([['{"id": 1, "a\\\\b": 2, "\\u0000": 3, "\\"": 4}'], ['{"id": 2, "\\"": 5}']])
def test_batch_after_batch_of_anything(batches: list[list[str]]) -> None:
    """One stager stages a whole list: an irregular batch, or a strange name of a key, does not change the others (I13)."""
    stager = PublicationStager()
    for texts in batches:
        payloads = [text.encode() for text in texts]
        hashes = [hashlib.sha256(payload).hexdigest() for payload in payloads]
        _same(stager(payloads, hashes), stage_publications(payloads, hashes))


def test_a_key_that_every_record_has_is_learned_once() -> None:
    """A library with an undocumented field goes the general way for one batch only."""
    payloads, hashes = _payloads([{"id": 1, "import_state": "imported"}])
    stager = PublicationStager()
    stager(payloads, hashes)

    assert stager._regular.stage(payloads, hashes) is not None


def test_a_library_with_too_many_keys_goes_the_general_way() -> None:
    """A hostile library cannot make the decoder learn without end (I13)."""
    payloads, hashes = _payloads([{f"key {number}": 1 for number in range(MAX_EXTRA_KEYS + 1)}])
    stager = PublicationStager()

    _same(stager(payloads, hashes), stage_publications(payloads, hashes))

    assert stager._regular.stage(payloads, hashes) is None


def test_records_of_version_3_go_the_fast_way(typed_payloads: list[str]) -> None:
    """The real library of version 3 is regular without learned keys, and both ways agree."""
    payloads = [payload.encode() for payload in typed_payloads]
    hashes = [hashlib.sha256(payload).hexdigest() for payload in payloads]

    staged = RegularPublications().stage(payloads, hashes)

    assert staged is not None
    assert staged.tables["publication_identifiers"].num_rows > 0
    _same(staged, stage_publications(payloads, hashes))
