"""The description of other shapes: true, missing, wrong, or another text."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.sandbox.conftest import Service
from tests.sandbox.shapes import PATHS, description, description_name, example, fits, ok, records, shape

pytestmark = pytest.mark.long


def schemas(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = description(client)["components"]["schemas"]
    return found


@pytest.mark.parametrize("resource", PATHS)
def test_every_record_fits_the_description(v3: httpx.Client, resource: str) -> None:
    found = list(records(v3, resource).values())
    assert found
    fits(description(v3), f"{description_name(resource)}List", {"records": found})


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
