"""service.md#deprecation, and the machine-readable description."""

from __future__ import annotations

import pytest
import yaml

from sandbox.app import VERSIONS
from tests.sandbox.conftest import Service


def test_answers_with_publications_name_the_deprecated_field(library: Service) -> None:
    """service.md#deprecation: v2 names the deprecated field `import_state` in `X-API-Deprecation`."""
    for path in ("/publications", "/publications/all", "/publications/1"):
        assert library.get(path).headers["X-API-Deprecation"] == "import_state"


def test_deprecated_parameters_are_named_when_they_are_used(library: Service) -> None:
    """service.md#deprecation: v2 names the flat identifier parameters of the request, too."""
    answer = library.get("/publications?pmid=27493967&author=hua&doi=10.1155/2016/8479587")
    assert answer.headers["X-API-Deprecation"] == "import_state, doi, pmid"


def test_nothing_else_is_deprecated(library: Service) -> None:
    """Errors and the description have no such header."""
    for path in ("/publications/0", "/swagger.yaml", "/nothing"):
        assert "X-API-Deprecation" not in library.get(path).headers


def test_the_description_is_served_without_sign_in(library: Service) -> None:
    """service.md#overview: v2 is described at {base_url}/api/v2/swagger.yaml."""
    with library.client(auth=None) as client:
        answer = client.get("/swagger.yaml")
    assert answer.headers["Content-Type"].startswith("application/yaml")
    document = yaml.safe_load(answer.text)
    assert document["openapi"].startswith("3.")
    assert document["servers"] == [{"url": f"{library.base_url}/api/v2"}]


def test_the_description_has_every_endpoint_that_serves(library: Service) -> None:
    """One declaration makes the endpoint and its description."""
    document = yaml.safe_load(library.get("/swagger.yaml").text)
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    served = {(each.method, each.path) for version in VERSIONS for each in version.endpoints if version.name == "v2"}
    assert described == served
    parameters = {each["name"]: each for each in document["paths"]["/publications"]["get"]["parameters"]}
    assert list(parameters) == [
        "doi", "isbn", "issn", "arxiv_id", "pmid", "author", "category", "year", "query", "page", "per_page",
    ]  # fmt: skip
    assert [name for name, each in parameters.items() if each.get("deprecated")] == [
        "doi", "isbn", "issn", "arxiv_id", "pmid",
    ]  # fmt: skip


def test_every_reference_in_the_description_leads_somewhere(library: Service) -> None:
    """A description contains each schema that it names."""
    document = yaml.safe_load(library.get("/swagger.yaml").text)

    def references(node: object) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if "$ref" in node else []
            return own + [each for value in node.values() for each in references(value)]
        return [each for value in node for each in references(value)] if isinstance(node, list) else []

    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(references(document)) <= known


@pytest.mark.parametrize("path", ["/publications?per_page=50&page=2", "/publications/30"])
def test_records_are_what_the_description_says(library: Service, path: str) -> None:
    """The description has every field of a record, and a record has every required field."""
    document = yaml.safe_load(library.get("/swagger.yaml").text)
    body = library.get(path).json()
    for record in body.get("records", [body]):
        assert list(record) == document["components"]["schemas"]["Publication"]["required"]
