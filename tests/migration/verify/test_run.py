"""A verification tells what the target holds, field by field and file by file, whoever changed it since (I6, I12)."""

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
from pipelines.migration.model.plan import Plan
from pipelines.migration.verify.verdict import (
    MigrationVerification,
    VerificationFinding,
    read_verification,
    verifications,
)
from pipelines.service.client import open_client
from pipelines.service.files.upload import Presign, Uploads
from pipelines.settings.loading import load_settings
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.moving import Desk

WITH_PDF, WITH_BOTH, WITH_COVER = 85, 89, 92
"""Records of the source that have files: an asset, and both."""


def applied(desk: Desk, snapshot: Snapshot) -> Plan:
    """A plan of which all was written."""
    plan = desk.plan(snapshot)
    assert desk.apply(plan).applied.complete
    return plan


def verified(desk: Desk, plan: Plan, **options: Any) -> MigrationVerification:
    with desk.migration() as migration:
        return migration.verify(plan, **options)


def became(desk: Desk, plan: Plan) -> dict[int, int]:
    """Record of the source → record of the target that was made of it."""
    ends = plan.facts.source.base_url, plan.facts.target.base_url
    with desk.migration() as migration, migration.journal(*ends) as journal:
        return {one.source_id: one.target_id for one in journal.written("publications")}


