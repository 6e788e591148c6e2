"""service.md#overview: the documentation page and the machine-readable descriptions."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from sandbox.app import VERSIONS
from tests.spec.conftest import Library


def description(library: Library, version: str) -> dict[str, Any]:
    """Returns the parsed ``swagger.yaml`` of a version."""
    document: dict[str, Any] = yaml.safe_load(library.client(f"/api/{version}").get("/swagger.yaml").text)
    return document


@pytest.mark.parametrize("path", ["/api", "/api/"])
def test_the_page_needs_no_sign_in(empty: Library, path: str) -> None:
    """service.md#overview: {base_url}/api serves an interactive documentation."""
    answer = empty.client().get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert empty.client().post(path).status_code == 405


def test_the_page_offers_both_descriptions_for_download(empty: Library) -> None:
    """service.md#overview: the page offers `swagger.yaml` for download, that of v2 too."""
    page = empty.client().get("/api").text
    downloads = re.findall(r'href="([^"]+)" download=', page)
    assert downloads == [f"{empty.base_url}/api/{version}/swagger.yaml" for version in ("v3", "v2")]
    for address in downloads:
        answer = empty.client().get(address)
        assert answer.headers["Content-Type"] == "application/yaml"
        assert yaml.safe_load(answer.text)["openapi"] == "3.1.0"


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
def test_the_description_has_every_endpoint_that_serves(empty: Library, version: Any) -> None:
    """One declaration makes the endpoint and its description."""
    document = description(empty, version.name)
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert described == {(each.method, each.path) for each in version.endpoints}


def test_the_description_of_v3_names_the_scopes(empty: Library) -> None:
    """service.md#scopes: each operation names its scope, and the flow names the token endpoint."""
    document = description(empty, "v3")
    flow = document["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]
    assert flow["tokenUrl"] == f"{empty.base_url}/oauth/token"
    assert sorted(flow["scopes"]) == [
        "assets:read", "assets:write", "library:read", "library:write", "tasks:read", "tasks:write", "users:read", "users:write",
    ]  # fmt: skip
    assert document["paths"]["/publications"]["post"]["security"] == [{"oauth2": ["library:write"]}]
