"""Variations and faults that concern writes: what the service may do differently, and what can go wrong."""

from __future__ import annotations

import httpx
import pytest

from tests.spec.conftest import Library
from tests.spec.test_publication_record import create

VERSIONS = pytest.mark.parametrize("version", ["v2", "v3"])


def total(library: Library, query: str = "") -> int:
    """Returns the number of publications of a list."""
    return int(library.v3().get(f"/publications{query}").headers["X-Total"])


@pytest.mark.parametrize(("when", "stored"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_error_comes_before_or_after_the_effect(empty: Library, status: int, when: str, stored: int) -> None:
    """service.md#errors: after a 500 the client does not know whether the record was created. Fault: `status`."""
    empty.fault("status", method="POST", path="/publications", status=status, when=when)
    assert empty.v3().post("/publications", json={"title": "A"}).status_code == status
    assert total(empty) == stored


@pytest.mark.parametrize(("when", "stored"), [("before", 0), ("after", 1)])
def test_a_reset_comes_before_or_after_the_effect(empty: Library, when: str, stored: int) -> None:
    """A broken connection does not say whether the record was created. Fault: `reset`."""
    empty.fault("reset", method="POST", path="/publications", when=when)
    with pytest.raises((httpx.TransportError, ConnectionError)):
        empty.v3().post("/publications", json={"title": "A"})
    assert total(empty) == stored


def test_the_clock_jumps(library: Library) -> None:
    """service.md#tokens: an access token is valid for one hour. Fault: `jump`; it does not move the windows of the rate."""
    client = library.v3()
    library.fault("jump", path="/publications/2", seconds=3601)
    assert client.get("/publications/1").status_code == 200
    assert [client.get(f"/publications/{number}").status_code for number in (2, 1)] == [401, 401]
    library.control("POST", "reset", {"parts": ["settings"]})
    assert library.v3().get("/publications/1").status_code == 200


def test_records_change_while_a_list_is_read(library: Library) -> None:
    """Lists are not snapshots. Fault: `edit`."""
    library.fault("edit", path="page=2", change=[30, 999], remove=[1], add=1)
    client = library.v3()
    pages = [client.get(f"/publications?page={number}").json()["records"] for number in (1, 2, 3)]
    numbers = [record["id"] for page in pages for record in page]
    assert numbers == [number for number in range(1, 62) if number != 26]
    (changed,) = [record for page in pages for record in page if record["id"] == 30]
    assert changed["title"] == "Changed 30"
    assert changed["authors"]


@VERSIONS
def test_a_field_may_be_accepted_and_not_kept(empty: Library, version: str) -> None:
    """service.md#not-shown: what the service does with each field. Variation: `dropped_field`."""
    client = getattr(empty, version)()
    empty.vary(dropped_field="abstract")
    made = client.post("/publications", json={"title": "A", "abstract": "B"})
    assert (made.status_code, made.json()["title"], made.json()["abstract"]) == (200, "A", None)


@VERSIONS
@pytest.mark.parametrize(("manner", "twins"), [("none", 1), ("matched", 1), ("own", 2)])
def test_a_written_publication_may_make_authorities_of_its_authors(
    empty: Library, version: str, manner: str, twins: int
) -> None:
    """service.md#other-resources: authorities are created, changed and merged. Variation: `author_authorities`."""
    client, authorities = getattr(empty, version)(), empty.v3()
    created = authorities.post("/authorities", json={"name": "A", "kind": "person"}).json()
    empty.vary(author_authorities=manner)
    number = create(client, authors=[{"name": "A"}, {"name": "B", "type": "corporate"}, {"name": "A"}])["id"]
    assert client.patch(f"/publications/{number}", json={"authors": [{"name": "A"}, {"name": "C"}]}).is_success
    found = [(one["name"], one["kind"]) for one in authorities.get("/authorities").json()["records"]]
    made = [("B", "corporate"), ("C", "person")] if manner != "none" else []
    assert sorted(found) == [("A", "person")] * twins + made
    if twins > 1:
        twin = authorities.get("/authorities?name=A").json()["records"][-1]["id"]
        assert authorities.patch(f"/authorities/{twin}/merge", json={"into_id": created["id"]}).is_success
    create(client, authors=[{"name": "A"}])
    assert authorities.get("/authorities?name=A").headers["X-Total"] == "1"
