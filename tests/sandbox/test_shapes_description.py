"""The description of other shapes: true, missing, wrong, or another text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.conftest import Service
from tests.sandbox.process import SandboxProcess
from tests.sandbox.shapes import PATHS, description, description_name, example, fits, ok, records, shape


def schemas(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = description(client)["components"]["schemas"]
    return found


@pytest.mark.parametrize("resource", PATHS)
def test_every_record_fits_the_description(v3: httpx.Client, resource: str) -> None:
    found = list(records(v3, resource).values())
    assert found
    fits(description(v3), f"{description_name(resource)}List", {"records": found})


def test_the_description_has_fields_words_and_what_is_read_only(v3: httpx.Client) -> None:
    document = schemas(v3)
    assert list(document["HardCopy"]["properties"]) == ["id", "publication", "location", "bought_at", "shelf"]
    payload = document["AuthorityCreate"]["properties"]["authority"]
    assert (list(payload["properties"]), payload["required"]) == (["name", "type", "aliases", "notes"], ["name"])
    assert payload["properties"]["type"]["enum"] == ["Person", "Organisation", "Topic"]
    assert document["Authority"]["properties"]["created_at"]["readOnly"]
    assert list(document["CollectionCreate"]["properties"]) == ["title", "member_ids"]


def test_the_description_has_methods_addresses_and_answers(v3: httpx.Client) -> None:
    document = description(v3)
    assert set(document["paths"]["/authorities/{id}"]) == {"put"}
    assert set(document["paths"]["/authorities/{id}/merges"]) == {"post"}
    assert "/authorities/{id}/merge" not in document["paths"]
    responses = document["paths"]["/authorities"]["post"]["responses"]
    assert "200" not in responses
    fits(document, responses["201"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2], {"id": 5})
    assert document["components"]["schemas"]["AuthorityMerge"]["required"] == ["target_id"]


def test_the_page_shows_the_same(shaped: Service, v3: httpx.Client) -> None:
    page = v3.get(f"{shaped.base_url}/api").text
    assert "/authorities/{id}/merges" in page
    assert "member_ids" in page


def test_a_description_may_be_missing_or_another_text(shaped: Service, v3: httpx.Client) -> None:
    shape(shaped, {**example(), "description": "missing"})
    assert v3.get("/swagger.yaml").status_code == 404
    assert 1 in records(v3, "authorities")
    shape(shaped, {**example(), "description": {"text": "- no: [description"}})
    assert ok_text(v3) == "- no: [description"


def ok_text(client: httpx.Client) -> str:
    answer = client.get("/swagger.yaml")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/yaml")
    return answer.text


def test_a_description_may_lie(shaped: Service, v3: httpx.Client) -> None:
    """A field has another schema, is missing, or is invented; what the sandbox accepts and answers stays as it was."""
    true = schemas(v3)
    lies = {
        "authorities": {"type": {"type": "integer"}, "name": None, "colour": {"type": "string"}},
        "hard_copies": {"location": {"type": "string"}},
        "tasks": {"title": {"type": "boolean"}},
    }
    shape(shaped, {**example(), "description": {"lies": lies}})
    told = schemas(v3)
    for schema in (told["Authority"], told["AuthorityCreate"]["properties"]["authority"]):
        assert schema["properties"]["type"] == {"type": "integer"}
        assert "name" not in schema["properties"]
        assert "name" not in schema.get("required", [])
        assert schema["properties"]["colour"] == {"type": "string"}
    assert told["TaskChange"]["properties"]["title"] == {"type": "boolean"}
    assert told["HardCopyCreate"]["properties"]["location"] == {"type": "string"}
    assert told["Collection"] == true["Collection"]
    assert ok(v3.post("/authorities", json={"authority": {"name": "A", "type": "Topic"}}))
    assert v3.post("/authorities", json={"authority": {"name": "A", "colour": "red"}}).status_code == 422
    assert ok(v3.post("/tasks", json={"title": "Dust"}))["title"] == "Dust"


def test_a_description_may_be_a_file_beside_the_shapes(tmp_path: Path) -> None:
    (tmp_path / "shapes.json").write_text(json.dumps({**example(), "description": {"file": "other.yaml"}}))
    (tmp_path / "other.yaml").write_text("openapi: 3.0.0\n")
    with SandboxProcess("--tenant", "library=empty", "--shapes", str(tmp_path / "shapes.json")) as sandbox:
        answer = httpx.get(f"{sandbox.base_url()}/api/v3/swagger.yaml")
    assert answer.text == "openapi: 3.0.0\n"
