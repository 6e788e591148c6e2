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
