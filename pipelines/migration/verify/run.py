"""Verifies a migration: reads the target again and compares it with the plan, every record, every field and every file.

The result is stored beside the plan, under its date: a JSON document with the counts and the first findings, and a table of all findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

from pipelines.humanize import MOST_LISTED, counted
from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import ComparableLibrary
from pipelines.migration.model.formatting import NOTHING, display_both, value_of
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.lacking import LackingCounts, LackingItem, LackingKind, not_sent
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.verify.discrepancies import (
    DIFFERING,
    DUPLICATED,
    LACKING,
    MISSING,
    UNREAD,
    Discrepancies,
    Discrepancy,
)
from pipelines.migration.verify.files import check_files
from pipelines.migration.verify.other_resources import MOST_CHARACTERS, OtherResourcesComparison
from pipelines.migration.verify.publications import compare_with_target
from pipelines.migration.verify.verdict import (
    PREFIX,
    FileFindings,
    MigrationVerification,
    VerificationFinding,
    save_verification,
)
from pipelines.report.issues import safe_text
from pipelines.report.tables import write_lines
from pipelines.service.client import LibraryClient
from pipelines.store.durable import storage_errors, sync_file
from pipelines.version import VERSION

COLUMNS = ("problem", "resource", "record", "in the target", "title", "field", "wanted", "found", "what is known")


def verify(
    plan: Plan,
    journal: Journal,
    now: ComparableLibrary,
    workdir: Path,
    other_resources: OtherResourcesComparison,
    *,
    at: datetime,
    client: LibraryClient,
    check_contents: Callable[[Discrepancies], int] | None = None,
) -> MigrationVerification:
    """Compare a plan with the target as it is `now`, and store the result beside the plan. `workdir`: a folder for temporary files.

    `check_contents` adds the differences in the bytes of files, and returns how many files it compared. `other_resources`: the findings
    for resources other than publications.
    """
    with compare_with_target(plan, now, workdir, journal) as discrepancies:
        files = check_files(discrepancies)
        contents = check_contents(discrepancies) if check_contents is not None else None
        counts = Counter(discrepancies.counts())
        counts.update({(problem, False): count for problem, count in other_resources.counts().items()})
        lacking = _lacking(plan, discrepancies)
        as_planned = counts.keys() <= {(LACKING, True)}
        counts[MISSING, True] += counts.pop((LACKING, True), 0)
        counts[MISSING, False] += lacking.records
        counts[DIFFERING, False] += lacking.references
        compared, name = discrepancies.compared() + other_resources.compared, _free_name(plan, at)
        findings = _write_table(plan, plan.path(f"{name}.tsv"), discrepancies, other_resources)
    facts = plan.facts
    verification = MigrationVerification(
        plan=plan.name,
        tool=f"bookferry {VERSION}",
        verified_at=at.isoformat(timespec="seconds"),
        equal=not counts.total(),
        compared=compared,
        **{problem: counts.get((problem, False), 0) + counts.get((problem, True), 0) for problem in _OF_RECORDS},
        files=FileFindings(**{problem: counts.get((problem, True), 0) for problem in (*_OF_RECORDS, UNREAD)}),
        files_checked=files,
        contents=contents,
        conflicts=facts.count(Action.CONFLICT),
        quarantined=facts.count(Action.QUARANTINED) + facts.unfit,
        skipped=facts.count(Action.SKIPPED),
        target_records=now.records,
        requests=client.requests,
        table=f"{name}.tsv",
        findings=findings,
        lacking=lacking,
        as_planned=as_planned,
    )
    save_verification(plan, verification)
    return verification


_OF_RECORDS = (MISSING, DIFFERING, DUPLICATED)
"""Problems that records have, too, and not files alone."""


def _lacking(plan: Plan, discrepancies: Discrepancies) -> LackingCounts:
    """What the plan could not send and the target does not have; a file may have been attached by a person since."""
    lacking = LackingCounts(records=plan.facts.unfit)
    for item in not_sent(plan):
        if item.kind in (LackingKind.RECORD, LackingKind.REFERENCE):
            lacking.add(item.kind)
    lacking.files, lacking.covers = discrepancies.count_lacking_files()
    return lacking


def _not_sent(item: LackingItem) -> VerificationFinding:
    is_record = item.kind == LackingKind.RECORD
    return VerificationFinding(
        problem=MISSING if is_record else DIFFERING,
        resource=item.resource,
        source_id=item.source_id,
        target_id=None,
        title=safe_text(item.title, MOST_CHARACTERS),
        field="" if is_record else item.name,
        wanted=item.value,
        found="",
        why=f"the plan could not send it: {item.problem} {item.suggestion}",
        lacking=True,
    )


def _free_name(plan: Plan, at: datetime) -> str:
    """A name that no earlier verification has: its date, or the next free second."""
    moment = at.astimezone(UTC)
    while plan.path(f"{PREFIX}{moment:%Y%m%dT%H%M%SZ}.json").exists():
        moment += timedelta(seconds=1)
    return f"{PREFIX}{moment:%Y%m%dT%H%M%SZ}"


def _write_table(
    plan: Plan, path: Path, discrepancies: Discrepancies, other_resources: OtherResourcesComparison
) -> list[VerificationFinding]:
    """Write one line for each finding. Returns the first ones."""
    first, names = _FirstFindings(plan.additional), plan.source.names

    def lines() -> Iterator[tuple[str | int, ...]]:
        publications = (_finding(discrepancy, title, names) for discrepancy, title in discrepancies.with_titles())
        not_written = (
            _not_sent(item) for item in not_sent(plan) if item.kind in (LackingKind.RECORD, LackingKind.REFERENCE)
        )
        for finding in chain(publications, other_resources.findings(), not_written):
            first.add(finding)
            ids = ("" if number is None else number for number in (finding.source_id, finding.target_id))
            values = finding.wanted, finding.found, finding.why
            yield finding.problem, finding.resource, *ids, finding.title, finding.field, *values

    with storage_errors(path), ExitStack() as stack:
        growing = path.with_name(f".{path.name}")
        stack.callback(growing.unlink, missing_ok=True)
        with growing.open("w", encoding="utf-8", newline="") as file:
            write_lines(COLUMNS, lines(), file)
        sync_file(growing)
        growing.replace(path)
    return first.listed()


class _FirstFindings:
    """The first findings. Of an additional field that the target lacks, one stands for all records with the same reason."""

    def __init__(self, additional: Collection[str]) -> None:
        self._additional = additional
        self._first: list[VerificationFinding] = []
        self._repeated = Counter[tuple[str, str]]()

    def add(self, finding: VerificationFinding) -> None:
        if finding.resource == PUBLICATIONS and finding.field in self._additional and finding.found == NOTHING:
            self._repeated[finding.field, finding.why] += 1
            if self._repeated[finding.field, finding.why] > 1:
                return
        if len(self._first) < MOST_LISTED:
            self._first.append(finding)

    def listed(self) -> list[VerificationFinding]:
        for finding in self._first:
            if (records := self._repeated[finding.field, finding.why]) > 1:
                finding.why += f"; so it is in {counted(records, 'record')}"
        return self._first


def _finding(discrepancy: Discrepancy, title: str | None, fields: Collection[str]) -> VerificationFinding:
    wanted, found = discrepancy.wanted or "", discrepancy.found or ""
    if discrepancy.field is not None and discrepancy.field in fields:
        values = value_of(discrepancy.wanted), value_of(discrepancy.found)
        wanted, found = display_both(discrepancy.field, *values, MOST_CHARACTERS)
    return VerificationFinding(
        problem=MISSING if discrepancy.problem == LACKING else discrepancy.problem,
        resource=PUBLICATIONS,
        source_id=discrepancy.source_id,
        target_id=discrepancy.target_id,
        title=safe_text(title or "", MOST_CHARACTERS),
        field=discrepancy.field or "",
        wanted=wanted,
        found=found,
        why=safe_text(discrepancy.why, MOST_CHARACTERS),
        lacking=discrepancy.problem == LACKING,
    )
