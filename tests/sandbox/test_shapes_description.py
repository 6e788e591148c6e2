"""Other shapes (sandbox/README.md): the description that the sandbox shows of them is true."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.spec.conftest import Library, make_library

__all__ = ["make_library"]  # a fixture

SCHEMAS = {
    "publications": "Publication",
    "users": "User",
    "hard_copies": "HardCopy",
    "hard_copies/locations": "Location",
    "collections": "Collection",
    "authorities": "Authority",
    "tasks": "Task",
}


@pytest.mark.long
def test_every_record_fits_the_description(make_library: Callable[..., Library]) -> None:
    """By a validator that is not the sandbox's."""
    shapes = Path(__file__).with_name("other_shapes.json").read_text("utf-8")
    v3 = make_library(60, shapes=shapes).v3()
    document: dict[str, Any] = yaml.safe_load(v3.get("/swagger.yaml").text)
    for path, schema in SCHEMAS.items():
        page = v3.get(f"/{path}", params={"per_page": 50}).json()
        assert page["records"], path
        jsonschema.Draft202012Validator({**document, "$ref": f"#/components/schemas/{schema}List"}).validate(page)
