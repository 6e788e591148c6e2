"""Variations and faults that concern writes: what the service may do differently, and what can go wrong."""

from __future__ import annotations

import pytest

from tests.spec.conftest import Library
from tests.spec.test_publication_record import create

VERSIONS = pytest.mark.parametrize("version", ["v2", "v3"])


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
