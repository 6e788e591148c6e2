"""service.md#lists: the paging headers, the next page, and loops."""

from __future__ import annotations

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import PagingLoopError, ProtocolError
from pipelines.service.http import paging
from pipelines.service.http.paging import LoopGuard, PagingHeaders, Route, read_paging_headers, same_page

PAGE = httpx.URL("https://library.example.org/api/v2/publications?per_page=50&page=3")


def paging_headers(link: str = "", total: str | None = None, url: httpx.URL = PAGE) -> PagingHeaders:
    headers = [(b"Link", link.encode()), *([] if total is None else [(b"X-Total", total.encode())])]
    return read_paging_headers(httpx.Response(200, headers=headers), url, 50)


def page(number: int) -> httpx.URL:
    return PAGE.copy_set_param("page", number)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ('<https://library.example.org/api/v2/publications?per_page=50&page=4>; rel="next"', page(4)),
        ("<?per_page=50&page=4>; rel=next", page(4)),
        ("</api/v2/publications?per_page=50&page=4>;rel=next", page(4)),
        ("<publications?per_page=50&page=4> ; REL = NEXT", page(4)),
        ("<//library.example.org/api/v2/publications?per_page=50&page=4>; title=x; rel=next", page(4)),
        ('<?x>; rel="first", <?per_page=50&page=4>; rel="next", <?y>; rel="last"', page(4)),
        ('<?per_page=50&page=4>; rel="last next"', page(4)),
        ("<?per_page=50&page=4#records>; rel=next", page(4)),
        ("<?page=4>; rel=next", httpx.URL(f"{PAGE.copy_with(query=None)}?page=4&per_page=50")),
        ("<?per_page=50&page=4>; rel=next, <?per_page=50&page=9>; rel=next", page(4)),
        (
            "<?a=1;b,c=2&per_page=50&page=4>; rel=next",
            httpx.URL(f"{PAGE.copy_with(query=None)}?a=1;b,c=2&per_page=50&page=4"),
        ),
        ("<?cursor=a%20b>; rel=next", httpx.URL(f"{PAGE.copy_with(query=None)}?cursor=a%20b")),
        ('<?per_page=50&page=2>; rel="prev"', None),
        ("</style.css>; rel=preload", None),
        ("<?page=4>; title=next", None),
        ("<?page=4>", None),
        ("?page=4; rel=next", None),
        ("<?page=4; rel=next", None),
        (">;<;=,rel", None),
        ("", None),
    ],
)
def test_next_is_read_from_link(link: str, expected: httpx.URL | None) -> None:
    """service.md#lists: `Link` has first, previous, next and last; RFC 8288 allows every one of these spellings."""
    assert paging_headers(link).next == expected


def test_a_link_that_names_a_page_but_no_size_means_our_pages() -> None:
    """I4: page 4 of 25 records is not page 4 of 50 records; records would come twice."""
    assert dict(paging_headers("<?page=4>; rel=next").next.params) == {"page": "4", "per_page": "50"}  # type: ignore[union-attr]


@pytest.mark.parametrize("link", ["", "</style.css>; rel=preload", "<?page=4>; title=next", "nonsense"])
def test_a_link_header_about_something_else_is_none_about_pages(link: str) -> None:
    """I4: a proxy that adds `preload` must not end the listing after its first page."""
    assert not paging_headers(link).linked


def test_a_link_header_without_next_is_the_last_page() -> None:
    """service.md#lists: while there is a next link, more pages remain."""
    last = paging_headers('<?page=1>; rel="first"')
    assert last.linked
    assert Route().after(last) is None


