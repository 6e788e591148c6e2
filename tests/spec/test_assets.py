"""service.md#assets, #presign and #upload: assets in version 3 and in version 2."""

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
    """A client for each version that may do everything. v2 has the same asset paths as v3 (service.md#v2)."""
    return library.v3() if request.param == "v3" else library.v2()


def asset_body(file_id: str, publication: int = 1, **fields: Any) -> dict[str, Any]:
    """Returns the payload that creates an asset."""
    return {"publication_id": publication, "file": {"id": file_id, "storage": "cache"}, **fields}


def created(library: Library, client: httpx.Client, content: bytes = CONTENT, **fields: Any) -> dict[str, Any]:
    """Uploads a file and attaches it."""
    answer = client.post("/assets", json=asset_body(upload(library, presigned(client), content), **fields))
    assert answer.status_code == 200, answer.text
    asset: dict[str, Any] = answer.json()
    return asset


def test_the_upload_sequence(library: Library, client: httpx.Client) -> None:
    """service.md#upload: presign, upload, POST /assets with the file id. Assumption: a file is its own thumbnail and preview."""
    form = presigned(client, filename="thesis.pdf")
    assert list(form) == ["url", "fields"]
    assert form["fields"]["Content-Type"] == "application/pdf"
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
    assert [fetch(library, asset[name]).content for name in URLS] == [CONTENT] * 3


def test_the_file_id_is_the_key_without_its_leading_cache(library: Library, client: httpx.Client) -> None:
    """service.md#upload: the file id is the storage key without its leading `cache/`."""
    form = presigned(client)
    key = form["fields"]["key"]
    assert key.startswith("cache/")
    assert key.count("cache/") == 2, "the key may contain another"
    assert upload(library, form) == key[len("cache/") :]
    for wrong in (key, key.replace("cache/", ""), key.rpartition("/")[2], f"/{key[6:]}", f"{key[6:]} ", "nothing"):
        answer = client.post("/assets", json=asset_body(wrong))
        assert answer.status_code == 404, wrong
        assert answer.json()["error"]["code"] == "StorageNotFound"
    assert client.post("/assets", json=asset_body(key[len("cache/") :])).status_code == 200


def test_an_asset_can_be_changed(library: Library, client: httpx.Client) -> None:
    """service.md#assets: PATCH /assets/:id changes attributes and answers the asset."""
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


def test_an_asset_can_be_deleted(library: Library, client: httpx.Client) -> None:
    """service.md#assets: DELETE /assets/:id deletes an asset. Assumption: its file is deleted too."""
    asset = created(library, client)
    assert client.delete(f"/assets/{asset['id']}").status_code == 200
    assert client.get(f"/assets/{asset['id']}").status_code == 404
    assert client.delete(f"/assets/{asset['id']}").status_code == 404
    assert fetch(library, asset["url"]).status_code == 404
    assert client.get("/publications/1").json()["assets"] == []


def test_addresses_are_for_readers_of_assets_only(library: Library) -> None:
    """service.md#assets: `url`, `thumb_url` and `preview_url` are shown only to tokens with `assets:read`."""
    writer = library.v3("assets:write", "library:read")
    asset = created(library, writer)
    assert list(asset) == FIELDS
    assert list(writer.patch(f"/assets/{asset['id']}", json={"name": "x"}).json()) == FIELDS
    assert list(writer.get("/publications/1").json()["assets"][0]) == FIELDS
    reader = library.v3("assets:read", "library:read")
    assert list(reader.get(f"/assets/{asset['id']}").json()) == [*FIELDS, *URLS]
    assert list(reader.get("/publications/1").json()["assets"][0]) == [*FIELDS, *URLS]


def test_the_cover_follows_the_same_steps(library: Library, client: httpx.Client) -> None:
    """service.md#covers: a cover is uploaded like an asset and then set as `cover` of the publication."""
    form = presigned(client, "/publications/cover/presign", filename="cover.jpg", type="image/jpeg")
    file_id = upload(library, form)
    metadata = {"size": len(CONTENT), "filename": "cover.jpg", "mime_type": "image/jpeg"}
    cover = {"id": file_id, "storage": "cache", "metadata": metadata}
    stored_cover = client.patch("/publications/1", json={"cover": cover}).json()["cover"]
    assert (stored_cover["storage"], stored_cover["metadata"]) == ("store", metadata)
    assert fetch(library, stored_cover["url"]).content == CONTENT
    assert client.patch("/publications/1", json={"cover": None}).json()["cover"] is None
