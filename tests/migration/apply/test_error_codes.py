"""An error's code says what was not found, not its status alone (service.md#errors, service.md#upload)."""

from __future__ import annotations

import pytest

from pipelines.errors import RefusedError
from pipelines.migration.apply.attachments import is_upload_lost
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair, SomePublications
from tests.migration.verify.test_run import WITH_COVER


def refuse(pair: LibraryPair, status: int, code: str, path: str, *, method: str = "POST", times: int = 1) -> None:
    pair.sandbox.fault("status", pair.target, method=method, path=path, status=status, code=code, times=times)


@pytest.mark.long
@pytest.mark.parametrize("status", [400, 410])
def test_a_lost_upload_is_uploaded_again_at_any_status(pair: LibraryPair, snapshot: Snapshot, status: int) -> None:
    """The document gives the storage-not-found error no status."""
    plan = pair.plan(snapshot)
    refuse(pair, status, "StorageNotFound", "/assets$", times=2)
    applied = pair.apply(plan)
    assert (applied.complete, applied.files_uploaded) == (True, plan.facts.files.upload)
    assets = plan.facts.files.upload - plan.facts.files.covers
    assert sum(len(record["assets"]) for record in pair.publications()) == assets


def test_a_lost_cover_is_uploaded_again(pair: LibraryPair, snapshot: Snapshot) -> None:
    """With the record, and with a change of it."""
    plan = pair.plan(snapshot)
    refuse(pair, 422, "StorageNotFound", "/publications$")
    refuse(pair, 422, "StorageNotFound", "/publications/", method="PATCH", times=2)
    applied = pair.apply(plan, selection=SomePublications(ids=[WITH_COVER]))
    assert (applied.created, applied.failed, applied.files_uploaded) == (1, 0, 2), "the cover and a file"
    assert [record["cover"] is not None for record in pair.publications()] == [True]


@pytest.mark.long
@pytest.mark.parametrize("code", ["RecordNotFound", "RouteNotFound", ""])
def test_another_404_for_a_file_is_refused_and_named(pair: LibraryPair, snapshot: Snapshot, code: str) -> None:
    """It is not uploaded again: the publication or the address may be what was not found."""
    plan = pair.plan(snapshot)
    refuse(pair, 404, code, "/assets$")
    applied = pair.apply(plan)
    assert (applied.failed, applied.created) == (1, RECORDS)
    assert "404" in applied.failures[0].problem
    assert pair.apply(plan).complete


@pytest.mark.parametrize(
    ("code", "lost"),
    [
        ("StorageNotFound", True),
        ("storage_not_found", True),
        ("StorageObjectNotFound", True),
        ("RecordNotFound", False),
        ("StorageFull", False),
        ("", False),
    ],
)
def test_the_code_says_whether_an_upload_was_lost(code: str, lost: bool) -> None:
    assert is_upload_lost(RefusedError("refused", status=404, code=code)) is lost
