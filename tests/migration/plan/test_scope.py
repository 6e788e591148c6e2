"""What a person reads where a snapshot lacks what a plan is to move, and why a record cannot be sent."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pipelines.errors import ConfigurationError
from pipelines.migration.model.field_mapping import plain
from pipelines.migration.model.resource_types import RESOURCE_TYPES, FieldRule
from pipelines.migration.plan.mapped_references import mapped
from pipelines.migration.plan.scope import chosen_other_resources
from pipelines.store.snapshots.snapshots import DataFolder
from tests.store.snapshot_factory import make_snapshot

COLLECTION = msgspec.structs.replace(
    RESOURCE_TYPES["collections"],
    required=("kind",),
    fields=plain("name", "kind"),
    takes={"kind": FieldRule(("list", "shelf"))},
)


@pytest.mark.parametrize(
    ("api", "words", "other_words"),
    [
        ("v2", "lists of version 2 do not have them; a backup over version 3", "was not asked"),
        ("v3", "was not asked for them, or could not read them", "version 2"),
    ],
)
def test_what_a_snapshot_lacks_is_explained_by_its_own_version(
    tmp_path: Path, api: str, words: str, other_words: str
) -> None:
    snapshot = make_snapshot(DataFolder(tmp_path))
    snapshot.manifest.api = api
    with pytest.raises(ConfigurationError) as raised:
        chosen_other_resources(snapshot, ["hard_copies"])
    assert words in str(raised.value)
    assert other_words not in str(raised.value)
    assert "--resources publications,locations,hard_copies`" in str(raised.value)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"name": "A"}, "required_missing"),
        ({"name": "A", "kind": "heap"}, "required_not_taken"),
        ({"name": "A", "kind": "list"}, None),
    ],
)
def test_a_field_that_is_filled_is_not_to_be_filled(record: dict[str, str], reason: str | None) -> None:
    form = COLLECTION.form({"id": 1, **record})
    assert mapped(COLLECTION, form, lambda _resource, _number: (False, None)).reason == reason
