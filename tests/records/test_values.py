"""Values of any record: what counts as a whole number."""

from __future__ import annotations

import pytest

from pipelines.records.values import whole_number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7),
        ("7", 7),
        ("007", 7),
        ("9" * 18, int("9" * 18)),
        ("1" + 18 * "0", None),
        (2**63 - 1, 2**63 - 1),
        (2**63, None),
        (-(2**63), -(2**63)),
        (True, None),
        (7.0, None),
        ("-7", None),
        ("٧", None),
        (" 7", None),
        ("", None),
        (None, None),
    ],
)
def test_what_is_a_whole_number(value: object, number: int | None) -> None:
    """An integer of JSON that a column of 64 bits holds, or its digits as text."""
    found = whole_number(value)
    assert (found, type(found)) == (number, type(number))
