"""Fields whose values may lead to records, whatever their names."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.migration.mapping.ids_in_values import fields_with_ids, text_ids_in
from pipelines.migration.model.target_reading import RecordListing

Listings = Callable[..., dict[str, RecordListing]]


@pytest.fixture
def listings(tmp_path: Path) -> Listings:
    """Listings with these ids."""

    def write(**resources: Iterable[int]) -> dict[str, RecordListing]:
        for resource, ids in resources.items():
            pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), tmp_path / resource)
        return {resource: RecordListing(tmp_path / resource) for resource in resources}

    return write


LIBRARY: dict[str, Iterable[int]] = {
    "publications": range(1, 101),
    "users": [7000],
    "tasks": range(120_000, 121_000),
}


UUID_OF_RECORD = "0e8400e2-9b41-41d4-a716-44665544000f"


@pytest.mark.parametrize(
    ("values", "leads_to"),
    [
        ([41, 9000, 9001], "publications"),
        ([9000, 9001.0, 120_417.0], "tasks"),
        ([-7000, True, "none"], "users"),
        ([9000, 0, True, 4.5, None, "none"], None),
        (["041", "000042"], "publications"),
        (["a note", "moved from 120417, by 9000"], "tasks"),
        (["14th", "p14", "LIB*7*5000", "7→300", "#7", "(7)", "7 p."], "publications"),
        (["2026-11-29", "2026-11-07T10:20:30.5+01:00", "29.11.2026", "10.50", "7.20"], None),
        (["2026-11-29: moved to 7000"], "publications"),
        (["https://library.example.org/cgi-bin/detail.pl?number=7&x=1", "/users/7000"], "publications"),
        (["gid://app/Task/120417", '<a href="/tasks/120418">'], "tasks"),
        ([b64encode(b"Task:120417").decode(), b64encode(b"120418").decode(), "QA", "abcd"], "tasks"),
        ([' {"on": 7000}', "[7000"], "users"),
        ([{"shelf": [{"work": 7000}]}], "users"),
        ([{"41": True, "42": {"since": "May"}}, {"pub:7": 1}, {"/publications/8": 1}], "publications"),
        ([[["publication", 7], ["publication", 8]]], "publications"),
        ([f"a/{'1' * 100_000} "], None),
    ],
)
def test_a_field_has_ids_wherever_a_number_in_it_is_the_id_of_a_record(
    listings: Listings, values: list[Any], leads_to: str | None
) -> None:
    ids = fields_with_ids([{"id": 1, "about": value} for value in values], ["about"], listings(**LIBRARY))
    assert [next(iter(field_ids.of)) for field_ids in ids.values()] == ([leads_to] if leads_to else [])


@pytest.mark.parametrize(
    ("name", "values", "are_ids"),
    [
        ("shelf", [41, 42, 9000, -1, "none"], False),
        ("shelf", [41, 42, 43, -9000, "none"], True),
        ("shelf", ["41, 42", "7;8", "1/2/3", "none"], True),
        ("shelf", ["Amber 41", "Amber 42"], False),
        ("shelf", [{"41": 2.5}, {"42": 4.5}], True),
        ("edition_nr", [1, 2, 3], False),
        ("pageCount", [1, 2, 3], False),
        ("copy_number", [1, 2], True),
        ("borrower", [{"number": 41}], True),
        ("order", [[41, 42]], True),
        ("order", [41], False),
        ("about", [{"kind": "Book", "number": 41}], True),
        ("place", [{"page": 41, "work": 41}], True),
    ],
)
def test_values_are_ids_where_half_of_them_are_those_of_one_resource(
    listings: Listings, name: str, values: list[Any], *, are_ids: bool
) -> None:
    """A quantity may have ids by chance, and is none of them."""
    ids = fields_with_ids([{"id": 1, name: value} for value in values], [name], listings(**LIBRARY))
    assert ids[name].are_values == are_ids


def test_quantities_of_publications_are_what_they_are_called(listings: Listings) -> None:
    """A list of them is none: these are the volumes themselves."""
    record = {"volume": 7, "shelf": {"pages": "7-8", "depth": 7}, "start_page": 7}
    asked = {"series": "No. 7", "volumes": [7], "previous_edition": 7}
    names = [*record, *asked]
    assert fields_with_ids([record | asked], names, listings(**LIBRARY), asks_quantities=False).keys() == asked.keys()


@pytest.mark.parametrize(
    ("name", "value", "may_be"),
    [
        ("lent_to", 9000, True),
        ("lent_to", ["9000, 9001"], True),
        ("lent_to", {"by": "aaaaaaaa-abcd-cafe-babe-aaaaaaaaa999"}, True),
        ("width", 9000, False),
        ("note", "Box 9000", False),
        ("day", "2026-11-29", False),
    ],
)
def test_numbers_may_be_ids_of_records_that_were_not_read(
    listings: Listings, name: str, value: Any, *, may_be: bool
) -> None:
    resources = [
        ids.of for ids in fields_with_ids([{name: value}], [name], listings(**LIBRARY), are_known=False).values()
    ]
    assert resources == ([{}] if may_be else [])


@pytest.mark.parametrize(
    ("value", "is_there"),
    [
        *((text, True) for text in ("aut-72", "see aut-72.", "x-72", "use_42", "?to=USE_42&x", "l/x9", "/L/X9")),
        *((text, True) for text in (UUID_OF_RECORD.upper(), UUID_OF_RECORD.replace("-", ""), f"urn:{UUID_OF_RECORD}")),
        *((text, False) for text in ("aut", "73", "use", UUID_OF_RECORD[:8], "x")),
    ],
)
def test_an_id_that_is_a_text_is_known_by_its_longest_word_with_a_digit(
    tmp_path: Path, value: str, *, is_there: bool
) -> None:
    payloads = [json.dumps({"id": text}) for text in ("aut-72", "use_42", "l/x9", UUID_OF_RECORD)]
    table = pa.table({"id": pa.nulls(len(payloads), pa.int64()), "payload": payloads})
    pq.write_table(table, tmp_path / "authorities")
    listed = {"authorities": RecordListing(tmp_path / "authorities")}
    fields = fields_with_ids([{"about": value}], ["about"], listed)
    assert bool(fields) == is_there
    if value.lower() == UUID_OF_RECORD:
        assert fields["about"].different == 1


@pytest.mark.parametrize(
    "number", ["VXNlcjo0NQ==", "MDQ6VXNlcjQy", "2019.22", "1985-02", "smith", "aut-72", UUID_OF_RECORD]
)
@pytest.mark.parametrize("as_key", [False, True])
def test_a_text_that_is_an_id_is_found_as_value_and_as_key(tmp_path: Path, number: str, *, as_key: bool) -> None:
    """Whatever it looks like: base64, a price, a month, a name."""
    table = pa.table({"id": pa.nulls(1, pa.int64()), "payload": [json.dumps({"id": number})]})
    pq.write_table(table, tmp_path / "users")
    listed = {"users": RecordListing(tmp_path / "users")}
    records = [{"seen": {"by": {number: True} if as_key else number}}]
    texts = text_ids_in(records, listed)
    assert texts == {number}
    assert fields_with_ids(records, ["seen"], listed, text_ids=texts)["seen"].of == {"users": 1}
