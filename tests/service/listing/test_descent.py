"""I4: the way down a list, page by page: what is requested next, what counts as read, and when the proof fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pipelines.service.listing.descent import PAGES_AT_THE_END, SPARE_PAGES, Descent

OLDEST = [1, 3, 5]
"""The first page of a list of nine records with gaps between their ids."""

NEWEST = [17, 15, 13]
"""The first page of the same list, the newest record first."""


def begun(ids: Sequence[int | None], total: int | None, last: int) -> Descent:
    descent = Descent.begin(ids, total, last)
    assert descent is not None
    return descent


@pytest.mark.parametrize(
    ("ids", "total", "last"),
    [
        ([1], 3, 3),
        ([1, None, 3], 9, 3),
        ([1, 2, 3], 3, 1),
        ([1, 2, 3], 9, 4),
        ([1, 3, 2], 9, 3),
        ([1, 1, 2], 9, 3),
        ([3, 2, 1], None, 3),
    ],
    ids=[
        "one record",
        "no id",
        "one page",
        "fewer pages",
        "no order",
        "twice",
        "newest first, no X-Total",
    ],
)
def test_other_lists_have_no_way_down(ids: list[int | None], total: int | None, last: int) -> None:
    assert Descent.begin(ids, total, last) is None


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        (OLDEST, [13, 15, 17], True),
        (OLDEST, [], True),
        (OLDEST, [13, 17, 15], False),
        (OLDEST, [5, 6, 7], False),
        (OLDEST, OLDEST, False),
        (NEWEST, [11, 9, 7], True),
        (NEWEST, [17, 15, 13], True),
        (NEWEST, [19, 15, 13], False),
        (NEWEST, [11, 1, 9], False),
    ],
)
def test_the_second_page_shows_whether_the_list_has_the_order(
    first: list[int], second: list[int | None], *, fits: bool
) -> None:
    """A service that ignores `page` sends the first page again."""
    assert begun(first, 9, 3).fits(second) is fits


def test_pages_that_are_foreseen() -> None:
    """Down to the second page, which is the last one to read; or up to the page that X-Total reaches."""
    oldest_first, newest_first = begun(OLDEST, 9, 3), begun(NEWEST, 9, 3)
    assert [oldest_first.foreseen(number) for number in (3, 2)] == [2, None]
    assert [newest_first.foreseen(number) for number in (1, 2, 3)] == [2, 3, None]
    for number, ids in ((3, [13, 15, 17]), (2, [7, 9, 11])):
        oldest_first.take(number, ids, 9)
    assert oldest_first.foreseen(3) is None, "the walk has ended"


MIDDLE, UPPER = [7, 9, 11], [13, 15, 17]
ENDED = {"next_page": None}


@pytest.mark.parametrize(
    ("first", "total", "last", "pages", "outcome"),
    [
        # without X-Total, only ids without a gap show that no record sank to the oldest page: it is read again
        (
            OLDEST,
            None,
            2,
            [(2, MIDDLE, None), (1, OLDEST, None)],
            ENDED | {"is_sound": True, "has_moved": False, "again": 1},
        ),
        (OLDEST, None, 2, [(2, [6, 9, 11], None)], ENDED),
        # two pages in flight together, and X-Total rose: a deletion may have come between them, unless nothing is missing there
        (OLDEST, 9, 3, [(3, UPPER, 9), (2, MIDDLE, 10, False), (2, MIDDLE, 10)], {"next_page": 1, "again": 1}),
        *(
            (OLDEST, 9, 3, [(3, [low, 14, 16], 9), (2, MIDDLE, 10, False)], {"next_page": 1, "again": 0})
            for low in (12, 11)
        ),
        # an addition that X-Total did not show: a deletion came with it, perhaps between the two
        *(
            (
                *(OLDEST, 9, 3, [(3, UPPER, 9), (2, MIDDLE, 8, in_turn), (1, OLDEST, 8), (3, [15, 17, 19], 8)]),
                ENDED | {"added": 1, "deleted": 2, "is_sound": in_turn},
            )
            for in_turn in (False, True)
        ),
        # one such pair is enough: later pages in their turn do not settle it
        (
            *([1, 3], 8, 4),
            [(4, [13, 15], 8), (3, [9, 11], 8, False), (2, [5, 7], 7), (1, [1, 3], 7), (4, [17], 7), (3, [11, 13], 7)],
            ENDED | {"added": 1, "is_sound": False},
        ),
        # so many records were deleted that the last page is gone, also when the newest one is read again
        (OLDEST, 9, 3, [(3, None, None)], {"next_page": 2, "has_moved": True}),
        (NEWEST, 9, 3, [(2, [11, 9, 7], 9), (3, None, None), (2, [7, 5, 3], 6)], {"next_page": 1, "has_moved": True}),
        (OLDEST, 9, 3, [(3, UPPER, 9), (2, [6, 9, 11], 8), (3, None, None)], {"next_page": 2}),
        # X-Total announces a record that no page has
        (OLDEST, 9, 3, [(3, UPPER, 10), (2, [6, 9, 11], 10), (4, [], 10)], {"deleted": -1, "is_sound": False}),
    ],
)
def test_a_walk_asks_for_the_page_that_proves_more(
    first: list[int], total: int | None, last: int, pages: list[tuple[Any, ...]], outcome: dict[str, Any]
) -> None:
    """Each page in its turn is the one that the walk asks for. `pages`: number, ids or None where it is missing, X-Total, in turn."""
    descent = begun(first, total, last)
    for number, ids, x_total, *together in pages:
        in_turn = together != [False]
        assert not in_turn or descent.next_page == number
        if ids is None:
            descent.take_missing(number)
        else:
            descent.take(number, ids, x_total, in_turn=in_turn)
    assert {name: getattr(descent, name) for name in outcome} == outcome


class TestContradictions:
    """Lists that do not keep the promise of their first page."""

    def test_a_list_that_moves_with_each_page_is_given_up(self) -> None:
        """I13: X-Total is always such that the page begins one record too low."""
        descent, floor = begun(NEWEST, 9, 3), 6
        for _request in range(3 * SPARE_PAGES):
            number = descent.next_page
            if number is None:
                break
            descent.take(number, [], 39 if number == 1 else floor + 3 * (number - 1) - 1)
        assert (descent.next_page, descent.in_order, descent.again) == (None, False, 3 + SPARE_PAGES + 1)

    def test_a_list_that_grows_with_each_page_ends(self) -> None:
        """I13: after so many pages at its end the balance stays open."""
        descent, total = begun(OLDEST, 9, 3), 9
        descent.take(3, [13, 15, 17], 9)
        descent.take(2, [6, 9, 11], 8)
        for _request in range(PAGES_AT_THE_END):
            assert descent.next_page is not None
            total += 3
            descent.take(descent.next_page, [total * 3, total * 3 + 1, total * 3 + 2], total)
        assert (descent.next_page, descent.end_total) == (None, None)
