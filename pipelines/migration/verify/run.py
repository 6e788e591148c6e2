"""Verifies a migration: reads the target again and compares it with the plan, every record, every field and every file.

The result is stored beside the plan, under its date: a JSON document with the counts and the first findings, and a table of all findings.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from io import TextIOWrapper
from typing import TYPE_CHECKING

import msgspec

from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import StepResult
from pipelines.migration.model.plan_findings import findings_of
from pipelines.migration.model.reasons import DIFFERING, DUPLICATED, MISSING, UNREAD, ReasonKind
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.model.target_comparison import TargetComparison
from pipelines.migration.verify.discrepancies import Discrepancies
from pipelines.migration.verify.records import check_records
from pipelines.migration.verify.verdict import STEP, FileFindings, MigrationVerification
from pipelines.store.durable import replacing, storage_errors
from pipelines.version import VERSION

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def verify(
    comparison: TargetComparison,
    *,
    at: datetime,
    check_contents: Callable[[DuckDBPyConnection, Discrepancies], int] | None = None,
) -> MigrationVerification:
    """Compare a plan with the target as it is now, and store the result beside the plan.

    `check_contents` adds the differences in the bytes of files, and returns how many files it compared.
    """
    plan = comparison.plan
    facts, name = plan.facts, plan.free_name(STEP, at)
    result, table, contents = StepResult(plan=plan.name), plan.path(f"{name}.tsv"), None
    with storage_errors(table), replacing(table) as file:
        discrepancies = Discrepancies(result, text := TextIOWrapper(file, encoding="utf-8", newline=""))
        records, files = check_records(comparison, discrepancies)
        if check_contents is not None:
            contents = check_contents(comparison.database, discrepancies)
        # a file may have been attached by a person since, so those that are lacking are looked up
        discrepancies.add(
            msgspec.structs.replace(finding, problem=f"the plan could not send it: {finding.problem}")
            for finding in findings_of(plan)
            if finding.lacking and finding.kind in (ReasonKind.RECORDS, ReasonKind.REFERENCES)
        )
        text.detach()
    counts, lacking, as_planned = discrepancies.counts, result.lacking, not discrepancies.counts.total()
    lacking.records += facts.unfit
    lacking.unanswered = facts.unanswered_records
    counts[MISSING, True] += lacking.files + lacking.covers
    counts[MISSING, False] += lacking.records + lacking.unanswered
    counts[DIFFERING, False] += lacking.references
    verification = MigrationVerification(
        plan=plan.name,
        tool=f"bookferry {VERSION}",
        verified_at=at.isoformat(timespec="seconds"),
        equal=not counts.total(),
        compared=records,
        **{code: counts[code, False] + counts[code, True] for code in _OF_RECORDS},
        files=FileFindings(**{code: counts[code, True] for code in (*_OF_RECORDS, UNREAD)}),
        files_checked=files,
        contents=contents,
        conflicts=facts.count(Action.CONFLICT),
        quarantined=facts.count(Action.QUARANTINED) + facts.unfit,
        skipped=facts.count(Action.SKIPPED),
        target_records=comparison.now[PUBLICATIONS].records,
        requests=comparison.step.client.requests,
        table=table.name,
        findings=result.findings,
        lacking=lacking,
        as_planned=as_planned,
    )
    plan.save(verification.name, verification)
    return verification


_OF_RECORDS = (MISSING, DIFFERING, DUPLICATED)
"""What records have, too, and not files alone."""
