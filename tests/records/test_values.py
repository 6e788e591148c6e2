"""Values of any record: what is a date."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.records.forms import form_of
from pipelines.records.values import partial_date


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("7/19/2018", "2018-07-19"),
        ("19/7/2018", "2018-07-19"),
        ("19.07.2018", "2018-07-19"),
        ("5/5/2018", "2018-05-05"),
        ("2018/7/19", "2018-07-19"),
        ("2018-7-9", "2018-07-09"),
        ("2018-07-19T00:00:00Z", "2018-07-19"),
        ("\t7/19/2018\u00a0", "2018-07-19"),
        ("20180719", "2018-07-19"),
        ("July 19, 2018", "2018-07-19"),
        ("19th July, 2018", "2018-07-19"),
        ("19-Jul-2018", "2018-07-19"),
        ("Sept. 1, 2018", "2018-09-01"),
        ("2018-Jul-09", "2018-07-09"),
        ("Feb 29, 2020", "2020-02-29"),
        ("Feb 29, 2019", None),
        ("19 Juli 2018", None),
        ("July 19, 18", None),
        ("19-20 July 2018", None),
        ("2018 Jul-Aug", None),
        ("19 July 2018 2019", None),
        ("Summer 19, 2018", None),
        ("19.ſep.2018", None),
        ("19072018", None),
        ("201807", None),
        ("20180719T000000", None),
        ("[2018]", None),
        ("0000-00-00", None),
        ("2018-07-19T22:00:00Z", None),
        ("2018/7", None),
        ("2/3/2018", None),
        ("12-11-2018", None),
        ("31/4/2018", None),
        ("7/19/18", None),
        ("7/19-2018", None),
        ("٧/١٩/٢٠١٨", None),
        ("2018-19-07", None),
    ],
)
def test_a_date_with_one_reading_is_sent(text: str, day: str | None) -> None:
    """A date with two readings, or none, is left out and listed (I6)."""
    reading = partial_date(text)
    assert (reading and (reading.first.isoformat(), reading.precision)) == (day and (day, "day"))
    form = form_of({"id": 1, "published_on": text})
    assert form.fields.get("published_on") == day
    assert form.unsent.get("published_on") == (None if day else text)


@pytest.mark.parametrize("text", ["2018-07", " 2018-07", "July 2018", "Jul. 2018", "jul-2018", "2018 Jul"])
def test_a_month_is_no_day(text: str) -> None:
    reading = partial_date(text)
    assert reading == (date(2018, 7, 1), "month")
    assert form_of({"id": 1, "published_on": text}).unsent == {"published_on": text}


@given(
    st.dates(date(1300, 1, 1)),
    st.sampled_from(
        ["%-d %B %Y", "%d-%b-%Y", "%B %-d, %Y", "%b. %d, %Y", "%Y %b %-d", "%Y%m%d", "%Y/%-m/%-d", "\n%Y-%m-%d "]
    ),
)
def test_a_day_in_any_of_these_forms_is_that_day(day: date, form: str) -> None:
    reading = partial_date(day.strftime(form.replace("%Y", f"{day.year:04}")))
    assert reading == (day, "day")
