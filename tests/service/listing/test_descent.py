"""I4: the way down a list, page by page: what is requested next, what counts as read, and when the proof fails."""

from __future__ import annotations

from collections.abc import Sequence

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


def test_without_x_total_the_oldest_page_is_read_again() -> None:
    """Only ids without a gap show that no record sank to it."""
    descent = begun(OLDEST, None, 2)
    descent.take(2, [7, 9, 11], None)
    assert descent.next_page == 1
    descent.take(1, OLDEST, None)
    assert (descent.next_page, descent.is_sound, descent.has_moved, descent.again) == (None, True, False, 1)
    adjacent = begun(OLDEST, None, 2)
    adjacent.take(2, [6, 9, 11], None)
    assert adjacent.next_page is None


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


class TestInFlightTogether:
    """Two pages that were requested together may be served in any order: then a record can slip from the one to the other."""

    def test_a_rise_of_x_total_makes_the_page_be_read_again(self) -> None:
        """It may be a deletion before the upper page was served and after the lower one."""
        descent = begun(OLDEST, 9, 3)
        descent.take(3, [13, 15, 17], 9)
        descent.take(2, [7, 9, 11], 10, in_turn=False)
        assert (descent.next_page, descent.again) == (2, 1)
        descent.take(2, [7, 9, 11], 10)
        assert descent.next_page == 1

    @pytest.mark.parametrize("upper", [[12, 14, 16], [11, 14, 16]], ids=["no gap", "an overlap"])
    def test_pages_without_a_gap_need_no_order(self, upper: list[int]) -> None:
        """Nothing can be missing between them."""
        descent = begun(OLDEST, 9, 3)
        descent.take(3, upper, 9)
        descent.take(2, [7, 9, 11], 10, in_turn=False)
        assert (descent.next_page, descent.again) == (1, 0)

    @pytest.mark.parametrize(("in_turn", "sound"), [(False, False), (True, True)])
    def test_an_addition_that_x_total_did_not_show_leaves_it_open(self, *, in_turn: bool, sound: bool) -> None:
        """A deletion came with it, perhaps between the two."""
        descent = begun(OLDEST, 9, 3)
        descent.take(3, [13, 15, 17], 9)
        descent.take(2, [7, 9, 11], 8, in_turn=in_turn)
        descent.take(1, OLDEST, 8)
        descent.take(3, [15, 17, 19], 8)
        assert descent.next_page is None
        assert (descent.added, descent.deleted, descent.is_sound) == (1, 2, sound)

    def test_one_open_pair_is_enough(self) -> None:
        """Later pages in their turn do not settle it."""
        descent = begun([1, 3], 8, 4)
        descent.take(4, [13, 15], 8)
        descent.take(3, [9, 11], 8, in_turn=False)
        descent.take(2, [5, 7], 7)
        descent.take(1, [1, 3], 7)
        descent.take(4, [17], 7)
        assert descent.next_page == 3
        descent.take(3, [11, 13], 7)
        assert (descent.next_page, descent.added, descent.is_sound) == (None, 1, False)


class TestMovement:
    """Records that are added or deleted during the walk."""

    def test_a_missing_last_page(self) -> None:
        """So many records were deleted that it is gone."""
        oldest_first = begun(OLDEST, 9, 3)
        oldest_first.take_missing(3)
        assert (oldest_first.next_page, oldest_first.has_moved) == (2, True)
        newest_first = begun(NEWEST, 9, 3)
        newest_first.take(2, [11, 9, 7], 9)
        newest_first.take_missing(3)
        assert newest_first.next_page == 2
        newest_first.take(2, [7, 5, 3], 6)
        assert (newest_first.has_moved, newest_first.next_page) == (True, 1)

    def test_a_missing_page_at_the_end(self) -> None:
        """The page before it is the newest one then."""
        descent = begun(OLDEST, 9, 3)
        descent.take(3, [13, 15, 17], 9)
        descent.take(2, [6, 9, 11], 8)
        descent.take_missing(3)
        assert descent.next_page == 2


class TestContradictions:
    """Lists that do not keep the promise of their first page."""

    def test_more_records_than_were_there(self) -> None:
        """X-Total announces a record that no page has."""
        descent = begun(OLDEST, 9, 3)
        descent.take(3, [13, 15, 17], 10)
        descent.take(2, [6, 9, 11], 10)
        descent.take(4, [], 10)
        assert descent.deleted < 0
        assert not descent.is_sound

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
