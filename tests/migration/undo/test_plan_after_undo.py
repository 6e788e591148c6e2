"""The plan after an undo: what undo itself emptied is set again, and nobody is said to have edited it (I8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.migration.model.actions import Action
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import back_up, make_pair, plan_rows, records_of
from tests.sandbox.process import SandboxProcess

RESOURCES = ("users", "collections", "tasks")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[LibraryPair]:
    tenants = ("--tenant=library=real:6", "--tenant=target=empty")
    with SandboxProcess(*tenants, "--requests-per-minute", "0") as sandbox:
        yield make_pair(tmp_path, sandbox, "target")


@pytest.mark.long
def test_references_of_records_that_stayed_are_set_again(pair: LibraryPair) -> None:
    """Tasks, which the service does not delete, and a collection and a publication that people edited; of two plans."""
    snapshot = back_up(pair, "run")
    plans = [pair.plan(snapshot, resources=RESOURCES[:2])]
    pair.apply(plans[0])
    plans.append(pair.plan(snapshot, resources=RESOURCES))
    pair.apply(plans[1])
    collection = next(number for number, record in records_of(pair, "collections").items() if record["publication_ids"])
    pair.call("PATCH", f"collections/{collection}", {"description": "By a librarian"})
    for plan in (*reversed(plans), *reversed(plans)):
        reasons = {(left.resource, left.problem) for left in pair.undo(plan, really=True).findings}
        assert reasons <= {
            ("tasks", "the service deletes no tasks; a person must retire it there"),
            ("collections", "people changed description since"),
        }
    assert {task["publication_id"] for task in records_of(pair, "tasks").values()} == {None}
    new_plan = pair.plan(snapshot, resources=RESOURCES)
    actions = Counter(row.action for row in plan_rows(new_plan, "tasks"))
    assert {*actions} <= {Action.PATCH, Action.UNCHANGED, Action.QUARANTINED}
    assert actions[Action.PATCH]
    conflicts = [row for resource in RESOURCES for row in plan_rows(new_plan, resource, Action.CONFLICT)]
    assert [(row.target_id, row.reason, [*row.differing]) for row in conflicts] == [
        (collection, "edited_in_target", ["description"])
    ]
    assert pair.apply(new_plan).failed == 0
    assert pair.verify(new_plan).as_planned
