"""What the rows of a plan add up to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import FileCounts, PlannedReference
from pipelines.service_limits import PER_PAGE


@dataclass
class Totals:
    """What the rows of one resource add up to."""

    source: int
    """Records of the source; `target` likewise."""
    target: int
    unfit: int
    """Records of the source without an id."""
    actions: Counter[str] = field(default_factory=Counter)
    matched_by: Counter[str] = field(default_factory=Counter)
    files: FileCounts = field(default_factory=FileCounts)
    first_days: int = 0
    """Records with a date that is sent as the first day of its year or month."""
    requests: int = 0
    linked: int = 0
    """Records that get references by a second request, because the records to which they refer are created after them."""
    merged: int = 0
    """Records of the target that are merged into others."""
    proposed: int = 0
    """Rows for which a merge is proposed in conflicts.tsv."""
    mails: int = 0
    """Persons for whom an account is created (service.md#users)."""

    def count_links(self, references: Mapping[str, PlannedReference]) -> None:
        """Count the second request of a row, where it needs one."""
        is_linked = any(reference.later for reference in references.values())
        self.linked += is_linked
        self.requests += is_linked

    def count(self, action: Action, matched_by: str | None) -> None:
        """Count a record with this action."""
        self.actions[action] += 1
        if matched_by is not None:
            self.matched_by[matched_by] += 1


def requests_to_read(records: int) -> int:
    """Requests that list a resource: one for each page, and one for an empty list."""
    return max(1, math.ceil(records / PER_PAGE))
