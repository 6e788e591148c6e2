"""The result of an undo: its counts, what it left and why, and the document beside the plan."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from pipelines.migration.model.findings import Finding, StepResult
from pipelines.migration.model.plan import Plan
from pipelines.migration.undo.decision import InverseOperations
from pipelines.migration.undo.worklist import UndoItem
from pipelines.report.issues import safe_text
from pipelines.store.durable import storage_errors, write_atomically


class UndoResult(StepResult, kw_only=True):
    """What an undo did; after a dry run, what an undo would do."""

    really: bool
    """False after a dry run."""
    deleted: int = 0
    """Records that the plan had created."""
    reverted: int = 0
    """Records that got fields back, or lost a cover that the plan had set."""
    files_deleted: int = 0
    """Files that the plan had attached to records that it had not created."""
    gone: int = 0
    """Records that somebody else had deleted before."""
    left: int = 0
    """Records that were not taken back, or not completely."""

    def count(self, item: UndoItem, operations: InverseOperations) -> None:
        """Add what was done about one record."""
        self.deleted += operations.delete
        self.reverted += bool(operations.patch)
        self.files_deleted += len(operations.assets)
        self.gone += operations.gone
        self.leave(item, operations.left_reasons)

    def leave(self, item: UndoItem, reasons: Sequence[str]) -> None:
        """Add a record that is left for these reasons; nothing without a reason."""
        if not reasons:
            return
        self.left += 1
        self.add(
            Finding(
                code="left",
                resource=item.row.resource,
                source_id=item.row.source_id,
                target_id=item.target_id,
                title=safe_text(item.row.display_title),
                problem=safe_text("; ".join(reasons), 1000),
            )
        )


def save_result(plan: Plan, result: UndoResult, at: datetime) -> Path:
    """Write the result of an undo beside the plan, under its date."""
    path = plan.path(f"undo-{at.astimezone(UTC):%Y%m%dT%H%M%SZ}.json")
    with storage_errors(plan.folder):
        write_atomically(path, msgspec.json.format(msgspec.json.encode(result)))
    return path
