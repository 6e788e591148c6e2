"""A6: the address of the signed form of a cover, where the service or its description has another than the documented one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RefusedError
from pipelines.migration.apply.request_forms.known_forms import KnownForms
from pipelines.migration.apply.request_forms.presign_forms import PresignForms
from pipelines.records.files import ASSET, COVER
from pipelines.service.clock import SystemClock
from pipelines.service.files.upload import StorageRefusalError
from pipelines.state.local import LocalState
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair

COVER_FORM, FILE_FORM = "GET /publications/cover/presign", "GET /assets/presign"


class Service:
    """Signs forms at some addresses, and notes which were asked for."""

    def __init__(self, *addresses: str, status: int = 404) -> None:
        self.addresses = addresses
        self.status = status
        self.asked: list[str] = []

    def send(self, address: str) -> dict[str, Any]:
        """Answer a request for a form."""
        self.asked.append(address)
        if address not in self.addresses:
            raise RefusedError("There is no such address.", status=self.status)
        return {"id": address}


def forms(folder: Path, *operations: str) -> PresignForms:
    return PresignForms(
        KnownForms(LocalState(folder / "state.db"), "https://library.example", SystemClock()), operations
    )


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
def test_a_description_decides_where_it_is_clear(tmp_path: Path, operations: tuple[str, ...], address: str) -> None:
    service = Service(address)
    assert forms(tmp_path, *operations).upload(COVER, service.send) == {"id": address}
    assert service.asked == [address]


def test_a_cover_takes_the_form_of_a_file_once_its_own_is_missing(tmp_path: Path) -> None:
    """It is tried once, and known to later runs."""
    service = Service("assets/presign")
    found = forms(tmp_path)
    for _ in range(2):
        assert found.upload(COVER, service.send) == {"id": "assets/presign"}
    forms(tmp_path).upload(COVER, service.send)
    assert service.asked == ["publications/cover/presign", *["assets/presign"] * 3]


def test_where_neither_form_is_there_each_is_tried_once(tmp_path: Path) -> None:
    service = Service()
    for _ in range(2):
        with pytest.raises(RefusedError):
            forms(tmp_path).upload(COVER, service.send)
    assert service.asked == ["publications/cover/presign", "assets/presign", "publications/cover/presign"]


@pytest.mark.parametrize(("kind", "status"), [(COVER, 422), (ASSET, 404)])
def test_a_refused_file_takes_no_other_form(tmp_path: Path, kind: str, status: int) -> None:
    service = Service(status=status)
    with pytest.raises(RefusedError):
        forms(tmp_path).upload(kind, service.send)
    assert len(service.asked) == 1


def test_a_storage_that_refuses_a_cover_says_nothing_of_forms(tmp_path: Path) -> None:
    """Its 404 is not the library's."""
    asked: list[str] = []

    def send(address: str) -> dict[str, Any]:
        asked.append(address)
        raise StorageRefusalError("404 Not Found", status=404)

    for _ in range(2):
        with pytest.raises(StorageRefusalError):
            forms(tmp_path).upload(COVER, send)
    assert asked == ["publications/cover/presign"] * 2


@pytest.mark.long
def test_covers_move_to_a_service_without_a_form_of_theirs(pair: LibraryPair, snapshot: Snapshot) -> None:
    missing = {"status": 404, "code": "NotFound", "times": 1000}
    pair.sandbox.fault("status", pair.target, path="/publications/cover/presign", **missing)
    plan = pair.plan(snapshot)
    assert plan.facts.files.covers > 1
    applied = pair.apply(plan).applied
    assert (applied.failed, applied.lacking.total) == (0, 0)
    assert sum(record["cover"] is not None for record in pair.publications()) == plan.facts.files.covers
    assert pair.plan(snapshot).facts.empty
