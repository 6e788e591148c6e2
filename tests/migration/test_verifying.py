"""A verification tells what the target holds, field by field and file by file, whoever changed it since (I8, I12, trap B2)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.migrating import Migration
from pipelines.migration.plans import Plan
from pipelines.migration.verifying import Finding, Verification, read_verification, verifications
from tests.migration.moved import RECORDS, Moved, tenants, upload
from tests.sandbox.process import SandboxProcess

TARGETS = ("quiet", "busy", "swapped", "untouched", "half")

WITH_PDF, WITH_COVER, WITH_BOTH = 85, 92, 89
"""Records of the source that have files: an asset; both; both."""


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    with pytest.MonkeyPatch.context() as patch, SandboxProcess(*tenants(*TARGETS)) as sandbox:
        patch.setenv("TEST_USER", sandbox.user)
        patch.setenv("TEST_PASSWORD", sandbox.password)
        yield Moved(tmp_path_factory.mktemp("verifying"), sandbox, *TARGETS)


def verified(moved: Moved, plan: Plan, **options: Any) -> Verification:
    with Migration(moved.settings) as migration:
        return migration.verify(plan, **options)


def brief(findings: list[Finding]) -> set[tuple[str, int | None, str]]:
    return {(one.problem, one.source_id, one.field) for one in findings}


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_migration_that_nobody_touched_is_equal(moved: Moved) -> None:
    """Every record, every file, by one listing; of the plan's folder nothing changes but what is kept of the result."""
    plan = moved.applied("quiet")
    before = files_in(plan.folder)
    found = verified(moved, plan, contents=True)
    assert (found.equal, found.compared, found.missing, found.differing, found.duplicated) == (True, RECORDS, 0, 0, 0)
    assert (found.files_checked, found.contents) == (5, 5)
    assert found.requests == RECORDS // 50, "the addresses of the listing are good for the files, too"
    [kept] = verifications(plan)
    assert read_verification(kept) == found
    after = files_in(plan.folder)
    assert set(after) - set(before) == {kept.name, found.table}
    assert {name: after[name] for name in before} == before


def test_what_people_did_since_is_found_and_told(moved: Moved) -> None:
    """A field changed, a record gone, one made twice by hand, a file removed, one attached twice, a cover replaced (trap B2)."""
    plan = moved.applied("busy")
    became = moved.became(plan)
    doi = {"type": "doi", "value": "10.1021/nl402145r"}
    with moved.people("busy") as client:
        client.write("PATCH", f"publications/{became[3]}", {"title": "=Another title", "published_on": None})
        client.write("DELETE", f"publications/{became[4]}")
        twin = client.write(
            "POST", "publications", {"title": "Twin", "publishable_type": "Article", "identifiers": [doi]}
        )
        client.write("POST", "publications", {"title": "Somebody's own"})
        pdf = client.get_record(f"publications/{became[WITH_PDF]}")["assets"][0]
        content = moved.content(WITH_PDF, "asset")
        again = upload(client, content, pdf["file"]["metadata"]["filename"], pdf["content_type"], "assets/presign")
        body = {"publication_id": became[WITH_PDF], "name": pdf["name"], "file": again}
        twice = client.write("POST", "assets", body)
        gone = client.get_record(f"publications/{became[WITH_BOTH]}")["assets"][0]
        client.write("DELETE", f"assets/{gone['id']}")
        cover = upload(client, b"another", "other.png", "image/png", "publications/cover/presign")
        client.write("PATCH", f"publications/{became[WITH_COVER]}", {"cover": cover})
    found = verified(moved, plan)
    assert brief(found.findings) == {
        ("duplicated", 2, ""),
        ("differing", 3, "title"),
        ("differing", 3, "published_on"),
        ("missing", 4, ""),
        ("duplicated", WITH_PDF, "files"),
        ("missing", WITH_BOTH, "files"),
        ("differing", WITH_COVER, "cover"),
    } - ({("differing", 3, "published_on")} if moved.source()[3]["published_on"] in (None, "2015") else set())
    assert not found.equal
    assert (found.missing, found.differing, found.duplicated) == (2, 2, 2), "a record that differs counts once"
    assert (found.files.missing, found.files.differing, found.files.duplicated) == (1, 1, 1)
    by = {(one.problem, one.source_id): one for one in found.findings}
    assert by["duplicated", 2].target_id == twin["id"]
    assert str(twice["id"]) in by["duplicated", WITH_PDF].why
    title = by["differing", 3]
    assert (title.wanted, title.found, title.why) == ("The Dead Key", "=Another title", "changed since it was written")
    with plan.path(found.table).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert len(rows) == 1 + len(found.findings)
    assert "'=Another title" in {cell for row in rows for cell in row}, "no formula runs (I13)"


def test_a_file_with_other_bytes_is_found_by_its_bytes_alone(moved: Moved) -> None:
    """I12: the same name and size say nothing of the content."""
    plan = moved.applied("swapped")
    became = moved.became(plan)
    with moved.people("swapped") as client:
        pdf = client.get_record(f"publications/{became[WITH_PDF]}")["assets"][0]
        altered = bytearray(moved.content(WITH_PDF, "asset"))
        altered[-1] ^= 1
        swapped = upload(
            client, bytes(altered), pdf["file"]["metadata"]["filename"], pdf["content_type"], "assets/presign"
        )
        client.write("PATCH", f"assets/{pdf['id']}", {"file": swapped})
    assert verified(moved, plan).equal
    found = verified(moved, plan, contents=True)
    assert brief(found.findings) == {("differing", WITH_PDF, "files")}
    assert (found.equal, found.contents, found.files.differing) == (False, 5, 1)


def test_what_was_never_applied_is_missing(moved: Moved) -> None:
    """A plan alone has moved nothing."""
    found = verified(moved, moved.plan("untouched"))
    assert (found.equal, found.compared, found.missing, found.files_checked) == (False, RECORDS, RECORDS, 0)
    assert {one.why for one in found.findings} == {"it was not created yet"}
