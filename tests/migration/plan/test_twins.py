"""Records that the target has twice, because a request took effect late (I8): only equal ones, and never what was there before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.migration.model.comparable import Side
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.plan import TARGET
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import PUBLICATIONS, RESOURCE_TYPES
from pipelines.migration.plan.comparison import write_side
from pipelines.migration.plan.twins import find_twins
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.service.clock import SystemClock
from tests.migration.sample_plans import plan_of
from tests.state_places import Place

MAPS = {"name": "Maps", "title": "Maps", "description": "Of the coast", "abstract": "Of the coast"}
OTHERS = {**MAPS, "description": "Of the hills", "abstract": "Of the hills"}
IN_TARGET = {1: MAPS, 2: MAPS, 3: OTHERS, 4: {"name": "Maps", "title": "Maps"}, 5: MAPS, 6: MAPS}
"""Ours, its twin, two that differ, one that was there before, and one of another entry."""

Find = Callable[..., list[tuple[int, int, list[int]]]]


@pytest.fixture(params=["publications", "collections"])
def find(request: pytest.FixtureRequest, tmp_path: Path, place: Place) -> Find:
    """Returns source, target and twins of what two entries created."""
    resource = request.param

    def run(records: dict[int, dict[str, str]] = IN_TARGET) -> list[tuple[int, int, list[int]]]:
        clock, side = SystemClock(), Side(tmp_path / "now", resource)
        resource_type = publication_type(STANDARD_KINDS) if resource == PUBLICATIONS else RESOURCE_TYPES[resource]
        write_side(side, ({"id": number, **fields} for number, fields in records.items()), resource_type)
        with closing(Journal(place.state(clock), "https://a", "https://b", clock)) as journal:
            for source_id, target_id in ((10, 1), (11, 6)):
                number = journal.intend("plan", resource, source_id, WriteKind.CREATE)
                journal.done(number, target_id=target_id)
            plan = plan_of(tmp_path / f"{len([*tmp_path.iterdir()])}" / "plan")
            write_side(plan.side(TARGET, resource), [{"id": 5, **MAPS}], resource_type)
            twins = find_twins(journal, side.folder, [resource], {"plan": plan})
            return [(twin.source_id, twin.target_id, twin.twins) for twin in twins]

    return run


def test_a_twin_equals_what_a_plan_created(find: Find) -> None:
    assert find() == [(10, 1, [2])]


@pytest.mark.long
def test_many_twins_of_many_records_are_found_at_once(find: Find) -> None:
    """Not each with each."""
    records = dict.fromkeys((*range(1, 7), *range(100, 20_100)), MAPS)
    assert len(find(records)) == 20_000 + 3
