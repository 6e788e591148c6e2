"""The form of the requests that remove members from lists, which the target's description says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from pipelines.migration.apply.request_forms import RequestForms
from pipelines.migration.model.field_mapping import FieldMapping
from pipelines.migration.model.journal import Journal
from pipelines.service.clock import SystemClock
from pipelines.shapes.model import Description
from pipelines.state.local import LocalState
from tests.migration.sample_plans import TYPES


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal(LocalState(tmp_path / "state.db"), "https://a", "https://b", SystemClock())) as opened:
        yield opened


@pytest.mark.parametrize(
    ("operation", "entry", "is_taken"),
    [
        ("DELETE /collections/{}/publications/{}", ["id", "title"], True),
        ("DELETE /collections/{}/publications/{}", ["publication_id"], True),
        ("DELETE /collections/{}/publications/{}", ["id", "publication_id"], False),
        ("DELETE /collections/{}/publications/{}", [], False),
        ("DELETE /collections/{}", ["id", "title"], False),
    ],
)
def test_a_member_is_removed_where_the_description_leaves_no_doubt_of_its_address(
    journal: Journal, operation: str, entry: list[str], *, is_taken: bool
) -> None:
    """The number of an entry is no number of a publication."""
    field = FieldMapping(leads_to="publications", many=True, post="publications publication_id")
    types = {"collections": msgspec.structs.replace(TYPES["collections"], fields={"publication_ids": field})}
    lists = {"/collections/{}/publications": entry}
    described = Description(address="", learned_at="", operations={operation: []}, lists=lists)
    form = RequestForms("new", {}, described, types, journal, lambda _resource, _number: None)
    assert form.removes("collections", "publication_ids") is is_taken
