"""Services whose X-Total is not the number of their records, or that have none: all is read, and nothing unproved is complete (I4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import pytest

from pipelines.errors import PagingLoopError
from tests.backup.runner import backups_of
from tests.service.scripted import Answer, Received

ALL_LINKS, NEXT, NO_LINKS = ("first", "last", "next"), ("next",), ()


class Library:
    """Publications with these ids, in this order. `total`: X-Total, if any; `shown`: the ids that pages have, the others are filtered out.

    `deleted`: an id that goes with the third request.
    """

    def __init__(
        self,
        ids: Sequence[int],
        total: int | None,
        links: Collection[str] = ALL_LINKS,
        shown: Callable[[int], bool] = lambda _: True,
        deleted: int | None = None,
    ) -> None:
        self.ids, self.total, self.links, self.shown, self.deleted = [*ids], total, links, shown, deleted
        self.requests = 0

    def serve(self, request: Received) -> Answer:
        """A page of the list."""
        if not request.path.endswith("/publications"):
            return Answer({}, status=404)
        self.requests += 1
        if self.requests == 3 and self.deleted is not None:
            self.ids.remove(self.deleted)
        size, page = min(int(request.query["per_page"]), 50), int(request.query["page"])
        last = -(-len(self.ids) // size)
        pages = {"first": 1, "last": last} | ({"next": page + 1} if page < last else {})
        address = f"/api/v2/publications?per_page={size}&page="
        links = [f'<{address}{pages[name]}>; rel="{name}"' for name in self.links if name in pages]
        headers = {"link": ", ".join(links)} | ({} if self.total is None else {"x-total": str(self.total)})
        ids = filter(self.shown, self.ids[(page - 1) * size : page * size])
        return Answer({"records": [{"id": number, "title": f"T {number}"} for number in ids]}, headers=headers)


def is_shown(number: int) -> bool:
    """From the second page on, a page is eight records short."""
    return number <= 50 or number % 50 > 8


@pytest.mark.parametrize(
    ("library", "complete", "max_requests"),
    [
        *((Library(range(1, 151), 100, links), False, 8) for links in (ALL_LINKS, NEXT)),
        (Library(range(150, 0, -1), 100), False, 8),
        (Library([2, 1, *range(3, 151)], 100), False, 8),
        (Library(range(1, 151), 50), False, 8),
        *((Library(range(1, 1001), total), False, 45) for total in (1040, 1300, 10**6)),
        (Library(range(1, 501), 419, shown=is_shown), True, 12),
        (Library(range(1, 501), 420, shown=is_shown), False, 24),
        (Library(range(1, 501), 499, shown=lambda number: number != 7), True, 12),
        (Library(range(1, 501), None, deleted=10), True, 14),
        *((Library(range(1, 501), None, links, deleted=10), True, 34) for links in (NEXT, NO_LINKS)),
        *((Library([2, 1, *range(3, 151)], None, links), True, 8) for links in (ALL_LINKS, NEXT, NO_LINKS)),
    ],
    ids=[
        *(
            "too small",
            "too small, next alone",
            "too small, newest first",
            "too small, in no order",
            "one page of three",
        ),
        *("a page too large", "too large", "absurd"),
        *("filtered after paging", "filtered, and one too many", "the first page is short"),
        "none, and a deletion while it is read",
        *(f"none, {links}, and a deletion while it is read" for links in ("next alone", "no links")),
        *(f"none, {links}, in no order" for links in ("all links", "next alone", "no links")),
    ],
)
def test_every_record_is_read_whatever_x_total_says(
    tmp_path: Path, library: Library, complete: bool, max_requests: int
) -> None:
    """While `next` leads further, there is more (service.md#lists)."""
    with backups_of(tmp_path, library.serve) as (runner, _server):
        snapshot = runner.back_up()
    ids = {row["id"] for row in runner.raw_rows(snapshot)}
    facts = snapshot.manifest.resources["publications"]
    assert {*filter(library.shown, library.ids)} - ids == set()
    assert (facts.complete, bool(facts.problems)) == (complete, not complete)
    assert library.requests <= max_requests


def test_a_ring_of_links_ends(tmp_path: Path) -> None:
    """Although no page is like one before: records without an id, and addresses that are signed anew."""
    requests = list[int]()

    def serve(request: Received) -> Answer:
        if not request.path.endswith("/publications"):
            return Answer({}, status=404)
        requests.append(page := int(request.query["page"]))
        address = f"/api/v2/publications?per_page=50&page={page % 3 + 1}"
        records = [{"cover": f"https://storage/c?X-Amz-Signature={len(requests)}{number:062}"} for number in range(50)]
        return Answer({"records": records}, headers={"link": f'<{address}>; rel="next"'})

    with backups_of(tmp_path, serve) as (runner, _server), pytest.raises(PagingLoopError):
        runner.back_up()
    assert len(requests) < 10


@pytest.mark.parametrize(
    "hint", [{"next_cursor": "b2"}, {"has_more": True}, {"meta": {"endCursor": "b2"}}, {"links": {"next": "/api?c=2"}}]
)
@pytest.mark.parametrize("says", [True, False])
def test_a_page_that_says_that_more_follows_is_not_the_list(
    tmp_path: Path, hint: dict[str, object], *, says: bool
) -> None:
    """Of a service with cursors that ignores `page`, each page is the first one; without such a word it is a list without pages."""
    empty_hint = {name: dict.fromkeys(value) if isinstance(value, dict) else None for name, value in hint.items()}
    body = {"records": [{"id": number} for number in range(1, 31)], **(hint if says else empty_hint)}

    def serve(request: Received) -> Answer:
        return Answer(body) if request.path.endswith("/publications") else Answer({}, status=404)

    with backups_of(tmp_path, serve) as (runner, _server):
        if says:
            with pytest.raises(PagingLoopError):
                runner.back_up()
        else:
            assert runner.back_up().manifest.complete
