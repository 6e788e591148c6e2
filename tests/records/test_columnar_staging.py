"""Staging a batch as columns gives the same rows as the general way, or says that it cannot (I6, I7)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.records.batches import StagedBatch
from pipelines.records.raw import RawRecords
from pipelines.records.staging.columnar_staging import ColumnarPublications, IrregularBatchError
from pipelines.records.staging.general_staging import stage_publications
from pipelines.records.staging.publication_stager import MOST_FAILURES, PublicationStager
from pipelines.records.tables.registry import raw_table
from tests.records.json_values import records as hostile_records
from tests.records.json_values import text_of
from tests.records.test_fast_staging import REGULAR, REGULAR_FIELDS, TEXT

TYPED_ONCE = st.fixed_dictionaries(
    {"import_state": TEXT},
    optional={name: field for name, field in REGULAR_FIELDS.items() if name not in ("import_state", "zz top")}
    | {
        "categories": st.none()
        | st.lists(st.fixed_dictionaries({}, optional={"id": st.integers(-9, 9), "name": TEXT}), max_size=3),
        "doi": st.none() | st.sampled_from(["10.1000/1", "doi:10.1000/1", "10.1000/1; 10.1000/2", "x", ""]),
        "isbn": st.none() | st.sampled_from(["9783161484100", "3-16-148410-0", "978316148410", "10.1000/5"]),
        "identifiers": st.none() | st.lists(st.just({"type": "doi", "value": "10.1000/1"}), max_size=2),
        "assets": st.none()
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "id": st.integers(1, 9),
                    "url": TEXT,
                    "file": st.none()
                    | st.fixed_dictionaries(
                        {},
                        optional={
                            "id": TEXT,
                            "url": TEXT,
                            "metadata": st.none() | st.fixed_dictionaries({}, optional={"size": st.integers(0, 9)}),
                        },
                    ),
                },
            ),
            max_size=3,
        ),
    },
)
"""Records without a value of another type than its neighbours."""


def _batch(texts: list[str]) -> pa.RecordBatch:
    payloads = [text.encode() for text in texts]
    schema = raw_table("publications").schema
    hashes = [hashlib.sha256(payload).hexdigest() for payload in payloads]
    count = len(texts)
    columns = {"id": [None] * count, "page": [1] * count, "payload": texts, "sha256": hashes}
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def _general(batch: pa.RecordBatch) -> StagedBatch:
    payloads = [text.encode() for text in batch.column("payload").to_pylist()]
    return stage_publications(payloads, batch.column("sha256").to_pylist())


def _same(staged: list[StagedBatch], general: StagedBatch) -> None:
    assert sum((one.residue for one in staged), type(general.residue)()) == general.residue
    for name, rows in general.tables.items():
        assert all(one.tables[name].schema.equals(rows.schema) for one in staged)
        assert [row for one in staged for row in one.tables[name].to_pylist()] == rows.to_pylist()


@given(st.lists(TYPED_ONCE, min_size=1, max_size=6), st.integers(0, 1))
def test_regular_records_are_staged_as_in_the_general_way(records: list[dict[str, Any]], start: int) -> None:
    """Arrow accepts every such batch, a part of a larger one, too, with the rows and counts of the general way."""
    batch = _batch([json.dumps(record, ensure_ascii=False) for record in [*records, *records]]).slice(start)
    columnar = ColumnarPublications()
    columnar.learn(["import_state", "never sent"])

    _same([columnar.stage(batch)], _general(batch))


@given(st.lists(st.lists(REGULAR.map(json.dumps) | hostile_records.map(text_of), max_size=4), max_size=4))
@example([['{"import_state": null}'] * 2, ['{"import_state": null}', "{}"], ['{"import_state": "x"}'] * 2])
@example([['{"name": 1}'], ['{"authors": [{"name": "x"}]}'], ['{"name": "x"}', '{"authors": [{"name": "x"}]}']])
@example([["null"], ["null", "null"], ["{}", "null"]])
@example([['{"id": 1}', '{"id": 1, "id": 2}'], ['{"title": "\\ud800"}'], ["[]", "1", "{}"], ['{"authors": [null]}']])
def test_a_stager_of_batches_never_differs_from_the_general_way(batches: list[list[str]]) -> None:
    """Whatever comes, the rows are the same, batch after batch, with every key that was learned meanwhile (I7)."""
    stager = PublicationStager()
    for batch in map(_batch, batches):
        _same(stager.stage(batch) or [stage_publications([], [])], _general(batch))


@pytest.mark.parametrize(
    "text",
    [
        "null",
        '{"title": 1}',
        '{"size": 1}',
        '{"id": "1"}',
        '{"id": 1.0}',
        '{"categories": ["bare"]}',
        '{"authors": [null]}',
        '{"cover": {"id": "a", "odd": 1}}',
        '{"id": 1, "assets": [{"publication_id": 2}]}',
        '{"identifiers": [{"type": "isbn", "value": "10.1000/1"}]}',
    ],
)
def test_a_record_with_a_surprise_goes_another_way(text: str) -> None:
    """One such record is enough: Arrow would drop what it has no column for, or its rows would differ."""
    with pytest.raises(IrregularBatchError):
        ColumnarPublications().stage(_batch(['{"id": 1}', text]))


def test_a_library_of_another_form_is_not_read_twice_for_ever() -> None:
    """After some batches in a row that Arrow refused, it is not asked again."""
    odd, usual = _batch(['{"id": 1, "categories": ["bare"]}']), _batch(['{"id": 1}'])
    stager = PublicationStager()
    for _ in range(MOST_FAILURES):
        _same(stager.stage(odd), _general(odd))

    stager._columnar = None  # type: ignore[assignment] # whoever asks it now fails

    _same(stager.stage(usual), _general(usual))


def test_the_reader_hands_over_whole_values() -> None:
    """A raw batch as the reader makes it is staged as it is."""
    records = RawRecords()
    records.add([b'{"id":1,"title":"A"}', b'{\n"id":2}'], [1, 2], 1)  # type: ignore[list-item]
    batch = records.batch(raw_table("publications").schema)

    assert ColumnarPublications().stage(batch).tables["publications"].column("id").to_pylist() == [1, 2]
