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


def test_several_identifiers_of_one_type_unknown_types_and_their_order_are_kept(empty: Library) -> None:
    """service.md#identifiers: the list of types is open. Assumption: several identifiers may have one type, and keep their order."""
    identifiers = [
        {"type": "isbn", "value": "978-3-16-148410-0"}, {"type": "handle", "value": "2027/xyz"},
        {"type": "isbn", "value": "3-16-148410-X"}, {"type": "DOI", "value": " 10.1/ABC "},
    ]  # fmt: skip
    client = empty.v3()
    authors = [{"name": "Ada Lovelace", "type": "person"}, {"name": "The Royal Society", "type": "corporate"}]
    created = create(client, identifiers=identifiers, authors=authors)
    assert (created["identifiers"], created["authors"]) == (identifiers, authors)
    address = f"/publications/{created['id']}"
    assert client.patch(address, json={"identifiers": identifiers[1:3]}).json()["identifiers"] == identifiers[1:3]
    assert client.get(address).json()["identifiers"] == identifiers[1:3]


@pytest.mark.parametrize("number", [999, 2**70])
@pytest.mark.parametrize(
    ("version", "field"),
    [*(("v3", field) for field in ("category", "contributor", "organization")), ("v2", "contributor")],
)
def test_an_unknown_reference_is_404(empty: Library, version: str, field: str, number: int) -> None:
    """service.md#references: an unknown id of a contributor, category or organization is 404 (the last two in v3 only)."""
    client = getattr(empty, version)()
    created = create(client)
    reference = {"categories": [{"name": "New"}, {"id": number}]} if field == "category" else {field: {"id": number}}
    answers = [
        client.post("/publications", json={"title": "A", **reference}),
        client.patch(f"/publications/{created['id']}", json={"title": "B", **reference}),
    ]
    assert [refusal(answer) for answer in answers] == [(404, "RecordNotFound")] * 2
    assert client.get(f"/publications/{created['id']}").json() == created
    assert client.get("/publications").headers["X-Total"] == "1"


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


def test_a_category_is_found_or_created_by_its_name(empty: Library) -> None:
    """service.md#references: a category `{name}` is found or created, `{id}` associates an existing one; a bare string is 422.

    Assumption: beside an `id` the name does not count.
    """
    client = empty.v3()
    record = create(client, categories=[{"name": "History"}, {"name": "Science"}])
    history, science = record["categories"]
    for entry in ({"name": "Science"}, {"id": science["id"]}, {"id": science["id"], "name": "Art"}):
        assert create(client, categories=[entry])["categories"] == [science]
        assert create(empty.v2(), categories=[entry])["categories"] == [science]
    (art,) = create(client, categories=[{"name": "Art"}])["categories"]
    assert (history["name"], art["name"], len({category["id"] for category in (history, science, art)})) == (
        "History",
        "Art",
        3,
    )
    bare = {"title": "A", "categories": [{"name": "Art"}, "History"]}
    for answer in (client.post("/publications", json=bare), client.patch(f"/publications/{record['id']}", json=bare)):
        assert refusal(answer) == (422, "UnprocessableEntity")
        assert "categories[" in answer.json()["error"]["message"]
    assert client.get(f"/publications/{record['id']}").json() == record


@pytest.mark.parametrize("field", ["assets", "assets_attributes"])
def test_file_content_is_sent_along_with_a_publication(empty: Library, field: str) -> None:
    """service.md#publications: both attach files together with a publication. service.md#scopes: that needs `assets:write`, too."""
    client = empty.v3("library:write", "assets:write")
    created = create(client, **{field: [{"name": "Text", "file": upload(empty)}]})
    (asset,) = created["assets"]
    assert (asset["name"], asset["content_type"], asset["publication_id"]) == ("Text", "text/plain", created["id"])
    address, payload = (
        f"/publications/{created['id']}",
        {"title": "A", field: [{"file": upload(empty, b"more", "b.txt")}]},
    )
    without = empty.v3("library:read", "library:write")
    for answer in (without.post("/publications", json=payload), without.patch(address, json=payload)):
        assert refusal(answer) == (403, "InsufficientScope")
        assert 'scope="assets:write"' in answer.headers["WWW-Authenticate"]
    assert without.get("/publications").headers["X-Total"] == "1"
    assert [asset["name"] for asset in client.patch(address, json=payload).json()["assets"]] == ["Text", "b.txt"]
