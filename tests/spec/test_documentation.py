"""service.md#overview: the documentation page and the machine-readable descriptions."""

from __future__ import annotations

import re

import yaml

from tests.spec.conftest import Library


def test_the_page_offers_both_descriptions_for_download(empty: Library) -> None:
    """service.md#overview: the page offers `swagger.yaml` for download, that of v2 too."""
    page = empty.client().get("/api").text
    assert empty.client().post("/api").status_code == 405
    downloads = re.findall(r'href="([^"]+)" download=', page)
    assert downloads == [f"{empty.base_url}/api/{version}/swagger.yaml" for version in ("v3", "v2")]
    for address in downloads:
        answer = empty.client().get(address)
        assert answer.headers["Content-Type"] == "application/yaml"
        assert yaml.safe_load(answer.text)["openapi"] == "3.1.0"


def test_the_description_of_v3_names_the_scopes(empty: Library) -> None:
    """service.md#scopes: each operation names its scope, and the flow names the token endpoint."""
    document = yaml.safe_load(empty.client("/api/v3").get("/swagger.yaml").text)
    assert (document["info"]["version"], document["servers"]) == ("v3", [{"url": f"{empty.base_url}/api/v3"}])
    flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]
    assert flow["tokenUrl"] == f"{empty.base_url}/oauth/token"
    assert sorted(flow["scopes"]) == [
        "assets:read", "assets:write", "library:read", "library:write", "tasks:read", "tasks:write", "users:read", "users:write",
    ]  # fmt: skip
    assert document["paths"]["/publications"]["post"]["security"] == [{"oauth2": ["library:write"]}]
