"""What is done of one row of a plan: by this run, and according to the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pipelines.errors import UnclearError
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import (
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
    unresolved: list[str] = field(default_factory=list)
    """References that have nothing in the target to lead to; among the problems, too."""
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

    def may_send(self, journal: Journal, entry: JournalEntry | None, part: str = "") -> bool:
        """Whether a write that must not happen twice is to be sent, which is counted; false where it is done. `entry`: its settled entry.

        Raises `FailedWriteError` where a person has to look, and where some tries had no effect.
        """
        if entry is not None and is_done(entry):
            self.count(entry.kind, part)
            return False
        if entry is not None and is_unsettled(entry):
            raise FailedWriteError(entry.message)
        if entry is not None and self.sends[part] >= TRIES:
            verb = entry.kind if entry.kind in (WriteKind.CREATE, WriteKind.MERGE) else "attach"
            raise journal.refused(
                entry.number, f"{TRIES} tries did not {verb} it: it is not in the target. {self.unclear}".rstrip()
            )
        self.sends[part] += 1
        return True

    def write_parts(
        self,
        journal: Journal,
        entries: Mapping[tuple[str, str], JournalEntry],
        parts: Iterable[tuple[WriteKind, str, Callable[[], None]]],
    ) -> None:
        """Send each part that is to be sent: its kind, its name, and what sends it. Refusals become problems.

        `entries`: (kind, part) → this plan's write of the record. Raises `UnclearError` where one has to be settled, after the others.
        """
        unclear: UnclearError | None = None
        for kind, part, send in parts:
            try:
                if self.may_send(journal, entries.get((kind, part)), part):
                    send()
                    self.count(kind, part)
            except FailedWriteError as error:
                self.problems.append(str(error))
            except UnclearError as error:
                unclear = error
        if unclear is not None:
            raise unclear

    def count(self, kind: WriteKind, part: str = "") -> None:
        """Count a write that this run sent, once it is done."""
        self.done[COUNTS[kind]] += bool(self.sends.pop(part, 0))

    @property
    def change(self) -> WriteKind:
        """The kind of a change of the record."""
        return WriteKind.LINK if self.links else WriteKind.PATCH

    @property
    def left_out(self) -> list[str]:
        """The references that the record is written without."""
        return [*self.unresolved, *self.lasting]
