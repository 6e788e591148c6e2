"""Staging accepts any record, loses nothing, and does not depend on the size of batches (I6, I7, I13)."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.records.batches import StagedBatch
from pipelines.records.residue import (
    MAX_KEY_CHARACTERS,
    MAX_RESIDUE_KEYS,
    bounded,
)
from pipelines.records.stager import Stager
from pipelines.records.values import decode_record, record_ids
from tests.records.identifiers.identified import identify
from tests.records.json_values import Members, meaning, records, text_of
from tests.records.scalars import lost


def stage(payloads: Sequence[str]) -> StagedBatch:
    encoded = [payload.encode() for payload in payloads]
    return Stager("publications")(encoded, [hashlib.sha256(payload).hexdigest() for payload in encoded])


def rows(staged: StagedBatch, table: str = "publications") -> list[dict[str, Any]]:
    return staged.tables[table].to_pylist()


def staged_one(record: str | dict[str, Any]) -> tuple[dict[str, Any], StagedBatch]:
    """The publications row of one record, and all that was staged from it."""
    staged = stage([record if isinstance(record, str) else json.dumps(record)])
    [row] = rows(staged)
    return row, staged


def residue(row: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = json.loads(row["residue"] or "{}")
    return members


class TestTotal:
    """No value of any kind stops the staging, and each record is one row (I7)."""

    @pytest.mark.parametrize(
        "payload",
        ["", "{", "nonsense", '{"id": 1', "\ufeff{}", '{"id": 1} {"id": 2}', "\x00", '"text"', "[]", "null", "1e5"],
    )
    def test_what_is_no_object_is_residue_as_a_whole(self, payload: str) -> None:
        """Text that is not a JSON object, or not JSON, is a row without an id, under the key `(record)` (I6)."""
        row, staged = staged_one(payload)
        assert row["id"] is None
        assert list(residue(row)) == ["(record)"]
        assert staged.residue == {"(record)": 1}
        assert record_ids([payload.encode()]) == [None]

    @pytest.mark.parametrize("depth", [100, 900, 990, 1000, 5000, 200_000])
    def test_nesting_of_any_depth(self, depth: int) -> None:
        """A record nested deeper than any parser goes is still one row; the residue says so or holds it."""
        payload = '{"id": 1, "authors": [{"name": %s}], "x": %s}' % (("[" * depth + "]" * depth,) * 2)
        row, _ = staged_one(payload)
        assert row["sha256"] == hashlib.sha256(payload.encode()).hexdigest()
        assert residue(row) if depth < sys.getrecursionlimit() // 2 else row["residue"]
        record_ids([payload.encode()])

    def test_control_characters_in_a_text(self) -> None:
        """JSON has none in its texts. A service that forgets to escape them loses neither the record nor its id."""
        row, _ = staged_one('{"id": 5, "title": "first\nsecond\tthird\x01", "x": "a\x0bb"}')
        assert row["id"] == 5
        assert row["title"].split() == ["first", "second", "third\x01"]
        assert residue(row) == {"x": "a\x0bb"}

    def test_numbers_of_any_length(self) -> None:
        """A number with more digits than Python converts neither stops the staging nor costs the record its id."""
        digits = "9" * 10_000
        row, _ = staged_one(f'{{"id": 5, "title": {digits}, "x": [1e{digits}, -{digits}], "y": NaN}}')
        assert (row["id"], row["title"]) == (5, digits)
        assert residue(row) == {"x": [f"1e{digits}", f"-{digits}"], "y": "NaN"}

    @pytest.mark.parametrize(
        ("sent", "staged_id"),
        [
            (7, 7),
            ("7", 7),
            ("007", 7),
            ("-7", None),
            (-1, -1),
            (-(2**63), -(2**63)),
            (2**63 - 1, 2**63 - 1),
            (2**63, None),
            ("9" * 18, int("9" * 18)),
            ("9" * 19, None),
            (7.0, None),
            (True, None),
            (" 7", None),
            ("٧", None),
            ([7], None),
            (None, None),
        ],
    )
    def test_an_id_is_a_whole_number_or_residue(self, sent: object, staged_id: int | None) -> None:
        """An id is an integer or its ASCII digits, within 64 bits; anything else leaves the column empty and stays in the residue."""
        row, _ = staged_one({"id": sent})
        assert row["id"] == staged_id
        assert residue(row) == ({} if staged_id is not None or sent is None else {"id": sent})

    @pytest.mark.parametrize(
        ("sent", "year", "precision"),
        [
            ("2020-02-29", 2020, "day"),
            ("2018-11", 2018, "month"),
            ("2021", 2021, "year"),
            ("0001", 1, "year"),
            ("2021-02-29", None, None),
            ("2018-13", None, None),
            ("0000", None, None),
            ("2021-", None, None),
            ("2021-1", None, None),
            ("2021\n", 2021, "year"),
            (" 2021", 2021, "year"),
            ("202101", None, None),
            ("２０２１", None, None),
            ("c. 2021", None, None),
            ("", None, None),
            (2021, None, None),
            (None, None, None),
        ],
    )
    def test_a_date_may_be_a_year_or_a_month(self, sent: object, year: int | None, precision: str | None) -> None:
        """A year or a month has its year and its precision; other scripts and impossible months are no dates (I7)."""
        row, _ = staged_one({"published_on": sent})
        assert (row["published_year"], row["published_precision"]) == (year, precision)


class TestNothingIsLost:
    """Every value of a record is in a column, or in the residue under its path (I6)."""

    @given(records.filter(lambda value: isinstance(value, Members)))
    @example(Members((("authors", [Members((("role", 1),))]), ("authors[0].role", 2))))
    @example(Members((("assets[0].id", 2), ("assets", [Members((("id", "x"), ("publication_id", 9)))]))))
    def test_every_value_is_found_again(self, record: Members) -> None:
        """Each scalar of any object is in its row, in a row of a list or in the residue, addresses of files excepted."""
        _row, staged = staged_one(text_of(record))
        assert lost(meaning(record), staged.tables.values()) == []

    def test_a_file_of_another_publication_is_shown(self) -> None:
        """An asset's publication_id says nothing new where it is the record's own id, and is residue where it is not."""
        assets = [{"id": 1, "publication_id": 5}, {"id": 2, "publication_id": 6}, {"id": 3, "publication_id": "5"}]
        row, _ = staged_one({"id": 5, "assets": assets})
        assert residue(row) == {"assets[1].publication_id": 6, "assets[2].publication_id": "5"}

    def test_residue_is_counted_by_records_not_by_occurrences(self) -> None:
        """The manifest counts in how many records a key was residue; positions in lists do not make it another key."""
        payloads = [
            json.dumps({"id": number, "authors": [{"role": 1}] * number, "isbn13": "x"}) for number in range(1, 4)
        ]
        assert stage(payloads).residue == {"authors[].role": 3, "isbn13": 3}

    def test_hostile_keys_do_not_fill_the_manifest(self) -> None:
        """Many, long or broken residue keys are counted in bounded space and as text that UTF-8 can hold (I13)."""
        long, broken = "k" * 100_000, r"\ud800"
        many = "".join(f', "key{number}": 0' for number in range(MAX_RESIDUE_KEYS))
        row, staged = staged_one(f'{{"{long}": 1, "{broken}": 2{many}}}')
        assert residue(row)[long] == 1
        counts = bounded(staged.residue)
        assert len(counts) == MAX_RESIDUE_KEYS + 1
        assert counts["(other keys)"] == 2
        assert max(map(len, counts)) <= MAX_KEY_CHARACTERS
        json.dumps(counts, ensure_ascii=False).encode()


class TestIdentifiers:
    """Every value of a text is a row, typed, checked and with its provenance; what the settings describe is read, too (I7)."""

    @pytest.mark.long
    @given(st.lists(records, max_size=4))
    def test_the_rows_are_what_was_identified(self, values: list[Any]) -> None:
        """Row by row what `identify` says of the record, in its order."""
        payloads = [text_of(value) for value in values]
        encoded = [payload.encode() for payload in payloads]
        identified = [identify(decode_record(payload)) for payload in encoded]
        staged = stage(payloads)
        columns = ("type", "value", "raw", "source_field", "position", "verdict")
        assert [
            (*(row[name] for name in columns), row["rule"] or "") for row in rows(staged, "publication_identifiers")
        ] == [
            tuple(meaning(value) if isinstance(value, str) else value for value in identifier)
            for identifiers in identified
            for identifier in identifiers
        ]

    def test_a_type_that_an_entry_names_wrongly(self) -> None:
        """The column has what the value is; the entry's own type stays in the residue (I6)."""
        entries = [{"type": "isbn", "value": "10.1000/182"}, {"type": "DOI", "value": "10.1000/1"}, {"value": "x"}]
        _row, staged = staged_one({"id": 1, "identifiers": entries})
        assert [row["type"] for row in rows(staged, "publication_identifiers")] == ["doi", "doi", ""]
        [row] = rows(staged)
        assert residue(row) == {"identifiers[0].type": "isbn", "identifiers[1].type": "DOI"}
