"""I9: a page that was stored and read back is the page that came."""

from __future__ import annotations

import httpx

from pipelines.service.http.paging import read_paging_headers
from pipelines.service.listing.page_checkpoint import PageCheckpoint

PAGE = httpx.URL("https://library.example.org/api/v2/publications?per_page=50&page=3")


def test_the_paging_headers_of_a_page_survive_a_stop() -> None:
    """Of several X-Totals, the largest counts (I4)."""
    headers = [("X-Total", "5"), ("X-Total", "7"), ("Link", "<?per_page=50&page=4>; rel=next, <?page=9>; rel=last")]
    came = read_paging_headers(httpx.Response(200, headers=headers), PAGE, 1)
    stored = PageCheckpoint(3, "publications", 1, came).encode()
    _, page = PageCheckpoint.decode(stored, b'{"records": [{"id": 1}]}')
    assert page.paging == came
    assert page.paging.total == 7
