"""The result of an undo: its counts, its rows, what it left and why."""

from __future__ import annotations

import msgspec

from pipelines.humanize import MOST_LISTED
from pipelines.migration.apply.attachments import describe_file
from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.findings import Finding, StepResult
from pipelines.migration.undo.decision import InverseRow
from pipelines.report.issues import safe_text


class UndoResult(StepResult, kw_only=True):
    """What an undo did; after a dry run, what an undo would do."""

    really: bool
    """False after a dry run."""
    deleted: int = 0
    """Records that the plan had created."""
    reverted: int = 0
    """Records that got fields back, or lost a cover that the plan had set."""
    members_removed: int = 0
    """Records that the plan had added to lists below records that were there before."""
    files_deleted: int = 0
    """Files that the plan had attached to records that it had not created."""
    gone: int = 0
    """Records that somebody else had deleted before."""
    left: int = 0
    """Records that were not taken back, or not completely."""

    rows: list[Finding] = msgspec.field(default_factory=list)
    """The first records that are taken back, and what is done with them."""

    def list_row(self, row: InverseRow) -> None:
        """List a row that writes, if there is room (I11)."""
        code = FileAction.DETACH if row.action == Action.UNCHANGED else row.action
        words = ["the plan created it"] if code == Action.DELETE else []
        words += [f"old values of {', '.join(row.payload)}"] if row.payload else []
        words += map(describe_file, row.files)
        words += [f"added to its list: {', '.join(row.members.values())}"] if row.members else []
        if words and len(self.rows) < MOST_LISTED:
            self.rows.append(row.finding(code, safe_text("; ".join(words))))
