"""What is done of one row of a plan: by this run, and according to the journal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import (
    REPEATABLE,
    FailedWriteError,
    JournalEntry,
    WriteKind,
    is_done,
    is_unsettled,
)
from pipelines.migration.model.plan import PlanRow


class LeftRowError(Exception):
    """A row is left: nothing was sent of it."""

    waits = False
    """Whether it waits for a row outside of the selection."""


TRIES = 2
"""Times that a run sends a POST whose response was lost and that had no effect."""

COUNTS = {
    WriteKind.CREATE: "created",
    WriteKind.PATCH: "patched",
    WriteKind.LINK: "linked",
    WriteKind.MERGE: "merged",
    WriteKind.ASSET: "files_uploaded",
    WriteKind.COVER: "files_uploaded",
}
"""Kind of a write → its count in the result."""


@dataclass
class RowResult:
    """What was written of one row, and why it, or a file of it, could not be written."""

    row: PlanRow
    links: bool = False
    """Whether only its links are written (references.py), after the record itself."""
    done: Counter[str] = field(default_factory=Counter)
    """What is done, by the names of the counts of the run's result."""
    problems: list[str] = field(default_factory=list)
    may_pass: bool = False
    """Whether one of them is that a storage service is away."""
    lasting: list[str] = field(default_factory=list)
    """Problems that stay where the row is written again: references that the service refused."""
    stays: list[str] = field(default_factory=list)
    """Why something of the record stays although an undo could write: no failures."""
    sends: Counter[str] = field(default_factory=Counter)
    """How often this run sent the request of each part of the row that is not done; the record itself has the name ""."""
    unclear: str = ""
    """What came back from the last request, where that said nothing."""

    def may_send(self, journal: Journal, entry: JournalEntry | None, part: str) -> bool:
        """Whether a write is to be sent, which is counted; false where it is done. `entry`: its settled entry.

        Raises `FailedWriteError` where it must not happen twice and a person has to look, or some tries had no effect.
        """
        if entry is not None and is_done(entry):
            self.count(entry.kind, part)
            return False
        if entry is not None and entry.kind not in REPEATABLE:
            if is_unsettled(entry):
                raise FailedWriteError(entry.message)
            if self.sends[part] >= TRIES:
                verb = "attach" if entry.kind == WriteKind.ASSET else entry.kind
                raise journal.refused(
                    entry.number, f"{TRIES} tries did not {verb} it: it is not in the target. {self.unclear}".rstrip()
                )
        self.sends[part] += 1
        return True

    def count(self, kind: WriteKind, part: str) -> None:
        """Count a write that this run sent, once it is done."""
        if self.sends.pop(part, 0) and kind in COUNTS:
            self.done[COUNTS[kind]] += 1

    @property
    def left_out(self) -> list[str]:
        """The references that the record is written without; problems of its files come later."""
        return [*self.problems, *self.lasting]
