"""A verification compares the target with the plan, field by field and file by file, and finds every later change (I6, I12)."""

from __future__ import annotations

import csv
import hashlib
import json
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.errors import ConfigurationError
from pipelines.migration.model.findings import Finding
from pipelines.migration.model.plan import Plan
from pipelines.service.client import open_client
from pipelines.service.files.upload import Uploads
from pipelines.settings.config_file import load_settings
from pipelines.state.local import LocalState
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair
from tests.migration.test_flow import comparable, source_records

WITH_PDF = 85
"""A record of the source that has a file."""


def apply_new_plan(pair: LibraryPair, snapshot: Snapshot) -> Plan:
    """Returns a plan that is applied completely."""
    plan, before = pair.plan(snapshot), pair.requests()
    applied = pair.apply(plan)
    assert (applied.complete, applied.files_uploaded) == (True, plan.facts.files.upload)
    assert pair.requests() - before == applied.requests == plan.facts.requests
    return plan


def target_ids(pair: LibraryPair, plan: Plan) -> dict[int, int]:
    """Id in the source → id in the target."""
    ends = plan.facts.source.base_url, plan.facts.target.base_url
    with pair.migration() as migration, migration.journal(*ends) as journal:
        return {record.source_id: record.target_id for record in journal.written("publications")}


def upload(pair: LibraryPair, content: bytes, described: dict[str, Any], presign: str) -> dict[str, Any]:
    """Upload bytes to the storage under the name and type of another file."""
    settings = load_settings(pair.config)
    metadata = described["metadata"]
    with (
        open_client(settings, "new", state=LocalState(settings.data / "state.db")) as client,
        closing(Uploads(client)) as uploads,
    ):
        return dict(
            uploads.upload(
                lambda: BytesIO(content),
                presign=presign,
                filename=metadata["filename"],
                content_type=metadata["mime_type"],
                size=len(content),
            )
        )


def pdf_of(snapshot: Snapshot, source_id: int) -> bytes:
    """The bytes of the attached file of a record in the source."""
    rows = pq.read_table(snapshot.path / "publication_files.parquet").to_pylist()
    [sha256] = [row["sha256"] for row in rows if (row["publication_id"], row["kind"]) == (source_id, "asset")]
    return (snapshot.path.parents[2] / "files" / "sha256" / sha256[:2] / sha256).read_bytes()


def summary(findings: list[Finding]) -> set[tuple[str, int | None, str]]:
    return {(finding.code, finding.source_id, finding.field) for finding in findings}


@pytest.mark.long
def test_later_changes_by_people_are_findings(pair: LibraryPair, snapshot: Snapshot) -> None:
    """A changed field, a deleted record, a duplicate, a removed file (I6); more of files in test_files.py."""
    plan = apply_new_plan(pair, snapshot)
    in_target = target_ids(pair, plan)
    pair.call("PATCH", f"publications/{in_target[3]}", {"title": "=Another title", "abstract": "New"})
    pair.call("DELETE", f"publications/{in_target[4]}")
    doi = {"type": "doi", "value": "10.1021/nl402145r"}
    twin = pair.call("POST", "publications", {"title": "Twin", "publishable_type": "Article", "identifiers": [doi]})
    pair.call("POST", "publications", {"title": "Somebody's own"})
    pdf = pair.call("GET", f"publications/{in_target[WITH_PDF]}")["assets"][0]
    pair.call("DELETE", f"assets/{pdf['id']}")
    result = pair.verify(plan)
    assert summary(result.findings) == {
        ("duplicated", 2, ""),
        ("differing", 3, "title"),
        ("differing", 3, "abstract"),
        ("missing", 4, ""),
        ("missing", WITH_PDF, "files"),
    }
    assert not result.equal
    assert (result.missing, result.differing, result.duplicated) == (2, 1, 1), "a record that differs counts once"
    assert (result.files.missing, result.files.differing, result.files.duplicated) == (1, 0, 0)
    findings = {(finding.code, finding.source_id, finding.field): finding for finding in result.findings}
    assert findings["duplicated", 2, ""].target_id == twin["id"]
    title = findings["differing", 3, "title"]
    reason = "changed since it was written, or by the service"
    assert (title.wanted, title.found, title.problem) == ("The Dead Key", "=Another title", reason)
    with plan.path(result.table).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert len(rows) == 1 + len(result.findings)
    assert "'=Another title" in {cell for row in rows for cell in row}, "no formula runs (I13)"