@pytest.mark.parametrize("link", ["http://library.example.org:port/", "http://h\x01/", "?" + "x" * 70_000])
def test_an_address_that_cannot_be_understood_is_one_clear_error(link: str) -> None:
    """I13: no uncaught exception of a library."""
    with pytest.raises(ProtocolError, match="address cannot be understood") as caught:
        paging_headers(f"<{link}>; rel=next")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ('<?x>; title="<?page=9>; rel=next"; rel=first, <?per_page=50&page=4>; rel=next', page(4)),
        ('<?page=9>; rel=next; anchor="https://elsewhere.example/", <?per_page=50&page=4>; rel=next', page(4)),
        ('<?page=9>; rel=next; anchor="#records", <?per_page=50&page=4>; rel=next', page(4)),
        ('<?page=9>; rel=next; anchor="http://[", <?per_page=50&page=4>; rel=next', page(4)),
        ('<?per_page=50&page=4>; rel=next; anchor=""', page(4)),
        (f'<?per_page=50&page=4>; rel=next; anchor="{PAGE.copy_set_param("page", 3)}"', page(4)),
        ('<?per_page=50&page=4>; rel=next; anchor="?page=3&per_page=50"', page(4)),
        ('<?page=9>; rev=next, <?per_page=50&page=4>; rel="https://relations.example/next next"', page(4)),
        ('<?page=9>; rel="https://relations.example/next"', None),
    ],
)
def test_only_a_link_from_this_page_leads_to_the_next(link: str, expected: httpx.URL | None) -> None:
    """RFC 8288, 3.2 and 3.3: `anchor` names another start, `rev` the other direction, an address another relation."""
    assert paging_headers(link).next == expected


@pytest.mark.parametrize(
    ("link", "following"),
    [
        ('<?page=1>; rel="first", <?per_page=50&page=4; rel="next"', page(4)),
        ('<?page=1>; rel="first", <?per_page=50&page=9>; title="x; rel="next"', page(4)),
        ('oops, <?page=1>; rel="first"', page(4)),
        ('oops, <?per_page=50&page=7>; rel="next"', page(7)),
    ],
)
def test_a_garbled_link_header_does_not_end_the_list(link: str, following: httpx.URL) -> None:
    """I4: the part that was lost may have named the next page, so pages are counted as without the header."""
    found = read_paging_headers(httpx.Response(200, headers=[("Link", link)]), PAGE, 50)
    assert Route().after(found) == following


def test_links_in_several_header_lines() -> None:
    """RFC 9110, 5.3: the lines of one name are one list."""
    lines = [
        ("Link", '</style.css>; rel="preload"'),
        ("link", "<?per_page=50&page=4>; rel=next"),
        ("LINK", "<?page=9>; rel=last"),
    ]
    found = read_paging_headers(httpx.Response(200, headers=lines), PAGE, 50)
    assert (found.next, found.last) == (page(4), 9)


@pytest.mark.parametrize(
    ("lines", "total", "contradiction"),
    [
        (["5"], 5, ""),
        (["5", "5"], 5, ""),
        (["5, 5"], 5, ""),
        (["5", "05 "], 5, ""),
        (["5", ""], 5, ""),
        (["5", "7"], None, "5, 7"),
        (["5, 7"], None, "5, 7"),
        (["5,7", "5"], None, "5, 7"),
        (["5", "many"], None, "5, many"),
        (["many"], None, ""),
    ],
)
def test_contradicting_totals_are_named_and_none_is_chosen(
    lines: list[str], total: int | None, contradiction: str
) -> None:
    """service.md#lists: `X-Total` is one number. Equal lines are fine; of different ones, none is believed (I4)."""
    found = read_paging_headers(httpx.Response(200, headers=[("X-Total", line) for line in lines]), PAGE, 50)
    assert (found.total, found.contradiction) == (total, contradiction)


def test_thousands_of_links_are_read_in_no_time() -> None:
    """I13: a header is 100 kB at most, and is parsed once."""
    header = ", ".join(f'<?page={number}>; rel="x{number}"' for number in range(4000)) + ", <?page=4>; rel=next"
    assert paging_headers(header).next is not None
    assert paging_headers("<" * 100_000).next is None
    assert paging_headers("<>;" + " " * 100_000).next is None


