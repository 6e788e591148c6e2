"""The way down a list, from its newest record to its oldest: the one direction in which no record can slip past the reader (I4).

Ids grow along such a list, or shrink: people add records at one end and delete them anywhere. Count the place of each record from the other
end. An addition changes no place, and a deletion only lowers places. A reader that goes down meets every record at its place or below, so
each record that lives throughout is read, whatever happens between two requests, even if X-Total stands still.

Pure: nothing here sends a request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum, auto
from math import ceil
from operator import lt

PAGES_REMEMBERED = 16
"""Pages whose ids are remembered: a record that comes again from further away contradicts the order."""

PAGES_AT_THE_END = 40
"""Pages that are read again at most for the balance: it covers 2,000 records that people add meanwhile."""

SPARE_PAGES = 100
"""Pages that a walk may read again, in addition to all its pages once, before it ends without a proof (I13)."""


class _Phase(Enum):
    DOWN = auto()
    OLDEST = auto()
    """The oldest page was read before its turn, and is read again."""
    NEWEST = auto()
    """The newest pages are read again: they show how many records were added, and so how many were deleted."""
    DONE = auto()


class Descent:
    """The state of a walk down a list. Request `next_page` and hand it to `take`, until `next_page` is `None`.

    Take the first page, which says where the list ends, with `begin`.
    """

    def __init__(self, ids: Sequence[int], total: int | None, last: int) -> None:
        self._newest_first, self.page_size = ids[0] > ids[-1], len(ids)
        self._first_total = self._total = total
        self._phase, self._last, self._pages = _Phase.DOWN, last, last
        self._floor = (total or 0) if self._newest_first else self.page_size * last
        """The lowest place that was read. Places count from the oldest record, which has 0."""
        self._early = frozenset[int]() if self._newest_first else frozenset(ids)
        """The ids of the oldest page, which was read before its turn."""
        self._recent: deque[Sequence[int]] = deque(maxlen=PAGES_REMEMBERED)
        self._low: int | None = None
        """The lowest id on the way down."""
        self._distinct = len(self._early)
        self.total_changed = self._overlaps = self._unordered = False
        """X-Total changed; records came again; nothing shows the order in which two pages were served that were in flight together."""
        self._rises = 0
        """Records by which X-Total rose on the way down, change by change."""
        self._start: int | None = None
        self._newest = 0
        """Records of the list, and the highest id, when the way down began."""
        self._added: set[int] = set()
        """Higher ids: those of `PAGES_AT_THE_END` pages at most."""
        self.end_total: int | None = None
        """X-Total when the newest page was read again; `None` if it was not."""
        self._at_the_end = 0
        self.in_order = True
        """Whether no page contradicts the order of the list."""
        self.again = 0
        """Pages that were read again."""
        if self._newest_first:
            self.take(1, ids, total)

    @classmethod
    def begin(cls, ids: Sequence[int | None], total: int | None, last: int) -> Descent | None:
        """Return the way down a list with this first page and so many pages; `None` if its ids neither grow nor shrink.

        A list with its newest record first needs X-Total, because its pages are counted from the newest record.
        """
        numbers = [record_id for record_id in ids if record_id is not None]
        if len(numbers) < max(2, len(ids)) or last == 1 or (total is not None and ceil(total / len(numbers)) != last):
            return None
        if _grows(numbers) or (total is not None and _grows(numbers[::-1])):
            return cls(numbers, total, last)
        return None

    def fits(self, ids: Sequence[int | None]) -> bool:
        """Whether the second page of the walk has the order that the first one promised."""
        numbers = [record_id for record_id in ids if record_id is not None]
        if len(numbers) < len(ids) or not _grows(numbers[::-1] if self._newest_first else numbers):
            return False
        return not numbers or (numbers[0] <= self._newest if self._newest_first else numbers[0] > max(self._early))

    @property
    def next_page(self) -> int | None:
        """The number of the next page; `None` at the end of the walk."""
        match self._phase:
            case _Phase.DOWN:
                return self._page_at(self._floor - 1)
            case _Phase.OLDEST:
                return 1
            case _Phase.NEWEST:
                return self._last
            case _Phase.DONE:
                return None

    @property
    def unread(self) -> tuple[int, int]:
        """The first and the last place that the way down has not reached, as the list counts them: from 1, on its first page."""
        total = self._total or 0
        return (total - self._floor + 1, total) if self._newest_first else (self.page_size + 1, self._floor)

    def foreseen(self, number: int) -> int | None:
        """Return the page after this one, if nothing changes; `None` if that is uncertain."""
        if self._phase is not _Phase.DOWN:
            return None
        if self._newest_first:
            return number + 1 if number * self.page_size < (self._total or 0) else None
        return number - 1 if number > 2 else None  # noqa: PLR2004  page 1 was read before its turn

    @property
    def is_quiet(self) -> bool:
        """Whether nothing shows that a record was added or deleted, and every record came that X-Total announced, or cannot be sent."""
        return not self.has_moved and self._distinct == self._total

    @property
    def has_moved(self) -> bool:
        """Whether X-Total or the places of records changed."""
        return self.total_changed or self._overlaps

    @property
    def is_sound(self) -> bool:
        """Whether each record that lived throughout was read: the pages agree with the order of the list, and the balance is possible."""
        if not self.in_order or (self._unordered and len(self._added) > self._rises):
            return False
        growth = max(self._added, default=self._newest) - self._newest
        return self.end_total is None or (self.deleted >= 0 and self._rises <= growth)

    @property
    def added(self) -> int:
        """Records that were added since the first page, and are there at the end."""
        return (
            len(self._added) + max(0, (self._start or 0) - (self._first_total or 0))
            if self.end_total is not None
            else 0
        )

    @property
    def deleted(self) -> int:
        """Records of the beginning that were deleted."""
        return (self._first_total or 0) + self.added - self.end_total if self.end_total is not None else 0

    def take(
        self, number: int, ids: Sequence[int | None], total: int | None, *, in_turn: bool = True, lacking: int = 0
    ) -> None:
        """Note a page. `in_turn`: it was requested after the page before it had arrived; `lacking`: its records that cannot be sent."""
        numbers = [record_id for record_id in ids if record_id is not None]
        rose = self._see(total)
        match self._phase:
            case _Phase.DOWN:
                follows = in_turn or self._follows(numbers)
                if self._above(number) < self._floor or (rose and not follows):
                    self._read_again()
                else:
                    self._unordered |= not follows
                    self._distinct += lacking
                    self._note(numbers, complete=len(numbers) == len(ids))
                    self._lower(number)
            case _Phase.OLDEST:
                self.again += 1
                self._note(numbers, complete=len(numbers) == len(ids))
                self._phase = _Phase.DONE if self._total is None else self._to_newest()
            case _Phase.NEWEST:
                self.again += 1
                self._note_newest(number, numbers)

    def take_missing(self, number: int) -> None:
        """Note that the service has no such page any more: so many records were deleted."""
        remaining = self.page_size * (number - 1)
        if self._phase is _Phase.NEWEST:
            self._last = max(1, number - 1)
        elif self._newest_first:
            self._see(min(remaining, self._total or 0))
        else:
            self.total_changed, self._floor = True, min(self._floor, remaining)

    def _page_at(self, place: int) -> int:
        if self._newest_first:
            return max(0, (self._total or 0) - 1 - place) // self.page_size + 1
        return place // self.page_size + 1

    def _see(self, total: int | None) -> bool:
        """Note X-Total; return whether it rose."""
        if total is None or self._total is None:
            return False
        rise = total - self._total
        self.total_changed |= rise != 0
        self._rises += max(0, rise) if self._start is not None else 0
        self._total, self._floor = total, min(self._floor, total)  # no record has a higher place any more
        return rise > 0

    def _follows(self, ids: Sequence[int]) -> bool:
        """Whether no record can be missing between this page and the one before it: they overlap, or their ids are consecutive."""
        return self._low is None or (bool(ids) and max(ids) >= self._low - 1)

    def _note(self, ids: Sequence[int], *, complete: bool) -> None:
        """Compare the ids with those above, and count the new ones."""
        low = self._low
        self.in_order &= complete and _grows(ids[::-1] if self._newest_first else ids)
        fresh = [number for number in ids if number not in self._early and (low is None or number < low)]
        if len(fresh) < len(ids):
            self._overlaps |= self._phase is _Phase.DOWN
            repeated_ids = set(ids).difference(fresh, self._early, *self._recent)
            remembered = max((max(page) for page in self._recent if page), default=0)
            self.in_order &= all(number > remembered for number in repeated_ids)
        if fresh:
            self._low = min(fresh)
            self.in_order &= self._low > max(self._early, default=0)
        self._distinct += len(fresh)
        self._recent.append(ids)

    def _above(self, number: int) -> int:
        """Return the place above the records of a page, by the newest X-Total."""
        return (self._total or 0) - self.page_size * (number - 1) if self._newest_first else self.page_size * number

    def _lower(self, number: int) -> None:
        """Lower the floor to the end of a page; the next phase begins at the end of the way."""
        above = self._above(number)
        if self._start is None and self._recent[-1]:
            self._newest = max(self._recent[-1])
            self._start = above if self._total is None else min(self._total, above)
        self._floor = min(self._floor, above - self.page_size)
        if self._floor <= (0 if self._newest_first else self.page_size):
            self._phase = self._after_the_way_down()

    def _read_again(self) -> None:
        """Leave the floor where it is: a gap may be between this page and the one above it."""
        self.again += 1
        if self.again > self._pages + SPARE_PAGES:
            self.in_order, self._phase = False, _Phase.DONE

    def _after_the_way_down(self) -> _Phase:
        if self.is_quiet or not self.in_order:
            return _Phase.DONE
        if self._early and (self._low is None or self._low > max(self._early) + 1):
            return _Phase.OLDEST  # a record may have sunk to the oldest page after that was read
        return _Phase.DONE if self._total is None else self._to_newest()

    def _to_newest(self) -> _Phase:
        self._last = self._newest_page()
        return _Phase.NEWEST

    def _newest_page(self) -> int:
        return 1 if self._newest_first else max(1, ceil((self._total or 0) / self.page_size))

    def _note_newest(self, number: int, ids: Sequence[int]) -> None:
        """Collect the ids above the highest of the beginning, page by page down to that one."""
        self._added.update(record_id for record_id in ids if record_id > self._newest)
        self._at_the_end += 1
        if self._at_the_end >= PAGES_AT_THE_END:
            self._phase = _Phase.DONE
        elif self.end_total is None and number != self._newest_page():
            self._last = self._newest_page()  # the list grew or shrank by a page meanwhile
        else:
            self.end_total = self._total if self.end_total is None else self.end_total
            if min(ids, default=0) > self._newest and (self._newest_first or number > 1):
                self._last = number + 1 if self._newest_first else number - 1
            else:
                self._phase = _Phase.DONE


def _grows(ids: Sequence[int]) -> bool:
    return all(map(lt, ids, ids[1:]))