@pytest.mark.long
def test_a_file_with_other_bytes_is_found_only_by_its_bytes(pair: LibraryPair, snapshot: Snapshot) -> None:
    """I12: another content may have the same name and size."""
    plan = apply_new_plan(pair, snapshot)
    pdf = pair.call("GET", f"publications/{target_ids(pair, plan)[WITH_PDF]}")["assets"][0]
    altered = bytearray(pdf_of(snapshot, WITH_PDF))
    altered[-1] ^= 1
    pair.call("PATCH", f"assets/{pdf['id']}", {"file": upload(pair, bytes(altered), pdf["file"], "assets/presign")})
    assert pair.verify(plan).equal
    result = pair.verify(plan, contents=True)
    assert summary(result.findings) == {("differing", WITH_PDF, "files")}
    assert (result.equal, result.contents, result.files.differing) == (False, 5, 1)


def test_before_the_apply_every_record_is_missing(pair: LibraryPair, snapshot: Snapshot) -> None:
    """A plan alone moves nothing. The finding names a record of somebody else that may be the missing one."""
    plan = pair.plan(snapshot)
    doi = {"type": "doi", "value": "10.1021/nl402145r"}
    made = pair.call("POST", "publications", {"title": "Made by hand", "identifiers": [doi]})
    result = pair.verify(plan)
    assert (result.equal, result.compared, result.missing, result.files_checked) == (False, RECORDS, RECORDS, 0)
    reasons = {finding.source_id: finding.problem for finding in result.findings}
    assert reasons.pop(2) == f"it was not created yet. It is unknown who created {made['id']}, which may be it"
    assert set(reasons.values()) == {"it was not created yet"}


def check_bag(bag: Path) -> dict[str, str]:
    """Check that a bag is complete and valid (RFC 8493, 3). Returns its tags."""
    assert (bag / "bagit.txt").read_bytes() == b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    hashes = {}
    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        for line in (bag / manifest).read_text("utf-8").splitlines():
            digest, name = line.split("  ", 1)
            hashes[name] = digest
            assert hashlib.sha256((bag / name).read_bytes()).hexdigest() == digest, name
    files = {str(path.relative_to(bag)) for path in bag.rglob("*") if path.is_file()}
    assert files == {*hashes, "tagmanifest-sha256.txt"}, "every file is in a manifest, and no other"
    info = dict(line.split(": ", 1) for line in (bag / "bag-info.txt").read_text("utf-8").splitlines())
    payload = [path.stat().st_size for path in (bag / "data").iterdir()]
    assert info["Payload-Oxum"] == f"{sum(payload)}.{len(payload)}"
    return info


def test_evidence_is_a_complete_and_valid_bag(pair: LibraryPair, snapshot: Snapshot, tmp_path: Path) -> None:
    """It has the plan, the writes, the target's records and the findings (RFC 8493); it overwrites nothing."""
    plan, folder = apply_new_plan(pair, snapshot), tmp_path / "kept" / "evidence"
    result = pair.verify(plan, evidence=folder)
    assert check_bag(folder)["External-Identifier"] == plan.name
    names = {path.name for path in (folder / "data").iterdir()}
    assert {"plan.json", "plan.parquet", "plan.html", "issues.tsv", "conflicts.tsv"} < names
    assert {result.name, result.table, "journal.jsonl", "source-manifest.json", "README.txt"} < names
    target = pq.read_table(folder / "data" / "target-publications.parquet")
    assert target.num_rows == RECORDS
    assert "signature" not in str(target.column("payload").to_pylist()).lower(), (
        "I10: nothing that opens a file is handed on"
    )
    moved = map(json.loads, target.column("payload").to_pylist())
    contents = [sorted(json.dumps(comparable(record)) for record in side) for side in (source_records(snapshot), moved)]
    assert contents[0] == contents[1]
    journal = [json.loads(line) for line in (folder / "data" / "journal.jsonl").read_text().splitlines()]
    assert {(entry["kind"], entry["state"]) for entry in journal} == {
        ("create", "done"),
        ("asset", "done"),
        ("cover", "done"),
    }
    assert not [path for path in folder.parent.iterdir() if path != folder], "nothing is left beside it"
    requests = pair.requests()
    with pytest.raises(ConfigurationError, match="not empty"):
        pair.verify(plan, evidence=folder)
    assert pair.requests() == requests, "checked before any request"
