"""Values of any record: what counts as a whole number, and what is a date."""

from __future__ import annotations

import pytest

from pipelines.records.forms import form_of
from pipelines.records.values import partial_date, whole_number
from tests.records.version_2 import v2_of


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


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("7/19/2018", "2018-07-19"),
        ("19/7/2018", "2018-07-19"),
        ("07/19/2018", "2018-07-19"),
        ("19.07.2018", "2018-07-19"),
        ("19-7-2018", "2018-07-19"),
        ("7-19-2018", "2018-07-19"),
        ("5/5/2018", "2018-05-05"),
        ("05.05.2018", "2018-05-05"),
        ("2/29/2020", "2020-02-29"),
        ("29.2.2019", None),
        ("2018/7/19", "2018-07-19"),
        ("2018.07.19", "2018-07-19"),
        ("2018-7-9", "2018-07-09"),
        ("2018-07-19T00:00:00Z", "2018-07-19"),
        ("2018-07-19T00:00:00.000Z", "2018-07-19"),
        ("2018-07-19T22:00:00Z", None),
        ("2018/19/7", None),
        ("2018/7-19", None),
        ("2018/7", None),
        ("2/3/2018", None),
        ("02.03.2018", None),
        ("12-11-2018", None),
        ("13/13/2018", None),
        ("31/4/2018", None),
        ("0/19/2018", None),
        ("7/19/18", None),
        ("7/19/0000", None),
        ("7/19-2018", None),
        ("7 19 2018", None),
        ("7/19/20180", None),
        ("٧/١٩/٢٠١٨", None),
        ("2018-19-07", None),
    ],
)
def test_a_date_with_one_reading_is_sent_and_comes_back(text: str, day: str | None) -> None:
    """A date with two readings, or none, is left out; the residue has what was written (I6, I7)."""
    found = partial_date(text)
    assert (found and (found.first.isoformat(), found.precision)) == (day and (day, "day"))
    form = form_of({"id": 1, "published_on": text})
    assert form.fields.get("published_on") == day
    assert form.unsent.get("published_on") == (None if day else text)
    assert v2_of(form.fields, form.residue)["published_on"] == text
