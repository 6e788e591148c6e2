"""What two pages say of a collection that people change between them (I4)."""

from __future__ import annotations

import httpx
import pytest

from pipelines.service.listing.drift import Drift, RecentPages, RememberedPage

URL = httpx.URL("https://library.example.org/api/v2/publications?page=1")


@pytest.fixture
def recent() -> RecentPages:
    """A walk that has read one page, with the records 1 to 3 of 9."""
    pages = RecentPages()
    pages.add(RememberedPage(1, URL, 9, frozenset({1, 2, 3}), 0))
    return pages


@pytest.mark.parametrize(
    ("keys", "total", "drift"),
    [
        ([4, 5, 6], 9, Drift.NONE),
        ([4, 5, 6], None, Drift.NONE),
        ([4, 5, 6], 8, Drift.COUNT_CHANGED),
        ([3, 4, 5], 10, Drift.COUNT_CHANGED),
        ([3, 4, 5], 9, Drift.OVERLAP),
        ([3, 4, 5], None, Drift.OVERLAP),
    ],
)
def test_the_page_after_the_newest(recent: RecentPages, keys: list[int], total: int | None, drift: Drift) -> None:
    """X-Total comes first: it says where to look."""
    assert recent.drift(keys, total) is drift


@pytest.mark.parametrize(
    ("keys", "total", "same"),
    [
        ([1, 2, 3], 9, True),
        ([3, 2, 1], 9, True),
        ([1, 2, 4], 9, False),
        ([1, 2], 9, False),
        ([1, 2, 3], 10, False),
        ([1, 2, 3], None, False),
    ],
)
def test_the_newest_page_read_again(recent: RecentPages, keys: list[int], total: int | None, *, same: bool) -> None:
    """Both its records and X-Total must be the same."""
    assert recent.is_unchanged(keys, total) is same
