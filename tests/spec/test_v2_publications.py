"""service.md#v2, #identifiers and #publications: publications in version 2, which has the same state as version 3."""

from __future__ import annotations

import pytest

from tests.spec.conftest import Library
from tests.spec.test_publication_record import create, refusal, upload

FLAT = ("doi", "isbn", "issn", "arxiv_id", "pmid")


def test_identifiers_are_flat(library: Library) -> None:
    """service.md#identifiers: v2 has flat identifier fields (`doi`, `isbn` and others) under /api/v2."""
    client = library.v2()
    record = client.get("/publications/41").json()
    assert "identifiers" not in record
    assert {name: record[name] for name in FLAT} == dict.fromkeys(FLAT) | {
        "doi": "10.1186/s12874-018-0482-1",
        "arxiv_id": "1606.00931",
    }
    identifiers = {name: f"{name}-1" for name in FLAT}
    created = create(client, **identifiers)
    assert {name: created[name] for name in FLAT} == identifiers
    address = f"/publications/{created['id']}"
    assert client.get(address).json() == created
    assert client.patch(address, json={"doi": "10.1/2"}).json() == created | {"doi": "10.1/2"}
    assert client.delete(address).status_code == 200
    assert client.get(address).status_code == 404


def test_what_one_version_writes_the_other_shows(empty: Library) -> None:
    """service.md#identifiers: the flat fields of v2 replace `identifiers`; both versions show one state."""
    v2, v3 = empty.v2(), empty.v3()
    authors, categories = [{"name": "Ada", "type": "person"}], [{"name": "Computing"}]
    old = create(v2, doi="10.1/1", pmid="7", authors=authors, categories=categories, published_on="1843-08-01")
    v3_record = v3.get(f"/publications/{old['id']}").json()
    assert v3_record["identifiers"] == [{"type": "doi", "value": "10.1/1"}, {"type": "pmid", "value": "7"}]
    shared_fields = ("id", "title", "published_on", "authors", "categories", "cover", "assets")
    assert {name: v3_record[name] for name in shared_fields} == {name: old[name] for name in shared_fields}
    identifiers = [{"type": "handle", "value": "1/2"}, {"type": "isbn", "value": "2"}, {"type": "isbn", "value": "3"}]
    v3.patch(f"/publications/{old['id']}", json={"identifiers": identifiers, "title": "New"})
    record = v2.get(f"/publications/{old['id']}").json()
    assert {name: record[name] for name in ("title", *FLAT)} == dict.fromkeys(FLAT) | {"title": "New", "isbn": "2"}
    assert record.keys() == old.keys()


def test_authors_are_added_and_destroyed(empty: Library) -> None:
    """service.md#v2: v2 removes entries of lists with `_destroy` markers: authors."""
    client = empty.v2()
    ada, ben = {"name": "Ada", "type": "person"}, {"name": "Ben", "type": "person"}
    society = {"name": "Ben", "type": "corporate"}
    address = f"/publications/{create(client, authors=[ada, ben])['id']}"
    assert client.patch(address, json={"authors": [society, ada]}).json()["authors"] == [ada, ben, society]
    changes = {"authors": [{**ben, "_destroy": True}, {"name": "Nobody", "_destroy": True}]}
    assert client.patch(address, json=changes).json()["authors"] == [ada, society]
    assert client.patch(address, json={"authors": [{"name": "Ada", "_destroy": False}]}).json()["authors"] == [
        ada,
        society,
    ]


def test_categories_are_added_and_destroyed(empty: Library) -> None:
    """service.md#v2: v2 removes entries of lists with `_destroy` markers: categories by name or id."""
    client = empty.v2()
    created = create(client, categories=[{"name": "History"}, {"name": "Art"}, {"name": "Science"}])
    history, art, science = created["categories"]
    address = f"/publications/{created['id']}"
    changes = {"categories": [{"name": "Art"}, {"name": "New"}, {"id": history["id"], "_destroy": True}]}
    changed = client.patch(address, json=changes).json()["categories"]
    assert [category["name"] for category in changed] == ["Art", "Science", "New"]
    changes = {"categories": [{"name": "Science", "_destroy": True}, {"id": history["id"]}]}
    changed = client.patch(address, json=changes).json()["categories"]
    assert [category["name"] for category in changed] == ["Art", "New", "History"]
    assert changed[0] == art
    assert science not in changed


@pytest.mark.parametrize("field", ["assets", "assets_attributes"])
def test_assets_are_added_changed_and_destroyed(empty: Library, field: str) -> None:
    """service.md#v2: v2 removes entries of lists with `_destroy` markers: assets by id."""
    client = empty.v2()
    files = [{"file": upload(empty)}, {"file": upload(empty, b"other", "b.txt"), "name": "B"}]
    created = create(client, **{field: files})
    first, second = created["assets"]
    address = f"/publications/{created['id']}"
    changes = {field: [{"id": first["id"], "_destroy": True}, {"id": second["id"], "name": "C"}]}
    (remaining,) = client.patch(address, json=changes).json()["assets"]
    assert (remaining["id"], remaining["name"]) == (second["id"], "C")
    publication_id = create(client)["id"]
    assert refusal(client.patch(f"/publications/{publication_id}", json={field: [{"id": second["id"]}]})) == (
        404,
        "RecordNotFound",
    )


def test_v3_refuses_destroy_markers(empty: Library) -> None:
    """service.md#v2: v3 has DELETE endpoints instead of `_destroy` markers."""
    client = empty.v3()
    address = f"/publications/{create(client, authors=[{'name': 'Ada'}])['id']}"
    assert refusal(client.patch(address, json={"authors": [{"name": "Ada", "_destroy": True}]}))[0] == 422
    assert client.patch(address, json={"authors": []}).json()["authors"] == []


def test_a_category_or_an_organization_that_does_not_exist_is_no_error(empty: Library) -> None:
    """service.md#references: an unknown category or organization is 404 in v3 only."""
    client = empty.v2()
    created = create(client, categories=[{"id": 999}, {"name": "Art"}, {"id": 2**70}], organization={"id": 999})
    assert [category["name"] for category in created["categories"]] == ["Art"]
    assert "organization" not in created
