"""The verdict as people read it, and its document as later commands read it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pipelines.errors import StorageError
from pipelines.migration.model.findings import Finding
from pipelines.migration.verify.verdict import (
    FileFindings,
    MigrationVerification,
    read_verification,
    verifications,
)
from tests.migration.sample_plans import plan_of

FINDING = Finding(
    code="differing", resource="publications", source_id=7, target_id=17, title="Flatland", field="doi",
    wanted="10.1000/1", found="10.1000/2", problem="somebody changed it",
)  # fmt: skip


RESULT = MigrationVerification(
    plan="plan", tool="0.1.0", verified_at="2026-01-01T00:00:00Z", equal=False, compared=1, missing=0, differing=1,
    duplicated=0, files=FileFindings(), files_checked=0, contents=None, conflicts=0, quarantined=0, skipped=0,
    target_records=1, requests=2, table="verification-1.tsv", findings=[FINDING], as_planned=False,
)  # fmt: skip


def test_the_results_beside_a_plan_are_found_the_oldest_first(tmp_path: Path) -> None:
    """Their names are documented (docs/migrating.md), and stay."""
    plan = plan_of(tmp_path / "plan")
    new = msgspec.structs.replace(RESULT, table="verification-20260102T000000Z.tsv")
    plan.save(new.name, new)
    old = plan.path("verification-20260101T000000Z.json")
    old.write_bytes(msgspec.json.encode(RESULT))
    assert verifications(plan) == [old, plan.path("verification-20260102T000000Z.json")]
    assert read_verification(verifications(plan)[1]) == new


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b"\xff", b"[" * 100_000], ids=["no", "{}", "list", "bytes", "deep"]
)
def test_a_damaged_document_names_itself_and_the_remedy(tmp_path: Path, content: bytes) -> None:
    """The status of a migration reads these documents: it says which one to replace."""
    path = tmp_path / "verification-1.json"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"verification-1\.json is damaged.*Verify again"):
        read_verification(path)
