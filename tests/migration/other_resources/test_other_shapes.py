"""Resources of whole other shapes move from version 3 to version 3: as the target's description has them, or else as records show them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pipelines.drill import drill
from pipelines.errors import SafetyLimitError
from pipelines.migration.model.actions import Action
from pipelines.settings.loading import load_settings
from pipelines.store.stores import open_data
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import (
    back_up,
    make_pair,
    plan_rows,
)
from tests.sandbox.process import SandboxProcess

SHAPES: dict[str, Any] = {
    "resources": {
        "authorities": {
            "wrapped": "authority",
            "answer": "id",
            "status": 201,
            "fields": {
                "name": {"from": "name", "required": True},
                "type": {
                    "from": "kind",
                    "values": {"person": "Person", "corporate": "Organisation", "subject": "Topic"},
                    "required": True,
                },
                "aliases": {"from": "variants", "form": "entries", "member": "label"},
                "notes": {"schema": {"type": ["string", "null"]}, "seed": ["a note", None, "another"]},
                "created_at": {
                    "schema": {"type": "string", "format": "date-time"},
                    "seed": ["2019-05-01T10:00:00Z"],
                    "read_only": True,
                },
            },
        },
        "hard_copies": {
            "verb": "PUT",
            "fields": {
                "publication": {
                    "from": "publication_id",
                    "form": "object",
                    "write_as": "publication_id",
                    "required": True,
                },
                "location": {"from": "location_id", "form": "object"},
                "code": {"from": "barcode"},
                "bought": {"from": "acquired_on", "form": "datetime"},
                "shelf": {
                    "schema": {
                        "type": "object",
                        "properties": {"row": {"type": "integer"}, "side": {"type": "string"}},
                    },
                    "seed": [{"row": 1, "side": "left"}, {"row": 2, "side": "right"}],
                },
                "tags": {
                    "schema": {"type": "array", "items": {"type": "string"}},
                    "seed": [["rare"], [], ["old", "torn"]],
                },
            },
        },
        "collections": {
            "fields": {
                "title": {"from": "name", "required": True},
                "summary": {"from": "description"},
                "members": {"from": "publication_ids", "form": "objects", "write_as": "member_ids"},
            }
        },
        "tasks": {
            "fields": {
                "subject": {"from": "title", "required": True},
                "publication": {"from": "publication_id", "form": "object"},
                "assignee": {"from": "assignee_id", "form": "object"},
                "due": {"from": "due_on"},
                "priority": {"schema": {"type": "integer"}, "seed": [1, 2, 3]},
            }
        },
    }
}
"""Other names, enumerations, nested references, added fields, another verb, a key around the record, an id alone as the answer."""

TARGETS = 6
NOW = datetime(2026, 11, 21, 18, tzinfo=UTC)


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return count()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxProcess]:
    """A library, and targets with its users, its locations and its first publication."""
    targets = [f"--tenant=target{number}=real:1" for number in range(TARGETS)]
    with SandboxProcess("--tenant=library=real:40", *targets, "--requests-per-minute", "0") as process:
        yield process


@pytest.fixture
def pair(sandbox: SandboxProcess, numbers: Iterator[int], tmp_path: Path) -> LibraryPair:
    sandbox.reset("faults", "counts")
    return make_pair(tmp_path, sandbox, f"target{next(numbers)}")


def reshape(sandbox: SandboxProcess, description: str) -> None:
    """Give all libraries the other shapes. `description`: `follows` them, or is `missing`, with what then nothing could say left out."""
    shapes = copy.deepcopy(SHAPES)
    resources = shapes["resources"]
    if description == "missing":
        del resources["authorities"]["wrapped"], resources["hard_copies"]["verb"]
        del resources["hard_copies"]["fields"]["publication"]["write_as"]
        del resources["collections"]["fields"]["members"]["write_as"]
    for tenant in ("library", *(f"target{number}" for number in range(TARGETS))):
        sandbox.control("PUT", "settings", {"tenant": tenant, "shapes": {**shapes, "description": description}})


def test_a_drill_takes_the_shapes_of_the_snapshot(pair: LibraryPair, sandbox: SandboxProcess) -> None:
    """NOT PROVED would mean that a record was lost, never that the sandbox guesses other fields."""
    reshape(sandbox, "missing")
    snapshot = back_up(pair, "run")
    settings = load_settings(pair.config)
    result = drill(settings, open_data(settings), snapshot, now=NOW)
    assert (result.ok, result.problems) == (True, [])
    counts = snapshot.counts
    for resource in ("authorities", "hard_copies", "collections", "users", "locations"):
        assert result.resources[resource] == counts[resource]
    assert not [sentence for sentence in result.left if "no place" in sentence and "publications" not in sentence]


def test_what_nothing_describes_is_said_of_what_the_plan_writes(pair: LibraryPair, sandbox: SandboxProcess) -> None:
    """Users, to whom tasks refer, are not written by a plan of tasks."""
    reshape(sandbox, "missing")
    plan = pair.plan(back_up(pair, "run"), resources=("tasks",))
    [note] = [note for note in plan.facts.notes if note.startswith("No description says which fields of ")]
    assert note.startswith("No description says which fields of tasks 'new' takes"), note


def test_a_field_that_the_target_refuses_is_left_out_where_the_operator_says_so(
    pair: LibraryPair, sandbox: SandboxProcess
) -> None:
    """Without a description every field is sent. The refusal shows the setting with the field that nothing proves."""
    reshape(sandbox, "missing")
    narrow = copy.deepcopy(SHAPES)
    del narrow["resources"]["authorities"]["wrapped"], narrow["resources"]["authorities"]["fields"]["notes"]
    shapes = {"description": "missing", "resources": {"authorities": narrow["resources"]["authorities"]}}
    sandbox.control("PUT", "settings", {"tenant": pair.target, "shapes": shapes})
    plan = pair.plan(back_up(pair, "run"), resources=("authorities",))
    assert plan.types["authorities"].unproved == ("notes",)
    try:
        said = " ".join(failure.problem for failure in pair.apply(plan).failures)
    except SafetyLimitError as error:  # too many of the records that were tried by then have the field
        said = str(error)
    assert re.search(r"requests\.authorities\]` (wrapped_in = .*)?leave_out = \[.notes.\]", said), said
    pair.configure('[tenants.new.requests.authorities]\nleave_out = ["notes"]')
    applied = pair.apply(plan)
    assert [failure.problem for failure in applied.failures] == []
    noted = [row for row in plan_rows(plan, "authorities", Action.CREATE) if "notes" in row.payload]
    assert applied.lacking.writes >= len(noted) > 1
    assert "notes: not sent, as `[tenants.new.requests.authorities]` says" in applied.findings[0].problem