@given(st.text(st.sampled_from('<>;, ="relnxtpag?/&1\\\x7f:'), max_size=60))
def test_any_link_header_is_understood_or_one_clear_error(header: str) -> None:
    """I13: page links from outside are untrusted."""
    try:
        found = paging_headers(header)
    except ProtocolError:
        return
    assert found.next is None or found.linked


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), (" 120 ", 120), ("999999999999999", 999_999_999_999_999)]
    + [(text, None) for text in ("", "-5", "+5", "1e3", "1,234", "1.0", "many", "٣", "9" * 16, "9" * 5000, None)],
)
def test_x_total_is_a_number_or_nothing(text: str | None, expected: int | None) -> None:
    """service.md#lists: `X-Total` is the number of entries; any other text counts as not sent."""
    assert paging_headers(total=text).total == expected


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("<?per_page=50&page=12>; rel=last", 12),
        ("<?page=12#end>; rel=last", 12),
        ("<?per_page=12>; rel=last", None),
        ("<?page=-1>; rel=last", None),
        ("<?page=99999999999999999999>; rel=last", None),
        ("<http://[>; rel=last", None),
    ],
)
def test_the_number_of_the_last_page(link: str, expected: int | None) -> None:
    """`last` is used for foreseeing pages, never for reaching them: an odd value is no error."""
    assert paging_headers(link).last == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://h/p?page=2&per_page=50", "http://h/p?per_page=50&page=2", True),
        ("http://h/p?q=a%20b&page=2", "http://h/p?q=a+b&page=2", True),
        ("http://h:80/p?page=2", "http://H/p?page=2", True),
        ("http://h/p?page=2", "http://h/p?page=3", False),
        ("http://h/p?page=2", "http://h/q?page=2", False),
        ("http://h/p?page=2", "https://h/p?page=2", False),
        ("http://h/p?page=2", "http://h/p?page=2&cursor=x", False),
    ],
)
def test_a_page_is_the_same_however_its_address_is_written(one: str, other: str, same: bool) -> None:
    """As few requests as pages: a prefetched page is the next one even if Link orders the parameters differently."""
    assert same_page(httpx.URL(one), httpx.URL(other)) is same


def foreseen(route: Route, url: httpx.URL | None) -> list[int]:
    """Returns the numbers of the pages after `url`, as far as they are foreseen."""
    found = []
    while url is not None and (url := route.foreseen(url)) is not None:
        found.append(paging.page_number(url))
    return found  # type: ignore[return-value]


def walk(route: Route, **says: object) -> httpx.URL | None:
    return route.after(PagingHeaders(**{"url": page(1), "records": 50, **says}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ({"total": 230}, [3, 4, 5]),
        ({"total": 250}, [3, 4, 5]),
        ({"total": 251}, [3, 4, 5, 6]),
        ({"total": 230, "records": 10}, list(range(3, 24))),
        ({"linked": True, "next": page(2), "last": 4}, [3, 4]),
        ({"linked": True, "next": page(2), "last": 4, "total": 150}, [3]),
        ({"linked": True, "next": page(2), "last": 2, "total": 9999}, []),
        ({"linked": True, "next": page(2)}, []),
        ({"linked": True, "next": page(3), "last": 9}, []),
        ({"linked": True, "next": httpx.URL("https://h/?cursor=x"), "last": 9}, []),
        ({}, []),
    ],
)
def test_pages_are_foreseen_up_to_the_known_end_and_no_further(says: dict[str, object], expected: list[int]) -> None:
    """As few requests as pages: the smaller of X-Total and `last` counts; without both, nothing is foreseen."""
    route = Route()
    assert foreseen(route, walk(route, **says)) == expected


def test_the_end_is_that_of_the_latest_page() -> None:
    """A collection that grows or shrinks is followed."""
    route = Route()
    assert foreseen(route, walk(route, total=200)) == [3, 4]
    assert foreseen(route, walk(route, url=page(2), total=250)) == [4, 5]
    assert foreseen(route, walk(route, url=page(3), total=180)) == []


def test_after_a_surprise_nothing_is_foreseen() -> None:
    """service.md#lists: Link decides; further guesses would waste requests."""
    route = Route()
    walk(route, total=1000)
    route.stop_foreseeing()
    assert foreseen(route, walk(route, url=page(2), total=1000)) == []


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ([{"records": 50, "total": 120}, {"records": 50, "total": 120}, {"records": 20, "total": 120}], [2, 3, None]),
        ([{"records": 10, "total": 25}, {"records": 10, "total": 25}, {"records": 5, "total": 25}], [2, 3, None]),
        ([{"records": 50, "total": 90}, {"records": 40, "total": 95}, {"records": 5, "total": 95}], [2, 3, None]),
        ([{"records": 50, "total": 90}, {"records": 30, "total": 80}], [2, None]),
        ([{"records": 50, "total": 200}, {"records": 0, "total": 200}], [2, None]),
        ([{"records": 50}, {"records": 20}, {"records": 0}], [2, 3, None]),
        ([{"records": 0}], [None]),
        ([{"records": 0, "total": 7}], [None]),
    ],
)
def test_without_link_pages_are_counted(pages: list[dict[str, object]], expected: list[int | None]) -> None:
    """service.md#lists: without `Link`, count pages until `X-Total` is reached; without both, until an empty page."""
    route, found = Route(), []
    for number, says in enumerate(pages, start=1):
        following = walk(route, url=page(number), **says)
        found.append(None if following is None else paging.page_number(following))
    assert found == expected


