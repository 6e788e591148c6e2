"""What is done of one row of a plan: by this run, and according to the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.plan.files import part_of
from pipelines.records.files import COVER


class LeftRowError(Exception):
    """A row is left: nothing was sent of it."""

    waits = False
    """Whether it waits for a row outside of the selection."""


def is_written(row: PlanRow, done: AbstractSet[tuple[WriteKind, str]]) -> bool:
    """Whether a row is written, apart from its links. `done`: kind and part of its writes that are done."""
    if row.action == Action.MERGE:
        return {(WriteKind.MERGE, str(number)) for number in row.candidates} <= done
    writes = {(WriteKind.CREATE if row.action == Action.CREATE else WriteKind.PATCH, "")} if row.writes else set()
    writes |= {(WriteKind.ACTION, name) for name in row.after}
    for file in row.files:
        if file.action == FileAction.UPLOAD:
            writes.add((WriteKind.COVER if file.kind == COVER else WriteKind.ASSET, part_of(file)))
    return writes <= done


IF_NOT_FOUND = (
    "The target does not show it yet: look there. The next plan takes it where it is, and creates it where it is not."
)
"""What to do about a write that was answered with success, without the record that it made, where no lookup finds that."""


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
    omitted: list[str] = field(default_factory=list)
    """Fields that are not sent. The record counts as written, and as lacking them."""
    sends: Counter[str] = field(default_factory=Counter)
    """How often this run sent the POST of each part of the row; the record itself has the name ""."""
    unclear: str = ""
    """What came back from the last POST of the record, where that said nothing."""

    @property
    def change(self) -> WriteKind:
        """The kind of a change of the record."""
        return WriteKind.LINK if self.links else WriteKind.PATCH

    @property
    def left_out(self) -> list[str]:
        """The references and fields that the record is written without."""
        return [*self.unresolved, *self.lasting, *self.omitted]
