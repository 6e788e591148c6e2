"""service.md#publications, #lists and #search: the endpoints of publications in version 3."""

from __future__ import annotations

import httpx
import pytest

from tests.spec.conftest import Library
from tests.spec.test_publication_record import create, refusal


def ids(answer: httpx.Response) -> list[int]:
    return [record["id"] for record in answer.json()["records"]]


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("doi", "10.1186/s12874-018-0482-1", [41]), ("isbn", "61231401", [1]), ("author", "ghali ibrahim", [30]),
        ("category", "egypt -- history.", [30]), ("query", "doomsday sigma force", [1]), ("doi", "10.0/none", []),
    ],
)  # fmt: skip
def test_the_real_records_are_searched(library: Library, name: str, value: str, found: list[int]) -> None:
    """service.md#search: the query parameters of GET /publications, `query` being full text."""
    assert ids(library.v3().get("/publications", params={name: value})) == found


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


def test_what_was_changed_is_found_by_its_new_words_only(empty: Library) -> None:
    """service.md#publications: PATCH changes a publication, for searches too."""
    client = empty.v3()
    before = {"title": "Old", "identifiers": [{"type": "doi", "value": "10.1/old"}], "categories": [{"name": "Past"}]}
    after = {"title": "New", "identifiers": [{"type": "doi", "value": "10.1/new"}], "categories": [{"name": "Now"}]}
    number = create(client, **before)["id"]
    client.patch(f"/publications/{number}", json=after)
    for query, found in (
        ("query=old", []), ("query=new", [number]), ("doi=10.1/old", []), ("doi=10.1/new", [number]),
        ("category=past", []), ("category=now", [number]), ("query=past", []), ("query=now", [number]),
    ):  # fmt: skip
        assert ids(client.get(f"/publications?{query}")) == found, query


def test_no_match_is_an_empty_list(library: Library) -> None:
    """service.md#search: `records` is empty when no publication matches."""
    answer = library.v3().get("/publications?doi=10.0/none")
    assert (answer.status_code, answer.json()) == (200, {"records": []})


def test_the_total_of_a_search_is_what_it_finds(library: Library) -> None:
    """service.md#lists: `X-Total` is the number of entries of the list, on each of its pages and after the last."""
    client = library.v3()
    every = ids(client.get("/publications?query=the&per_page=50"))
    assert 2 < len(every) < 50
    for page in (1, 2, 99):
        answer = client.get(f"/publications?query=the&per_page=2&page={page}")
        assert (ids(answer), answer.headers["X-Total"]) == (every[2 * page - 2 : 2 * page], str(len(every)))
    assert client.get("/publications?doi=10.0/none").headers["X-Total"] == "0"


def test_a_list_has_pages_of_25(library: Library) -> None:
    """service.md#lists: 25 publications a page by default; `page` and `per_page` (50 at most) choose others."""
    client = library.v3()
    assert ids(client.get("/publications")) == list(range(1, 26))
    assert ids(client.get("/publications?page=3")) == list(range(51, 61))
    assert ids(client.get("/publications?per_page=7&page=2")) == list(range(8, 15))
    assert len(ids(client.get("/publications?per_page=1000"))) == 50


def test_a_list_has_total_and_links(library: Library) -> None:
    """service.md#lists: a list is an object with `records`, with the headers X-Total and Link."""
    answer = library.v3().get("/publications?query=the&page=1&per_page=2")
    assert int(answer.headers["X-Total"]) > 2
    following = answer.links["next"]["url"]
    assert following == f"{library.base_url}/api/v3/publications?query=the&page=2&per_page=2"
    assert ids(library.v3().get(following)) != ids(answer)


def test_the_backup_list_has_every_publication(library: Library) -> None:
    """service.md#lists: `/publications/all` lists every publication in pages. Assumption: both versions have it."""
    for client in (library.v2(), library.v3()):
        pages = [ids(client.get(f"/publications/all?per_page=25&page={page}&year=1800")) for page in (1, 2, 3)]
        assert [number for page in pages for number in page] == list(range(1, 61))


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_the_backup_list_may_be_in_one_version_only(library: Library, version: str) -> None:
    """service.md#not-shown: the version that has `/publications/all`. Variation: `all_in`."""
    library.vary(all_in=version)
    answers = {name: getattr(library, name)().get("/publications/all").status_code for name in ("v2", "v3")}
    assert answers == {"v2": 404, "v3": 404} | {version: 200}


def test_one_publication(library: Library) -> None:
    """service.md#publications: GET /publications/:id answers a publication."""
    client = library.v3()
    assert client.get("/publications/7").json() == client.get("/publications?per_page=1&page=7").json()["records"][0]


def test_a_publication_is_created_with_an_id(library: Library) -> None:
    """service.md#publications: POST /publications answers the new publication with its `id`."""
    client = library.v3()
    created = create(client, title="New", abstract="Text")
    assert created["id"] == 61
    assert client.get("/publications/61").json() == created


def test_a_publication_is_updated(library: Library) -> None:
    """service.md#publications: PATCH answers the changed publication; fields that are not sent stay."""
    client = library.v3()
    before = client.get("/publications/30").json()
    changed = client.patch("/publications/30", json={"abstract": "Other", "publishable_type": None})
    assert changed.status_code == 200
    assert changed.json() == before | {"abstract": "Other", "publishable_type": None}
    assert client.get("/publications/30").json() == changed.json()
    assert client.patch("/publications/30", json={}).json() == changed.json()


def test_a_publication_is_deleted(library: Library) -> None:
    """service.md#publications: DELETE deletes a publication and answers nothing or an object."""
    client = library.v3()
    answer = client.delete("/publications/30")
    assert (answer.status_code, answer.json()) == (200, {})
    assert refusal(client.get("/publications/30")) == (404, "RecordNotFound")
    assert client.get("/publications").headers["X-Total"] == "59"
    assert refusal(client.delete("/publications/30")) == (404, "RecordNotFound")
    assert refusal(client.patch("/publications/30", json={"title": "A"})) == (404, "RecordNotFound")


def test_an_id_is_never_given_again(empty: Library) -> None:
    """service.md#publications: `id` is an integer that identifies the record. Assumption: an id is never used again."""
    client = empty.v3()
    first = create(client)["id"]
    client.delete(f"/publications/{first}")
    assert create(client)["id"] == first + 1
