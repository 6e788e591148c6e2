"""service.md#lists: page size, `X-Total` and `Link`."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import create_environ
from werkzeug.wrappers import Request

from sandbox.both_versions.paging import page_headers, requested_page
from sandbox.settings import Variations
from tests.sandbox.conftest import Service


def links(answer: httpx.Response) -> dict[str, str]:
    return {rel: str(link["url"]) for rel, link in answer.links.items() if rel}


@pytest.mark.parametrize(
    ("per_page", "size"),
    [("", 25), ("1", 1), ("50", 50), ("51", 50), ("1000", 50), ("0", 25), ("-3", 25), ("x", 25), ("1.5", 25), ("9" * 99, 50), ("²", 25)],
)  # fmt: skip
def test_page_size(library: Service, per_page: str, size: int) -> None:
    """service.md#lists: 25 entries a page by default, 50 at most. Assumption: an invalid value counts as absent."""
    query = {"per_page": per_page} if per_page else {}
    for path in ("/publications", "/publications/all"):
        assert len(library.get(path, params=query).json()["records"]) == size


@pytest.mark.parametrize("page", ["", "0", "-1", "one", "1e9"])
def test_an_invalid_page_is_the_first(library: Service, page: str) -> None:
    """Assumption: a page that is no whole number above 0 counts as absent."""
    assert library.get("/publications", params={"page": page}).json()["records"][0]["id"] == 1


@pytest.mark.parametrize("page", ["110", "999999", "9" * 40])
def test_a_page_beyond_the_last_is_empty_and_leads_back(library: Service, page: str) -> None:
    """Assumption: 200, no records, X-Total, and a previous page that exists."""
    answer = library.get("/publications", params={"per_page": 50, "page": page})
    assert answer.json() == {"records": []}
    assert answer.headers["X-Total"] == "5445"
    assert sorted(links(answer)) == ["first", "last", "prev"]
    assert httpx.URL(links(answer)["prev"]).params["page"] == "109"


def test_total_and_links(library: Service) -> None:
    """service.md#lists: `X-Total` is the total; `Link` has the first, previous, next and last page."""
    answer = library.get("/publications/all?per_page=50&page=2")
    address = f"{library.base_url}/api/v2/publications/all?per_page=50&page="
    assert answer.headers["X-Total"] == "5445"
    expected = {"first": f"{address}1", "prev": f"{address}1", "next": f"{address}3", "last": f"{address}109"}
    assert links(answer) == expected


def test_links_keep_every_parameter(library: Service) -> None:
    """Assumption: a link repeats the request for another page, with unknown and repeated parameters."""
    sent = [("query", "a&b=c"), ("year", "2016"), ("x", "é"), ("x", "2"), ("page", "1"), ("per_page", "1000")]
    following = links(library.get("/publications/all", params=sent))["next"]
    expected = [(name, "2" if name == "page" else value) for name, value in sent]
    assert parse_qsl(urlsplit(following).query) == expected


@pytest.mark.long
@given(total=st.integers(0, 400), per_page=st.integers(-5, 120))
def test_following_next_covers_every_entry_once(total: int, per_page: int) -> None:
    """The ranges of the pages, one after the other, are exactly the list, for any page size."""
    target, covered, pages = f"/library/api/v2/publications?per_page={per_page}", 0, 0
    while target:
        request = Request(create_environ(target, base_url="http://service.test"))
        page = requested_page(request, Variations())
        assert page.offset == covered
        assert 1 <= page.size <= 50
        covered += min(page.size, total - covered)
        pages += 1
        sent = page_headers(request, page, total, Variations())
        lines = [
            (name, line) for name, value in sent.items() for line in ([value] if isinstance(value, str) else value)
        ]
        answer = httpx.Response(200, headers=lines)
        target = links(answer).get("next", "")
    assert covered == total
    assert pages == max(1, -(-total // page.size))
