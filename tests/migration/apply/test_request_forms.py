"""The form of a request: as the operator says, else the target's description, else the document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from pipelines.migration.apply.request_forms import RequestForms
from pipelines.migration.model.field_mapping import FieldMapping
from pipelines.migration.model.journal import Journal
from pipelines.records.files import ASSET, COVER
from pipelines.service.clock import SystemClock
from pipelines.settings.write_requests import RequestSettings
from pipelines.shapes.model import Description
from pipelines.state.local import LocalState
from tests.migration.sample_plans import TYPES

COVER_FORM, FILE_FORM = "GET /publications/cover/presign", "GET /assets/presign"


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(Journal(LocalState(tmp_path / "state.db"), "https://a", "https://b", SystemClock())) as opened:
        yield opened


def forms(journal: Journal, *operations: str, **settings: RequestSettings) -> RequestForms:
    description = Description(address="", learned_at="", operations={operation: [] for operation in operations})
    return RequestForms("new", settings, description, TYPES, journal, lambda _resource, _number: None)


@pytest.mark.parametrize(
    ("operations", "address"),
    [
        ((), "publications/cover/presign"),
        ((COVER_FORM, "GET /covers/presign"), "publications/cover/presign"),
        ((FILE_FORM, "GET /covers/presign"), "covers/presign"),
        ((FILE_FORM, "GET /covers/presign", "GET /cover/presigned"), "publications/cover/presign"),
        ((FILE_FORM, "GET /publications/{}/cover/presign"), "publications/cover/presign"),
        ((FILE_FORM, "POST /covers/presign"), "publications/cover/presign"),
    ],
)
def test_a_description_decides_where_an_upload_is_signed_if_it_is_clear(
    journal: Journal, operations: tuple[str, ...], address: str
) -> None:
    assert forms(journal, *operations).presign(COVER) == address
    assert forms(journal, *operations).presign(ASSET) == "assets/presign"


def test_the_operator_says_where_an_upload_is_signed(journal: Journal) -> None:
    said = RequestSettings(presign="uploads/sign")
    assert forms(journal, FILE_FORM, publications=said).presign(COVER) == "uploads/sign"
    assert forms(journal, FILE_FORM, assets=said).presign(ASSET) == "uploads/sign"


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
