"""service.md#rate: the request rate, and the counts that prove a client's budget."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.rate_limit import WINDOW_SECONDS, WindowCounter

# Gaps with many edge cases: zero, a whole window, and values between
GAPS = st.one_of(st.just(0.0), st.just(60.0), st.sampled_from([1.0, 20.0, 30.0, 59.5]), st.floats(0, 90))
TIMES = st.lists(GAPS, max_size=120).map(lambda gaps: list(accumulate(gaps)))


def window(times: list[float], end: float) -> list[float]:
    return [time for time in times if end - WINDOW_SECONDS < time <= end]


@pytest.mark.long
@given(TIMES)
def test_the_largest_window_equals_counting_every_window(times: list[float]) -> None:
    """`largest` is exactly the largest number of requests in any 60-second window."""
    counter = WindowCounter()
    for time in times:
        counter.add(time)
    assert counter.largest == max((len(window(times, end)) for end in times), default=0)
    assert counter.total == len(times)
