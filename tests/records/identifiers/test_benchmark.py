"""The benchmark measures what it says: every kind of identifier, on the real records."""

from __future__ import annotations

from benchmarks.identifiers import library, measure
from tests.records.identifiers.texts import FIELDS


def test_the_benchmark_measures_every_kind() -> None:
    figures = measure(library()[:400], runs=1, rounds=1)
    assert figures["records"] == 400
    assert figures["values"] > 300
    assert list(figures["records_per_second"]) == [
        "all identifiers",
        *(f"only filled {field}" for field in FIELDS),
        "python-stdnum, ISBN and ISSN",
    ]
