"""service.md#lists: the paging headers, the next page, and loops."""

from __future__ import annotations

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import PagingLoopError, ProtocolError
from pipelines.service.http import paging
from pipelines.service.http.paging import LoopGuard, PagingHeaders, Route, read_paging_headers

PAGE = httpx.URL("https://library.example.org/api/v2/publications?per_page=50&page=3")


def paging_headers(link: str = "", total: str | None = None, url: httpx.URL = PAGE) -> PagingHeaders:
    headers = [(b"Link", link.encode()), *([] if total is None else [(b"X-Total", total.encode())])]
    return read_paging_headers(httpx.Response(200, headers=headers), url, 50)


def page(number: int) -> httpx.URL:
    return PAGE.copy_set_param("page", number)


@pytest.mark.parametrize("link", ["", "</style.css>; rel=preload", "<?page=4>; title=next", "nonsense"])
def test_a_link_header_about_something_else_is_none_about_pages(link: str) -> None:
    """I4: a proxy that adds `preload` must not end the listing after its first page."""
    assert not paging_headers(link).linked


@pytest.mark.parametrize("path", ["/api/v2/tasks", "/api/v3/publications", "/api/v2/publications_old", "/api/v2"])
def test_a_page_of_another_list_is_none_of_this_one(path: str) -> None:
    """I4: tasks would be stored as publications, as many as X-Total announces."""
    with pytest.raises(ProtocolError, match=r"a page of another list: .*Nothing was sent there"):
        paging_headers(f"<{path}?per_page=50&page=4>; rel=next")


@pytest.mark.parametrize("path", ["/api/v2/publications/", "/api/v2/publications/page/4", "/api/v2/%70ublications"])
def test_a_page_below_its_list_belongs_to_it(path: str) -> None:
    for url in (PAGE, PAGE.copy_with(path="/api/v2/publications/all")):
        following = paging_headers(f"<{path}?per_page=50&page=4>; rel=next", url=url).next
        assert following is not None
        assert following.params["page"] == "4"


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ('<?x>; title="<?page=9>; rel=next"; rel=first, <?per_page=50&page=4>; rel=next', page(4)),
        ('<?page=9>; rel=next; anchor="https://elsewhere.example/", <?per_page=50&page=4>; rel=next', page(4)),
        ('<?page=9>; rel=next; anchor="#records", <?per_page=50&page=4>; rel=next', page(4)),
        ('<?page=9>; rel=next; anchor="http://[", <?per_page=50&page=4>; rel=next', page(4)),
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
    headers = read_paging_headers(httpx.Response(200, headers=[("Link", link)]), PAGE, 50)
    assert Route().after(headers) == following


@given(st.text(st.sampled_from('<>;, ="relnxtpag?/&1\\\x7f:'), max_size=60))
def test_any_link_header_is_understood_or_one_clear_error(header: str) -> None:
    """I13: page links from outside are untrusted."""
    try:
        headers = paging_headers(header)
    except ProtocolError:
        return
    assert headers.next is None or headers.linked


def records(*ids: object) -> list[msgspec.Raw]:
    return [msgspec.Raw(msgspec.json.encode({"id": record_id, "url": f"signed {object()}"})) for record_id in ids]


def test_one_empty_page_may_be_followed_but_not_a_second() -> None:
    """I13: a service that filters after paging may send an empty page; a service that sends only empty pages would do so for ever."""
    guard = LoopGuard()
    guard.check(PagingHeaders(page(1), 0), [], page(2))
    guard.check(PagingHeaders(page(2), 1), records(1), page(3))
    guard.check(PagingHeaders(page(3), 0), [], page(4))
    with pytest.raises(PagingLoopError, match="goes on after 2 pages without records"):
        guard.check(PagingHeaders(page(4), 0), [], page(5))


def test_a_listing_without_count_ends_some_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: always new records, no X-Total."""
    monkeypatch.setattr(paging, "MAX_PAGES", 100)
    guard = LoopGuard()
    with pytest.raises(PagingLoopError, match="goes on without end"):  # noqa: PT012  it happens on some page
        for number in range(1, 1000):
            guard.check(PagingHeaders(page(number), 1), records(number), page(number + 1))
