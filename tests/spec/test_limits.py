"""service.md#lists and #rate."""

from __future__ import annotations

import pytest

from tests.spec.conftest import Library

VERSIONS = pytest.mark.parametrize("version", ["v2", "v3"])


@VERSIONS
def test_pagination_headers(library: Library, version: str) -> None:
    """service.md#lists: `X-Total` is the total, `Link` has the first, previous, next and last page."""
    answer = getattr(library, version)().get("/publications?per_page=20&page=2")
    assert (list(answer.json()), answer.headers["X-Total"]) == (["records"], "60")
    address = f"{library.base_url}/api/{version}/publications?per_page=20&page="
    addresses = {name: link["url"] for name, link in answer.links.items()}
    assert addresses == {"first": f"{address}1", "prev": f"{address}1", "next": f"{address}3", "last": f"{address}3"}


def test_the_rate_is_one_for_both_versions(library: Library) -> None:
    """service.md#rate: about 60 requests a minute. Assumption: both versions share a sliding window; the next request is 429."""
    v2, v3 = library.v2(), library.v3()
    library.change(requests_per_minute=60)
    statuses = [client.get("/publications/1").status_code for _ in range(30) for client in (v2, v3)]
    assert statuses == [200] * 60
    refused = v3.get("/publications/1")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    library.clock.time += 60
    assert v2.get("/publications/1").status_code == 200
