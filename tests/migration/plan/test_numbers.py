"""Fields whose values may lead to records, whatever their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.migration.model.target_reading import RecordListing
from pipelines.migration.plan.numbers import fields_with_ids

Listings = Callable[..., dict[str, RecordListing]]


@pytest.fixture
def listings(tmp_path: Path) -> Listings:
    """Listings with these ids."""

    def write(**resources: Iterable[int]) -> dict[str, RecordListing]:
        for resource, ids in resources.items():
            pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), tmp_path / resource)
        return {resource: RecordListing(tmp_path / resource) for resource in resources}

    return write


@pytest.mark.parametrize(
    ("name", "values", "leads_to"),
    [
        ("shelf", [41, 9000, 9001], None),
        ("shelf", [41, 9000], "publications"),
        ("shelf", [41, 0], "publications"),
        ("shelf", [41, 42.5], None),
        ("shelf", [1, 2, None], "publications"),
        ("shelf", ["book 41", "a note"], None),
        ("shelf", ["Book no. 41", "publication ID: 42", "book\u00a0Nr. #41"], "publications"),
        ("shelf", ["book note 41"], None),
        ("shelf_name", ["Book 41", "Book 42"], None),
        ("label", ["DE-101:120417", "DE-101:120933"], "tasks"),
        ("edition_nr", [1, 2, 3], "publications"),
        ("edition_nr", [1, 2, 1998, 1999, 2000], None),
        ("parts", [[1, 2], [1]], "publications"),
        ("loan_count", [1, 2, 3], None),
        ("pageCount", [1, 2, 3], None),
        ("entries", [[{"position": 1}, {"position": 2}], [{"position": 1}]], None),
        ("entries", [[{"position": 1}, {"position": 2}], [{"position": 3}]], "publications"),
        ("see_also", [[1, 2], [3]], "publications"),
        ("bookNo", [41], "publications"),
        ("borrower", [{"number": 41}], "publications"),
        ("copy_number", [1, 2], "publications"),
        ("place", [{"shelf": [{"work": 41}]}], "publications"),
        ("place", [{"page": 141, "year": [142]}], None),
        ("place", [{"page": 41, "work": 41}], "publications"),
        ("floor", [41], "publications"),
        ("order", [[41, 42]], "publications"),
        ("order", [41, 141, 142], None),
        ("weights", [{"41": 2.5}], "publications"),
        ("per_year", [{"1999": 2.5}], None),
        ("about", [{"kind": "Book", "number": 41}], "publications"),
        ("position", [{"number": 41}], "publications"),
        ("pages_id", [41], "publications"),
        ("home", ["/publications/3", None], "publications"),
        ("home", ["https://library.example.org/api/v2/hard_copies/A-3?x=1"], "hard_copies"),
        ("shelf", [41, 42, 43, -1, "none"], "publications"),
        ("shelf", [41, "seven"], None),
        ("shelf", ["041", "000042"], "publications"),
        ("shelf", ["1/2/3", "/4/5/", "6-7 8"], "publications"),
        ("shelf", ["2026-11-29", "29.11.2026", "11/29/2026"], None),
        ("about", [[["publication", 7], ["publication", 8]]], "publications"),
        ("about", [' {"on": 3}'], "publications"),
        ("about", ["U7", "U0008", "nobody"], "publications"),
        ("about", ["(LIB)000007", "(LIB)000008"], "publications"),
        ("about", ["U7", "V8"], None),
        ("about", ["U7", "U7001", "U7002"], None),
        ("shelf", [41.0, "#42"], "publications"),
        ("see_also", ["41, 42", "7;8"], "publications"),
        ("see_also", ["41, 9000, 9001"], None),
        ("places", [{"41": True, "42": {"since": "May"}}], "publications"),
        ("home", ["gid://app/HardCopy/3"], "hard_copies"),
        ("home", ["user:3"], "users"),
        ("home", ["use:41", "see pub-42"], "publications"),
        ("home", ["of 41", "A-42"], None),
        ("home", ["//library.example.org/books/3", "doi:10.1000/3", "locations: 3", f"a/{'1' * 100_000} "], None),
        ("home", ["https://example.org/publications/3", "/publications/all", "/papers/3"], None),
        ("about", ["see /users/3"], "users"),
        ("about", ['<p>See <a href="/publications/3">this</a>, too.</p>', "a note"], "publications"),
        ("about", ["Bound with record 7, see Amber.", "a note", "another"], "publications"),
        ("about", ["Amber (7)", "Birch #8", "none"], "publications"),
        ("about", ["Amber (7)", "none", "none of these"], None),
        ("about", ["LIB*7*5000", "LIB*8*5000"], "publications"),
        (
            "about",
            [f"https://library.example.org/cgi-bin/koha/opac-detail.pl?biblionumber={number}" for number in (7, 8)],
            "publications",
        ),
        ("about", [{"pub:7": 1}, {"/publications/8": 1}], "publications"),
        ("about", [{"41/7": 1}], "publications"),
        ("fee", ["10.50", "7.20"], None),
        ("about", [7, True, 1.5, 8, 9], "publications"),
        ("about", [True, 7], None),
        ("price", [7, 8, 9.5], None),
        ("about", ["moved from 120417", "a", "b", "c", "by 120933 to 5"], "tasks"),
        ("about", [120417, "a", "b", "c", 120933], "tasks"),
        ("about", [120417, "a", "b", "c"], None),
        ("about", [[120417, 9000, 9001], [120933, 9002, 9003]], "tasks"),
        ("about", ["a 1", "2 b", "3 c 4", "d", "e", "f"], None),
        ("about", ["7 QA 300", "8 QA 301"], "publications"),
        ("about", ["7 p.", "8 p."], None),
        ("about", ["7:15", "8:15"], None),
        ("about", ["7→300", "8→301"], "publications"),
        ("pages", ["p. 7", "p. 8"], None),
    ],
)
def test_a_field_may_lead_to_the_only_resource_that_has_all_of_its_numbers(
    listings: Listings, name: str, values: list[Any], leads_to: str | None
) -> None:
    """Also numbers that several resources have, as those from 1 on are. A quantity may be none of them: then it is one."""
    library = listings(
        publications=range(1, 101), collections=range(1, 21), users=[7000], tasks=range(120_000, 121_000)
    )
    found = fields_with_ids([{"id": 1, name: value} for value in values], [name], library)
    assert {name: resources[0] for name, resources in found.items()} == ({name: leads_to} if leads_to else {})
