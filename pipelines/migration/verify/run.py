"""Proves a migration: the target, read again in bulk, must hold what the plan says, each record once and every field of it.

The result is kept, dated, beside the plan: a JSON document with the numbers and the first findings, and a table with all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Protocol

import msgspec

from pipelines.errors import StorageError
from pipelines.humanize import MOST_LISTED
from pipelines.migration.model.comparable import ComparableLibrary
from pipelines.migration.model.formatting import display_both, value_of
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import CONFLICT, QUARANTINED, SKIPPED, Plan
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.verify.discrepancies import (
    DIFFERING,
    DUPLICATED,
    MISSING,
    UNREAD,
    Discrepancies,
    Discrepancy,
    compare_with_target,
)
from pipelines.migration.verify.files import check_files
from pipelines.records.forms import WRITTEN
from pipelines.report.issues import LONGEST, shown, write_lines
from pipelines.service.client import LibraryClient
from pipelines.store.durable import storage_errors, sync_file, write_atomically
from pipelines.version import VERSION

PREFIX = "verification-"
COLUMNS = ("problem", "resource", "record", "in the target", "title", "field", "wanted", "found", "what is known")


class VerificationFinding(msgspec.Struct, kw_only=True):
    """One difference. `field`: empty where it is the record, `files` or `cover` where it is a file."""

    problem: str
    """missing, differing, duplicated or unread."""
    resource: str
    source_id: int | None
    target_id: int | None
    title: str
    field: str
    wanted: str
    found: str
    why: str

    def __str__(self) -> str:
        """In a line for people."""
        numbers = " → ".join(str(one) for one in (self.source_id, self.target_id) if one is not None)
        what = f"{self.resource} {numbers} ({self.title}): {self.field + ' ' if self.field else ''}{self.problem}"
        values = f", wanted «{self.wanted}», found «{self.found}»" if self.wanted or self.found else ""
        return f"{what}{values}; {self.why}"


class OtherResources(Protocol):
    """What the other resources of a plan come to: others_verifying.py."""

    @property
    def compared(self) -> int:
        """Records that should be there."""

    def counts(self) -> Counter[str]:
        """Problem → records."""

    def findings(self) -> Iterator[VerificationFinding]:
        """Every difference; the same each time."""


class FileFindings(msgspec.Struct, kw_only=True):
    """How many of the differences are files."""

    missing: int = 0
    differing: int = 0
    duplicated: int = 0
    unread: int = 0
    """Files whose bytes could not be fetched: nothing is proved of them."""


class MigrationVerification(msgspec.Struct, kw_only=True):
    """What a verification found."""

    plan: str
    tool: str
    verified_at: str
    equal: bool
    """Whether nothing is missing, differing, there twice or unread."""
    compared: int
    """Records that should be in the target."""
    missing: int
    """Records and files; so are `differing` and `duplicated`."""
    differing: int
    duplicated: int
    files: FileFindings
    files_checked: int
    contents: int | None
    """Files whose bytes were compared; nothing where nobody asked for that."""
    conflicts: int
    """Records that a person has to decide; these, and the next two, are no differences."""
    quarantined: int
    skipped: int
    target_records: int
    requests: int
    table: str
    """Name of the table of all findings, beside the plan."""
    findings: list[VerificationFinding]
    """The first of them."""

    @property
    def name(self) -> str:
        """Name of the document that it is, beside the plan."""
        return self.table.replace(".tsv", ".json")


def verify(
    plan: Plan,
    journal: Journal,
    now: ComparableLibrary,
    room: Path,
    *,
    at: datetime,
    client: LibraryClient,
    check_contents: Callable[[Discrepancies], int] | None = None,
    others: OtherResources,
) -> MigrationVerification:
    """Hold a plan against the target as it is `now`, and keep the result beside the plan. `room`: a folder for what is needed meanwhile.

    `check_contents` adds what the bytes of the files tell, and returns how many it compared. `others`: what is found of other resources.
    """
    with compare_with_target(plan, now, room, journal) as discrepancies:
        files = check_files(discrepancies)
        contents = check_contents(discrepancies) if check_contents is not None else None
        counts = Counter(discrepancies.counts())
        counts.update({(problem, False): count for problem, count in others.counts().items()})
        compared, name = discrepancies.compared() + others.compared, _free_name(plan, at)
        findings = _write_table(plan.path(f"{name}.tsv"), discrepancies, others)
    facts = plan.facts
    found = MigrationVerification(
        plan=plan.name,
        tool=f"bookferry {VERSION}",
        verified_at=at.isoformat(timespec="seconds"),
        equal=not counts,
        compared=compared,
        **{problem: counts.get((problem, False), 0) + counts.get((problem, True), 0) for problem in _RECORDS_TOO},
        files=FileFindings(**{problem: counts.get((problem, True), 0) for problem in (*_RECORDS_TOO, UNREAD)}),
        files_checked=files,
        contents=contents,
        conflicts=facts.count(CONFLICT),
        quarantined=facts.count(QUARANTINED) + facts.unfit,
        skipped=facts.count(SKIPPED),
        target_records=now.records,
        requests=client.requests,
        table=f"{name}.tsv",
        findings=findings,
    )
    with storage_errors(plan.folder):
        write_atomically(plan.path(found.name), msgspec.json.format(msgspec.json.encode(found)))
    return found


_RECORDS_TOO = (MISSING, DIFFERING, DUPLICATED)


def verifications(plan: Plan) -> list[Path]:
    """The results that are kept of a plan, oldest first."""
    return sorted(plan.folder.glob(f"{PREFIX}*.json"))


def read_verification(path: Path) -> MigrationVerification:
    """One of them. Raises `StorageError` for one that cannot be read."""
    try:
        with storage_errors(path):
            return msgspec.json.decode(path.read_bytes(), type=MigrationVerification)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(f"{path} is damaged, or of another version of Bookferry ({error}). Verify again.") from None


def _free_name(plan: Plan, at: datetime) -> str:
    """What nothing beside the plan is called yet."""
    moment = at.astimezone(UTC)
    while plan.path(f"{PREFIX}{moment:%Y%m%dT%H%M%SZ}.json").exists():
        moment += timedelta(seconds=1)
    return f"{PREFIX}{moment:%Y%m%dT%H%M%SZ}"


def _write_table(path: Path, discrepancies: Discrepancies, others: OtherResources) -> list[VerificationFinding]:
    """Every finding a line; the first ones are returned."""
    first: list[VerificationFinding] = []

    def lines() -> Iterator[tuple[str | int, ...]]:
        publications = (_finding(found, title) for found, title in discrepancies.told())
        for one in chain(publications, others.findings()):
            if len(first) < MOST_LISTED:
                first.append(one)
            numbers = ("" if number is None else number for number in (one.source_id, one.target_id))
            yield one.problem, one.resource, *numbers, one.title, one.field, one.wanted, one.found, one.why

    with storage_errors(path), ExitStack() as stack:
        growing = path.with_name(f".{path.name}")
        stack.callback(growing.unlink, missing_ok=True)
        with growing.open("w", encoding="utf-8", newline="") as file:
            write_lines(COLUMNS, lines(), file)
        sync_file(growing)
        growing.replace(path)
    return first


def _finding(one: Discrepancy, title: str | None) -> VerificationFinding:
    wanted, found = one.wanted or "", one.found or ""
    if one.field in WRITTEN:
        wanted, found = display_both(one.field, value_of(one.wanted), value_of(one.found), LONGEST)
    return VerificationFinding(
        problem=one.problem,
        resource=PUBLICATIONS,
        source_id=one.source_id,
        target_id=one.target_id,
        title=shown(title or "", LONGEST),
        field=one.field or "",
        wanted=wanted,
        found=found,
        why=shown(one.why, LONGEST),
    )
