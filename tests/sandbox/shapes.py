"""What the tests of other shapes share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import yaml

from tests.sandbox.conftest import Service
from tests.sandbox.test_control import control

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
EXAMPLE = Path(__file__).with_name("other_shapes.json")
PATHS = {
    "publications": "/publications",
    "users": "/users",
    "hard_copies": "/hard_copies",
    "locations": "/hard_copies/locations",
    "collections": "/collections",
    "authorities": "/authorities",
    "tasks": "/tasks",
}


def shape(service: Service, shapes: object) -> None:
    """Changes the shapes of a running service."""
    answer = control(service, "PUT", "settings", {"shapes": shapes})
    assert answer.status_code == 200, answer.text


def example() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(EXAMPLE.read_text("utf-8"))
    return content


def ok(answer: httpx.Response) -> Any:
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()


def records(client: httpx.Client, resource: str) -> dict[int, dict[str, Any]]:
    """Every record of a resource by its id."""
    found: dict[int, dict[str, Any]] = {}
    for page in range(1, 100):
        part = ok(client.get(PATHS[resource], params={"page": page, "per_page": 50}))["records"]
        found |= {each["id"]: each for each in part}
        if not part:
            break
    return found


def description(client: httpx.Client) -> dict[str, Any]:
    document: dict[str, Any] = yaml.load(client.get("/swagger.yaml").text, Loader=_LOADER)
    return document


def fits(document: Mapping[str, Any], name: str, value: object) -> None:
    """Checks a value against a schema of the description, with a validator that is not the sandbox's."""
    jsonschema.Draft202012Validator({**document, "$ref": f"#/components/schemas/{name}"}).validate(value)


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"]


def description_name(resource: str) -> str:
    """The name of a resource's schemas."""
    return {"authorities": "Authority", "hard_copies": "HardCopy"}.get(resource, resource[:-1].title())