def upload(desk: Desk, content: bytes, described: dict[str, Any], presign: Presign) -> dict[str, Any]:
    """What somebody sends to the storage, under the name and type of a file."""
    settings = load_settings(desk.config)
    metadata = described["metadata"]
    with (
        open_client(settings, "new", state=settings.data / "state.db") as client,
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


def content(snapshot: Snapshot, source_id: int) -> bytes:
    """The bytes of the attached file of a record of the source."""
    rows = pq.read_table(snapshot.path / "publication_files.parquet").to_pylist()
    [sha256] = [one["sha256"] for one in rows if (one["publication_id"], one["kind"]) == (source_id, "asset")]
    return (snapshot.path.parents[2] / "files" / "sha256" / sha256[:2] / sha256).read_bytes()


def brief(findings: list[VerificationFinding]) -> set[tuple[str, int | None, str]]:
    return {(one.problem, one.source_id, one.field) for one in findings}


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_migration_that_nobody_touched_is_equal(desk: Desk, snapshot: Snapshot) -> None:
    """Every record, every file, by one listing; of the plan's folder nothing changes but what is kept of the result."""
    plan = applied(desk, snapshot)
    before, asked = files_in(plan.folder), desk.requests()
    found = verified(desk, plan, contents=True)
    assert (found.equal, found.compared, found.missing, found.differing, found.duplicated) == (True, RECORDS, 0, 0, 0)
    assert (found.files_checked, found.contents) == (5, 5)
    assert found.requests == desk.requests() - asked == 2, "the addresses of the listing are good for the files, too"
    [kept] = verifications(plan)
    assert read_verification(kept) == found
    after = files_in(plan.folder)
    assert set(after) - set(before) == {kept.name, found.table}
    assert {name: after[name] for name in before} == before


def test_what_people_did_since_is_found_and_told(desk: Desk, snapshot: Snapshot) -> None:
    """A field changed, a record gone, one made twice by hand, a file removed, one attached twice, a cover replaced (I6)."""
    plan = applied(desk, snapshot)
    now = became(desk, plan)
    desk.call("PATCH", f"publications/{now[3]}", {"title": "=Another title", "abstract": "New"})
    desk.call("DELETE", f"publications/{now[4]}")
    doi = {"type": "doi", "value": "10.1021/nl402145r"}
    twin = desk.call("POST", "publications", {"title": "Twin", "publishable_type": "Article", "identifiers": [doi]})
    desk.call("POST", "publications", {"title": "Somebody's own"})
    pdf = desk.call("GET", f"publications/{now[WITH_PDF]}")["assets"][0]
    again = upload(desk, content(snapshot, WITH_PDF), pdf["file"], "assets/presign")
    twice = desk.call("POST", "assets", {"publication_id": now[WITH_PDF], "name": pdf["name"], "file": again})
    both = desk.call("GET", f"publications/{now[WITH_BOTH]}")
    desk.call("DELETE", f"assets/{both['assets'][0]['id']}")
    cover = upload(desk, b"another", both["cover"], "publications/cover/presign")
    desk.call("PATCH", f"publications/{now[WITH_COVER]}", {"cover": cover})
    found = verified(desk, plan)
    assert brief(found.findings) == {
        ("duplicated", 2, ""),
        ("differing", 3, "title"),
        ("differing", 3, "abstract"),
        ("missing", 4, ""),
        ("duplicated", WITH_PDF, "files"),
        ("missing", WITH_BOTH, "files"),
        ("differing", WITH_COVER, "cover"),
    }
    assert not found.equal
    assert (found.missing, found.differing, found.duplicated) == (2, 2, 2), "a record that differs counts once"
    assert (found.files.missing, found.files.differing, found.files.duplicated) == (1, 1, 1)
    by = {(one.problem, one.source_id, one.field): one for one in found.findings}
    assert by["duplicated", 2, ""].target_id == twin["id"]
    assert str(twice["id"]) in by["duplicated", WITH_PDF, "files"].why
    title = by["differing", 3, "title"]
    why = "changed since it was written, or by the service"
    assert (title.wanted, title.found, title.why) == ("The Dead Key", "=Another title", why)
    assert str(title) == (
        f"publications 3 → {now[3]} (The Dead Key): title differing, wanted «The Dead Key», found «=Another title»; changed since it "
        "was written, or by the service"
    )
    with plan.path(found.table).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert len(rows) == 1 + len(found.findings)
    assert "'=Another title" in {cell for row in rows for cell in row}, "no formula runs (I13)"


def test_a_file_with_other_bytes_is_found_by_its_bytes_alone(desk: Desk, snapshot: Snapshot) -> None:
    """I12: the same name and size say nothing of the content."""
    plan = applied(desk, snapshot)
    pdf = desk.call("GET", f"publications/{became(desk, plan)[WITH_PDF]}")["assets"][0]
    altered = bytearray(content(snapshot, WITH_PDF))
    altered[-1] ^= 1
    desk.call("PATCH", f"assets/{pdf['id']}", {"file": upload(desk, bytes(altered), pdf["file"], "assets/presign")})
    assert verified(desk, plan).equal
    found = verified(desk, plan, contents=True)
    assert brief(found.findings) == {("differing", WITH_PDF, "files")}
    assert (found.equal, found.contents, found.files.differing) == (False, 5, 1)


def test_what_was_never_applied_is_missing(desk: Desk, snapshot: Snapshot) -> None:
    """A plan alone has moved nothing; a record that somebody else made meanwhile may be what is missing, and is told with it."""
    plan = desk.plan(snapshot)
    doi = {"type": "doi", "value": "10.1021/nl402145r"}
    made = desk.call("POST", "publications", {"title": "Made by hand", "identifiers": [doi]})
    found = verified(desk, plan)
    assert (found.equal, found.compared, found.missing, found.files_checked) == (False, RECORDS, RECORDS, 0)
    told = {one.source_id: one.why for one in found.findings}
    assert told.pop(2) == f"it was not created yet. Nobody knows who made {made['id']}, which may be it"
    assert set(told.values()) == {"it was not created yet"}


def checked(bag: Path) -> dict[str, str]:
    """The tags of a bag that is whole and valid: RFC 8493, 3, on complete and valid bags."""
    assert (bag / "bagit.txt").read_bytes() == b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    hashes = {}
    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        for line in (bag / manifest).read_text("utf-8").splitlines():
            digest, name = line.split("  ", 1)
            hashes[name] = digest
            assert hashlib.sha256((bag / name).read_bytes()).hexdigest() == digest, name
    there = {str(path.relative_to(bag)) for path in bag.rglob("*") if path.is_file()}
    assert there == {*hashes, "tagmanifest-sha256.txt"}, "every file is in a manifest, and no other"
    info = dict(line.split(": ", 1) for line in (bag / "bag-info.txt").read_text("utf-8").splitlines())
    payload = [path.stat().st_size for path in (bag / "data").iterdir()]
    assert info["Payload-Oxum"] == f"{sum(payload)}.{len(payload)}"
    return info


def test_evidence_is_a_bag_that_proves_itself(desk: Desk, snapshot: Snapshot, tmp_path: Path) -> None:
    """All that was planned, written, read and found, by RFC 8493; nothing is overwritten."""
    plan, folder = applied(desk, snapshot), tmp_path / "kept" / "evidence"
    found = verified(desk, plan, evidence=folder)
    assert checked(folder)["External-Identifier"] == plan.name
    kept = {path.name for path in (folder / "data").iterdir()}
    assert {"plan.json", "plan.parquet", "plan.md", "plan.html", "issues.tsv", "conflicts.tsv"} < kept
    assert {found.name, found.table, "journal.jsonl", "source-manifest.json", "README.txt"} < kept
    shown = pq.read_table(folder / "data" / "target-publications.parquet")
    assert shown.num_rows == RECORDS
    assert "signature" not in str(shown.column("payload").to_pylist()).lower(), (
        "I10: nothing that opens a file is handed on"
    )
    assert {json.loads(one)["title"] for one in shown.column("payload").to_pylist()} == {
        one["title"] for one in desk.held()
    }
    journal = [json.loads(line) for line in (folder / "data" / "journal.jsonl").read_text().splitlines()]
    assert {(one["kind"], one["state"]) for one in journal} == {
        ("create", "done"),
        ("asset", "done"),
        ("cover", "done"),
    }
    assert not [path for path in folder.parent.iterdir() if path != folder], "nothing is left beside it"
    asked = desk.requests()
    with pytest.raises(ConfigurationError, match="not empty"):
        verified(desk, plan, evidence=folder)
    assert desk.requests() == asked, "that is known before anything is read"