def records(*ids: object) -> list[msgspec.Raw]:
    return [msgspec.Raw(msgspec.json.encode({"id": one, "url": f"signed {object()}"})) for one in ids]


def test_a_proper_listing_passes_the_guard() -> None:
    guard = LoopGuard()
    for number in range(1, 100):
        guard.check(PagingHeaders(page(number), 2, 198), records(2 * number, 2 * number + 1), page(number + 1))


def test_a_repeated_page_is_a_loop() -> None:
    """I13: a page that repeats the previous one is a loop, although its signed addresses are new."""
    guard = LoopGuard()
    guard.check(PagingHeaders(page(1), 2), records(1, 2), page(2))
    with pytest.raises(PagingLoopError, match=r"repeats an earlier page: .*page=2, page 2 of the walk, with 4 records"):
        guard.check(PagingHeaders(page(2), 2), records(1, 2), page(3))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_circle_of_addresses_is_a_loop(length: int) -> None:
    """I13: A→B→A stops before the first page of the circle is requested again."""
    guard = LoopGuard()
    for number in range(1, length):
        guard.check(PagingHeaders(page(number), 1), records(number), page(number + 1))
    back = httpx.URL(str(page(1)).replace("per_page=50&page=1", "page=1&per_page=50"))
    with pytest.raises(PagingLoopError, match="leads back to a page that was read before"):
        guard.check(PagingHeaders(page(length), 1), records(length), back)


def test_one_empty_page_may_be_followed_but_not_a_second() -> None:
    """I13: a service that filters after paging may send an empty page; a service that sends only empty pages would do so for ever."""
    guard = LoopGuard()
    guard.check(PagingHeaders(page(1), 0), [], page(2))
    guard.check(PagingHeaders(page(2), 1), records(1), page(3))
    guard.check(PagingHeaders(page(3), 0), [], page(4))
    with pytest.raises(PagingLoopError, match="goes on after 2 pages without records"):
        guard.check(PagingHeaders(page(4), 0), [], page(5))


def test_two_empty_pages_may_end_a_listing() -> None:
    guard = LoopGuard()
    guard.check(PagingHeaders(page(1), 0), [], page(2))
    guard.check(PagingHeaders(page(2), 0), [], None)


def test_a_listing_far_beyond_its_own_count_is_endless() -> None:
    """I13: always new records, far more than X-Total."""
    guard, read = LoopGuard(), 0
    with pytest.raises(PagingLoopError, match="far beyond its own count"):  # noqa: PT012  it happens on some page
        for number in range(1, 1000):
            read += 50
            guard.check(PagingHeaders(page(number), 50, 100), records(*range(read - 50, read)), page(number + 1))
    assert read <= 2 * 100 + 11 * 50


def test_a_listing_without_count_ends_some_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: always new records, no X-Total."""
    monkeypatch.setattr(paging, "MAX_PAGES", 100)
    guard = LoopGuard()
    with pytest.raises(PagingLoopError, match="goes on without end"):  # noqa: PT012  it happens on some page
        for number in range(1, 1000):
            guard.check(PagingHeaders(page(number), 1), records(number), page(number + 1))


@pytest.mark.parametrize("record", [b"{}", b'{"id": null}', b"17", b'"x"', b"null", b"[" * 100_000, b'{"id": '])
def test_records_without_an_id_are_identified_by_their_content(record: bytes) -> None:
    """I13: a record of any shape passes; the same page again does not."""
    guard = LoopGuard()
    guard.check(PagingHeaders(page(1), 1), [msgspec.Raw(record)], page(2))
    guard.check(PagingHeaders(page(2), 1), [msgspec.Raw(b'{"title": "another"}')], page(3))
    with pytest.raises(PagingLoopError, match="repeats"):
        guard.check(PagingHeaders(page(3), 1), [msgspec.Raw(record)], page(4))
