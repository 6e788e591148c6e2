"""service.md#publications, #identifiers, #references and #covers: the record of a publication, read and written."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.spec.conftest import Library

FIELDS = [
    "id", "title", "publishable_type", "published_on", "abstract", "authors", "identifiers", "categories",
    "contributor", "organization", "cover", "assets",
]  # fmt: skip


def create(client: httpx.Client, **attributes: Any) -> dict[str, Any]:
    """Creates a publication and returns its record."""
    answer = client.post("/publications", json={"title": "A title", **attributes})
    assert answer.status_code == 200, answer.text
    record: dict[str, Any] = answer.json()
    return record


def upload(library: Library, content: bytes = b"bytes", filename: str = "a.txt") -> dict[str, Any]:
    """Uploads a file and returns the payload ``{id, storage: cache, metadata}``."""
    name = f"{len(content)}-{filename}"
    library.tenant.blobs.upload(f"cache/{name}", content, filename=filename, mime_type="text/plain")
    metadata = {"size": len(content), "filename": filename, "mime_type": "text/plain"}
    return {"id": name, "storage": "cache", "metadata": metadata}


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Returns status and error code."""
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize(
    "date", ["2023-02-29", "2024", "2024-1-1", "1 May 2024", "", 2024, "2024-02-29T00:00:00", "２０２４-01-01"]
)
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_an_invalid_date_is_refused(empty: Library, version: str, date: object) -> None:
    """service.md#publications: `published_on` is a date, YYYY-MM-DD; another value is 422."""
    client = getattr(empty, version)()
    assert refusal(client.post("/publications", json={"title": "A", "published_on": date})) == (
        422,
        "UnprocessableEntity",
    )


def test_null_or_an_empty_list_empties_a_field(empty: Library) -> None:
    """Assumption: PATCH with null empties a field, with an empty list a list."""
    client = empty.v3()
    texts = {"publishable_type": "Book", "published_on": "2020-01-31", "abstract": "About tides"}
    doi = {"type": "doi", "value": "10.1000/tides"}
    created = create(client, **texts, authors=[{"name": "Ann"}], identifiers=[doi], categories=[{"name": "Sea"}])
    nothing = {**dict.fromkeys(texts), "authors": [], "identifiers": [], "categories": []}
    changed = client.patch(f"/publications/{created['id']}", json=nothing).json()
    assert {name: changed[name] for name in nothing} == nothing
    assert changed["title"] == created["title"]


def test_several_identifiers_of_one_type_unknown_types_and_their_order_are_kept(empty: Library) -> None:
    """service.md#identifiers: the list of types is open. Assumption: several identifiers may have one type, and keep their order."""
    sent = [
        {"type": "isbn", "value": "978-3-16-148410-0"}, {"type": "handle", "value": "2027/xyz"},
        {"type": "isbn", "value": "3-16-148410-X"}, {"type": "DOI", "value": " 10.1/ABC "},
    ]  # fmt: skip
    client = empty.v3()
    authors = [{"name": "Ada Lovelace", "type": "person"}, {"name": "The Royal Society", "type": "corporate"}]
    created = create(client, identifiers=sent, authors=authors)
    assert (created["identifiers"], created["authors"]) == (sent, authors)
    address = f"/publications/{created['id']}"
    assert client.patch(address, json={"identifiers": sent[1:3]}).json()["identifiers"] == sent[1:3]
    assert client.get(address).json()["identifiers"] == sent[1:3]


def test_a_category_is_found_or_created_by_its_name(empty: Library) -> None:
    """service.md#references: a category `{name}` is found or created."""
    client = empty.v3()
    first = create(client, categories=[{"name": "History"}, {"name": "Science"}])["categories"]
    second = create(client, categories=[{"name": "Science"}, {"name": "Art"}])["categories"]
    assert [each["name"] for each in first + second] == ["History", "Science", "Science", "Art"]
    assert first[1]["id"] == second[0]["id"]
    assert len({each["id"] for each in first + second}) == 3


def test_a_category_is_associated_by_its_id(empty: Library) -> None:
    """service.md#references: a category `{id}` associates an existing one. Assumption: beside an `id` the name does not count."""
    client = empty.v3()
    known = create(client, categories=[{"name": "History"}])["categories"]
    for entry in ({"id": known[0]["id"]}, {"id": known[0]["id"], "name": "Art"}):
        assert create(client, categories=[entry])["categories"] == known
        assert create(empty.v2(), categories=[entry])["categories"] == known


def test_a_bare_string_as_a_category_is_refused(empty: Library) -> None:
    """service.md#references: a bare string as a category is 422."""
    client = empty.v3()
    number = create(client)["id"]
    for answer in (
        client.post("/publications", json={"title": "A", "categories": ["History"]}),
        client.patch(f"/publications/{number}", json={"categories": [{"name": "Art"}, "History"]}),
    ):
        assert refusal(answer) == (422, "UnprocessableEntity")
        assert "categories[" in answer.json()["error"]["message"]
    assert client.get(f"/publications/{number}").json()["categories"] == []


