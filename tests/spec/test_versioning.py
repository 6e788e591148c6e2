"""service.md#overview, #v2 and #deprecation: the two versions and their descriptions."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.spec.conftest import Library
from tests.spec.test_publication_record import create


def test_the_version_is_part_of_the_path(library: Library) -> None:
    """service.md#overview: the version is part of the path, /api/v3 and /api/v2."""
    assert "identifiers" in library.v3().get("/publications/1").json()
    assert "doi" in library.v2().get("/publications/1").json()
    assert library.client("/api/v1").get("/publications/1").status_code == 404


def test_the_versions_differ_in_data_model_and_sign_in(library: Library) -> None:
    """service.md#overview: two versions exist side by side, with different data models and sign-ins."""
    assert library.v2().get("/publications/1").json().keys() != library.v3().get("/publications/1").json().keys()
    account = (library.tenant.account.email, library.tenant.account.password)
    assert library.client("/api/v3", auth=account).get("/publications/1").status_code == 401
    headers = {"Authorization": f"Bearer {library.token()}"}
    assert library.client("/api/v2", headers=headers).get("/publications/1").status_code == 401


def test_data_is_json(library: Library) -> None:
    """service.md#overview: data is exchanged as JSON."""
    for client in (library.v2(), library.v3()):
        answers = [client.get("/publications"), client.get("/publications/1"), client.get("/publications/0")]
        answers.append(client.post("/publications", content=json.dumps({"title": "é"}).encode()))
        for answer in answers:
            assert answer.headers["Content-Type"].startswith("application/json")
            answer.json()


@pytest.mark.parametrize("path", ["/publications", "/publications/all", "/publications/1"])
def test_v2_announces_its_deprecated_field(library: Library, path: str) -> None:
    """service.md#deprecation: v2 names the deprecated field `import_state` in `X-API-Deprecation`."""
    assert library.v2().get(path).headers["X-API-Deprecation"] == "import_state"
    assert "X-API-Deprecation" not in library.v3().get(path).headers


def test_v2_announces_its_deprecated_parameters(library: Library) -> None:
    """service.md#deprecation: v2 names the flat identifier parameters, too; v3 does not."""
    path = "/publications?isbn=1&author=x"
    assert library.v2().get(path).headers["X-API-Deprecation"] == "import_state, isbn"
    assert "X-API-Deprecation" not in library.v3().get(path).headers


def test_v2_announces_them_on_writing_too(empty: Library) -> None:
    """service.md#deprecation: v2 names `import_state` in answers to writes, too."""
    client = empty.v2()
    number = create(client)["id"]
    assert client.patch(f"/publications/{number}", json={}).headers["X-API-Deprecation"] == "import_state"


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_every_version_is_described(library: Library, version: str) -> None:
    """service.md#overview: v2 is described at {base_url}/api/v2/swagger.yaml. Assumption: v3 at the same place."""
    answer = library.client(f"/api/{version}").get("/swagger.yaml")
    assert answer.status_code == 200
    document = yaml.safe_load(answer.text)
    assert document["info"]["version"] == version
    assert document["servers"] == [{"url": f"{library.base_url}/api/{version}"}]
    assert "/publications/{id}" in document["paths"]
