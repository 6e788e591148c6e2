"""An error's code says what was not found, not its status alone (service.md#errors, service.md#upload)."""

from __future__ import annotations

import pytest

from pipelines.errors import RefusedError
from pipelines.migration.apply.attachments import is_upload_lost
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair, SomePublications
from tests.migration.verify.test_run import WITH_COVER


def refuse(pair: LibraryPair, status: int, code: str, path: str, *, method: str = "POST", times: int = 1) -> None:
    pair.sandbox.fault("status", pair.target, method=method, path=path, status=status, code=code, times=times)


def test_a_lost_cover_is_uploaded_again(pair: LibraryPair, snapshot: Snapshot) -> None:
    """With the record, and with a change of it."""
    plan = pair.plan(snapshot)
    refuse(pair, 422, "StorageNotFound", "/publications$")
    refuse(pair, 422, "StorageNotFound", "/publications/", method="PATCH", times=2)
    applied = pair.apply(plan, selection=SomePublications(ids=[WITH_COVER]))
    assert (applied.created, applied.failed, applied.files_uploaded) == (1, 0, 2), "the cover and a file"
    assert [record["cover"] is not None for record in pair.publications()] == [True]


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