@pytest.mark.parametrize("number", [999, 2**70])
@pytest.mark.parametrize("field", ["category", "contributor", "organization"])
def test_an_unknown_reference_is_404(empty: Library, field: str, number: int) -> None:
    """service.md#references: an unknown id of a contributor, category or organization is 404 (the last two in v3 only)."""
    client = empty.v3()
    created = create(client)
    sent = {"categories": [{"name": "New"}, {"id": number}]} if field == "category" else {field: {"id": number}}
    answers = [
        client.post("/publications", json={"title": "A", **sent}),
        client.patch(f"/publications/{created['id']}", json={"title": "B", **sent}),
    ]
    assert [refusal(answer) for answer in answers] == [(404, "RecordNotFound")] * 2
    assert client.get(f"/publications/{created['id']}").json() == created
    assert client.get("/publications").headers["X-Total"] == "1"


def test_references_that_exist_are_shown(empty: Library) -> None:
    """service.md#references: references have an `id`. Assumption: a contributor is a user; a tenant has one organization."""
    client = empty.v3()
    created = create(client, contributor={"id": 1}, organization={"id": 1})
    assert created["contributor"] == {"id": 1, "name": "Backup"}
    assert created["organization"] == {"id": 1, "name": "library"}
    changed = client.patch(f"/publications/{created['id']}", json={"contributor": None, "organization": None}).json()
    assert (changed["contributor"], changed["organization"]) == (None, None)


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_change_of_one_field_leaves_every_other(empty: Library, version: str) -> None:
    """service.md#publications: PATCH changes a publication. A field that is not sent stays, a reference and a file too."""
    created = create(
        empty.v3(),
        abstract="Text",
        publishable_type="Book",
        published_on="1843-08-01",
        authors=[{"name": "Ada Lovelace", "type": "person"}],
        identifiers=[{"type": "doi", "value": "10.1/1"}, {"type": "doi", "value": "10.1/2"}],
        categories=[{"name": "Computing"}, {"name": "Biography"}],
        contributor={"id": 1},
        organization={"id": 1},
        cover=upload(empty, b"picture", "c.png"),
        assets=[{"file": upload(empty)}, {"file": upload(empty, b"more", "b.txt")}],
    )
    assert list(created) == FIELDS
    assert all(created.values())
    client, address = empty.v3(), f"/publications/{created['id']}"
    for name, value in {
        "title": "New",
        "abstract": "Other",
        "publishable_type": "Report",
        "published_on": "1844-01-01",
    }.items():
        assert getattr(empty, version)().patch(address, json={name: value}).status_code == 200
        created |= {name: value}
        assert client.get(address).json() == created, name


@pytest.mark.parametrize("field", ["assets", "assets_attributes"])
def test_file_content_is_sent_along_with_a_publication(empty: Library, field: str) -> None:
    """service.md#publications: `assets` and `assets_attributes` attach files together with a publication."""
    client = empty.v3()
    created = create(client, **{field: [{"name": "Text", "file": upload(empty)}]})
    (asset,) = created["assets"]
    assert (asset["name"], asset["content_type"], asset["publication_id"]) == ("Text", "text/plain", created["id"])
    sent = {field: [{"file": upload(empty, b"more", "b.txt")}]}
    changed = client.patch(f"/publications/{created['id']}", json=sent).json()
    assert [each["name"] for each in changed["assets"]] == ["Text", "b.txt"]


@pytest.mark.parametrize("field", ["assets", "assets_attributes"])
def test_file_content_needs_the_scope_for_assets(empty: Library, field: str) -> None:
    """service.md#scopes: file content in a publication needs `assets:write` beside `library:write`."""
    number = create(empty.v3())["id"]
    client = empty.v3("library:read", "library:write")
    sent = {"title": "A", field: [{"file": upload(empty)}]}
    for answer in (client.post("/publications", json=sent), client.patch(f"/publications/{number}", json=sent)):
        assert refusal(answer) == (403, "InsufficientScope")
        assert 'scope="assets:write"' in answer.headers["WWW-Authenticate"]
    assert client.get("/publications").headers["X-Total"] == "1"
    with_both = empty.v3("library:write", "assets:write")
    assert with_both.post("/publications", json=sent).status_code == 200


def test_addresses_of_files_need_the_scope_to_read_assets(empty: Library) -> None:
    """service.md#assets: `url`, `thumb_url` and `preview_url` are visible only to tokens with `assets:read`."""
    number = create(empty.v3(), assets=[{"file": upload(empty)}], cover=upload(empty, b"picture", "c.png"))["id"]
    for scopes, visible in ((("library:read",), False), (("library:read", "assets:read"), True)):
        client = empty.v3(*scopes)
        records = [client.get(f"/publications/{number}").json(), client.get("/publications").json()["records"][0]]
        for record in records:
            for name in ("url", "thumb_url", "preview_url"):
                assert (name in record["assets"][0]) == visible
            assert ("url" in record["cover"]) == visible
