"""service-api.md, "Asset (attached file)", "Presign response" and "Assets": in version 3 and in version 2."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.spec.conftest import Library
from tests.spec.uploads import CONTENT, fetch, presigned, upload

VERSIONS = ("v3", "v2")
FIELDS = ["id", "publication_id", "name", "content_type", "file"]
URLS = ["url", "thumb_url", "preview_url"]


@pytest.fixture(params=VERSIONS)
def client(request: pytest.FixtureRequest, library: Library) -> httpx.Client:
    """A client that may do everything, for each version. Rule: "v2 uses the same paths as above under /api/v2"."""
    return library.v3() if request.param == "v3" else library.v2()


def asset_body(file_id: str, publication: int = 1, **more: Any) -> dict[str, Any]:
    """A create body as the document has it."""
    return {"publication_id": publication, "file": {"id": file_id, "storage": "cache"}, **more}


def created(library: Library, client: httpx.Client, content: bytes = CONTENT, **more: Any) -> dict[str, Any]:
    """An asset, uploaded and attached."""
    answer = client.post("/assets", json=asset_body(upload(library, presigned(client), content), **more))
    assert answer.status_code == 200, answer.text
    asset: dict[str, Any] = answer.json()
    return asset


def test_the_upload_sequence(library: Library, client: httpx.Client) -> None:
    """Rule: "Upload sequence: 1. ... 5. Call POST /assets with that id."; "v2 asset calls use the same presign flow."."""
    form = presigned(client, filename="thesis.pdf")
    file_id = upload(library, form)
    metadata = {"size": len(CONTENT), "filename": "thesis.pdf", "mime_type": "application/pdf"}
    file = {"id": file_id, "storage": "cache", "metadata": metadata}
    body = {"publication_id": 2, "name": "The thesis", "content_type": "application/pdf", "file": file}
    answer = client.post("/assets", json=body)
    assert answer.status_code == 200
    asset = answer.json()
    assert list(asset) == [*FIELDS, *URLS]
    assert (asset["publication_id"], asset["name"], asset["content_type"]) == (2, "The thesis", "application/pdf")
    assert asset["file"]["storage"] == "store"
    assert asset["file"]["metadata"] == metadata
    assert isinstance(asset["id"], int)
    assert client.get(f"/assets/{asset['id']}").json() == asset
    assert client.get("/publications/2").json()["assets"] == [asset]
    assert fetch(library, asset["url"]).content == CONTENT


def test_presign_answers_url_and_fields(client: httpx.Client) -> None:
    """Rule: "Object with `url` (string, upload address) and `fields` (object of string form fields)."."""
    answer = presigned(client)
    assert list(answer) == ["url", "fields"]
    assert isinstance(answer["url"], str)
    assert all(isinstance(value, str) for value in answer["fields"].values())
    assert answer["fields"]["Content-Type"] == "application/pdf"


def test_the_key_begins_with_cache(client: httpx.Client) -> None:
    """Rule: "`fields.key` is the storage key, prefixed with `cache/`."; a key may contain another one."""
    keys = [presigned(client)["fields"]["key"] for _ in range(3)]
    assert len(set(keys)) == 3
    for key in keys:
        assert key.startswith("cache/")
        assert key.count("cache/") == 2


def test_the_file_id_is_the_key_without_its_leading_cache(library: Library, client: httpx.Client) -> None:
    """Rule: "The file `id` is the storage key returned by the presign call with the leading `cache/` removed."."""
    form = presigned(client)
    key = form["fields"]["key"]
    assert upload(library, form) == key[len("cache/") :]
    for wrong in (key, key.replace("cache/", ""), key.rpartition("/")[2], f"/{key[6:]}", f"{key[6:]} ", "nothing"):
        answer = client.post("/assets", json=asset_body(wrong))
        assert answer.status_code == 404, wrong
        assert answer.json()["error"]["code"] == "StorageNotFound"
    assert client.post("/assets", json=asset_body(key[len("cache/") :])).status_code == 200


def test_a_wrong_id_fails_and_makes_nothing(client: httpx.Client) -> None:
    """Rule: "A wrong id makes asset creation fail with a storage not-found error."."""
    form = presigned(client)
    answer = client.post("/assets", json=asset_body(form["fields"]["key"].removeprefix("cache/")))
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "StorageNotFound")
    assert client.get("/publications/1").json()["assets"] == []


def test_an_upload_can_be_used_again(library: Library, client: httpx.Client) -> None:
    """Assumption: an upload stays, so that a POST whose answer was lost can be sent again; each makes an asset."""
    file_id = upload(library, presigned(client))
    first, second = (client.post("/assets", json=asset_body(file_id)).json() for _ in range(2))
    assert first["id"] != second["id"]
    assert first["file"]["id"] != second["file"]["id"]


def test_size_is_the_truth_names_are_the_payload_s(library: Library, client: httpx.Client) -> None:
    """Assumption: size is that of the upload whatever the payload says; file name and type are the payload's, else the upload's."""
    asset = created(library, client)
    assert asset["file"]["metadata"] == {"size": len(CONTENT), "filename": "a file.pdf", "mime_type": "application/pdf"}
    assert (asset["name"], asset["content_type"]) == ("a file.pdf", "application/pdf")
    file = {
        "id": upload(library, presigned(client)),
        "storage": "cache",
        "metadata": {"size": 1, "filename": "x.txt", "mime_type": "text/plain"},
    }
    told = client.post("/assets", json={"publication_id": 1, "file": file}).json()
    assert told["file"]["metadata"] == {"size": len(CONTENT), "filename": "x.txt", "mime_type": "text/plain"}


@pytest.mark.parametrize("publication", [61, 999999, 10**25])
def test_an_unknown_publication_is_404(library: Library, client: httpx.Client, publication: int) -> None:
    """Rule: "404: resource not found (code `RecordNotFound` ...)"; Assumption: the publication is looked for first."""
    file_id = upload(library, presigned(client))
    for file in (file_id, "nothing"):
        answer = client.post("/assets", json=asset_body(file, publication))
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "RecordNotFound")


@pytest.mark.parametrize(
    "body",
    [
        {}, {"publication_id": 1}, {"file": {"id": "x", "storage": "cache"}}, [], "x",
        {"publication_id": "1", "file": {"id": "x", "storage": "cache"}},
        {"publication_id": 1, "file": "x"}, {"publication_id": 1, "file": {"storage": "cache"}},
        {"publication_id": 1, "file": {"id": "", "storage": "cache"}},
        {"publication_id": 1, "file": {"id": "x", "storage": "store"}},
        {"publication_id": 1, "file": {"id": "x", "storage": "cache", "metadata": []}},
        {"publication_id": 1, "file": {"id": "x", "storage": "cache"}, "unknown": 1},
    ],
)  # fmt: skip
def test_what_cannot_be_an_asset_is_422(client: httpx.Client, body: object) -> None:
    """Rule: "422: input could not be processed"."""
    answer = client.post("/assets", json=body)
    assert answer.status_code == 422, answer.text


def test_an_asset_can_be_changed(library: Library, client: httpx.Client) -> None:
    """Rule: "PATCH /assets/:id: asset attributes: asset"."""
    asset = created(library, client)
    path = f"/assets/{asset['id']}"
    renamed = client.patch(path, json={"name": "Other", "content_type": None}).json()
    assert renamed == {**asset, "name": "Other", "content_type": None, **{name: renamed[name] for name in URLS}}
    moved = client.patch(path, json={"publication_id": 3}).json()
    assert moved["publication_id"] == 3
    assert client.get("/publications/1").json()["assets"] == []
    file = {"id": upload(library, presigned(client), b"new"), "storage": "cache"}
    assert fetch(library, client.patch(path, json={"file": file}).json()["url"]).content == b"new"
    assert fetch(library, asset["url"]).status_code == 404
    assert client.patch(path, json={"publication_id": 999}).status_code == 404
    assert (
        client.patch(path, json={"file": {"id": "nothing", "storage": "cache"}}).json()["error"]["code"]
        == "StorageNotFound"
    )
    assert client.patch(path, json={}).json()["name"] == "Other"
    assert client.patch("/assets/9999", json={}).status_code == 404


def test_an_asset_can_be_deleted(library: Library, client: httpx.Client) -> None:
    """Rule: "DELETE /assets/:id"; its file goes with it."""
    asset = created(library, client)
    assert client.delete(f"/assets/{asset['id']}").status_code == 200
    assert client.get(f"/assets/{asset['id']}").status_code == 404
    assert client.delete(f"/assets/{asset['id']}").status_code == 404
    assert fetch(library, asset["url"]).status_code == 404
    assert client.get("/publications/1").json()["assets"] == []


def test_assets_go_with_their_publication(library: Library, client: httpx.Client) -> None:
    """Rule: "publication_id: publication the file belongs to"."""
    asset = created(library, client)
    library.tenant.publications.remove(1)
    assert client.get(f"/assets/{asset['id']}").status_code == 404


def test_a_picture_is_its_own_thumbnail(library: Library, client: httpx.Client) -> None:
    """Rule: "url, thumb_url, preview_url: string"; Assumption: what is no picture has null there."""
    file = {"id": upload(library, presigned(client, type="image/png")), "storage": "cache"}
    picture = client.post("/assets", json={"publication_id": 1, "file": file}).json()
    assert picture["thumb_url"] == picture["preview_url"] == picture["url"]
    other = created(library, client)
    assert (other["thumb_url"], other["preview_url"]) == (None, None)


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/assets/presign", "assets:write"), ("POST", "/assets", "assets:write"),
        ("GET", "/assets/1", "assets:read"), ("PATCH", "/assets/1", "assets:write"),
        ("DELETE", "/assets/1", "assets:write"), ("GET", "/publications/cover/presign", "library:write"),
    ],
)  # fmt: skip
def test_every_call_needs_its_scope(library: Library, method: str, path: str, scope: str) -> None:
    """Rule: the column "Scope" of "Assets"; "When a token lacks a needed scope, the response is `403` with code `InsufficientScope`"."""
    others = {"library:read", "library:write", "assets:read", "assets:write", "users:read", "users:write"} - {scope}
    answer = library.v3(*others).request(method, path, json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "InsufficientScope")
    assert scope in answer.headers["WWW-Authenticate"]
    assert library.v3(scope).request(method, path, json={}).status_code != 403


def test_addresses_are_for_readers_of_assets_only(library: Library) -> None:
    """Rule: "url, thumb_url, preview_url: appear in responses of /assets and /publications only when the token carries `assets:read`"."""
    writer = library.v3("assets:write", "library:read")
    asset = created(library, writer)
    assert list(asset) == FIELDS
    assert list(writer.patch(f"/assets/{asset['id']}", json={"name": "x"}).json()) == FIELDS
    assert list(writer.get("/publications/1").json()["assets"][0]) == FIELDS
    reader = library.v3("assets:read", "library:read")
    assert list(reader.get(f"/assets/{asset['id']}").json()) == [*FIELDS, *URLS]
    assert list(reader.get("/publications/1").json()["assets"][0]) == [*FIELDS, *URLS]


def test_the_cover_follows_the_same_steps(library: Library, client: httpx.Client) -> None:
    """Rule: "The cover upload follows the same steps with /publications/cover/presign; the resulting ... is set as `cover`"."""
    form = presigned(client, "/publications/cover/presign", filename="cover.jpg", type="image/jpeg")
    file_id = upload(library, form)
    metadata = {"size": len(CONTENT), "filename": "cover.jpg", "mime_type": "image/jpeg"}
    cover = {"id": file_id, "storage": "cache", "metadata": metadata}
    shown = client.patch("/publications/1", json={"cover": cover}).json()["cover"]
    assert (shown["storage"], shown["metadata"]) == ("store", metadata)
    assert fetch(library, shown["url"]).content == CONTENT


@pytest.mark.parametrize(
    "wrong", [{"type": "pdf"}, {"type": "a/b\n"}, {"type": "a/b\r\nX: y"}, {"filename": "x" * 256}]
)
def test_what_no_form_can_fix_is_422(client: httpx.Client, wrong: dict[str, str]) -> None:
    """Rule: "query `filename` (string), `type` (string, MIME)"; what is none cannot be processed."""
    assert client.get("/assets/presign", params=wrong).status_code == 422


def test_a_path_without_an_id_is_not_an_asset(client: httpx.Client) -> None:
    """Assumption: 405 for what a path cannot do; there is no list of assets."""
    assert client.get("/assets").status_code == 405
    assert client.patch("/assets/presign", json={}).status_code == 405
    assert client.get("/assets/x").status_code == 404
