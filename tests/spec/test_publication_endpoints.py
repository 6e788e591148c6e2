"""service.md#publications, #lists and #search: the endpoints of publications in version 3."""

from __future__ import annotations

import httpx

from tests.spec.conftest import Library
from tests.spec.test_publication_record import create, refusal


def ids(answer: httpx.Response) -> list[int]:
    return [record["id"] for record in answer.json()["records"]]


def test_every_query_parameter_finds_what_was_written(empty: Library) -> None:
    """service.md#search: searches use flat parameters such as `doi`, although responses have `identifiers`."""
    client = empty.v3()
    kinds = ("doi", "isbn", "issn", "arxiv_id", "pmid")
    number = create(
        client,
        title="Notes upon the engine",
        published_on="1843-08-01",
        authors=[{"name": "Ada Lovelace"}],
        categories=[{"name": "Computing"}],
        identifiers=[{"type": kind, "value": f"{kind}-1"} for kind in kinds],
    )["id"]
    create(client, title="Something else")
    searches = {kind: f"{kind}-1" for kind in kinds}
    searches |= {"author": "lovelace", "category": "computing", "year": "1843", "query": "engine notes"}
    for name, value in searches.items():
        assert ids(client.get("/publications", params={name: value})) == [number], name
        assert ids(client.get("/publications", params={name: f"{value}x"})) == [], name
    assert ids(client.get("/publications", params=searches)) == [number]


def test_the_backup_list_has_every_publication(library: Library) -> None:
    """service.md#lists: `/publications/all` lists every publication in pages. Assumption: both versions have it."""
    for client in (library.v2(), library.v3()):
        pages = [ids(client.get(f"/publications/all?per_page=25&page={page}&year=1800")) for page in (1, 2, 3)]
        assert [number for page in pages for number in page] == list(range(1, 61))


def test_a_publication_is_created_and_deleted(library: Library) -> None:
    """service.md#publications: POST answers the new publication with its `id`; DELETE answers nothing or an object."""
    client = library.v3()
    created = create(client, title="New", abstract="Text")
    assert created["id"] == 61
    assert client.get("/publications/61").json() == client.patch("/publications/61", json={}).json() == created
    answer = client.delete("/publications/30")
    assert (answer.status_code, answer.json()) == (200, {})
    assert refusal(client.get("/publications/30")) == (404, "RecordNotFound")
    assert client.get("/publications").headers["X-Total"] == "60"
    assert refusal(client.delete("/publications/30")) == (404, "RecordNotFound")
    assert refusal(client.patch("/publications/30", json={"title": "A"})) == (404, "RecordNotFound")
