"""What the rows of a plan add up to."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import FileCounts, PlanRow
from pipelines.migration.model.resource_types import USERS
from pipelines.records.files import COVER
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
    work: Counter[str] = field(default_factory=Counter)
    """As in `PlanFacts.work`, without files and covers."""
    proposed: int = 0
    """Rows for which a merge is proposed in conflicts.tsv."""
    mails: int = 0
    """Persons for whom an account is created (service.md#users)."""

    def add(self, row: PlanRow) -> None:
        """Count a row."""
        self.actions[row.action] += 1
        if row.matched_by is not None:
            self.matched_by[row.matched_by] += 1
        self.requests += requests_of(row)
        if row.action == Action.MERGE:
            self.work["merge"] += len(row.candidates)
        elif row.writes:
            self.work[row.action] += 1
        self.work["links"] += row.is_linked
        self.work["actions"] += len(row.after)
        self.mails += row.action == Action.CREATE and row.resource == USERS
        for file in row.files:
            self.files.count(file)


def requests_of(row: PlanRow) -> int:
    """Requests to the library for one record; those to the storage do not count.

    The record takes one, and includes the cover of a new one. Each upload takes one for its presigned form, and any other file one more
    (service.md#upload). References to records that are created later take one more, and each that is added to a list one.
    """
    if row.action == Action.MERGE:
        return len(row.candidates)
    is_new = row.action == Action.CREATE
    uploads = sum(1 if is_new and file.kind == COVER else 2 for file in row.uploads)
    return (is_new or row.writes) + uploads + row.is_linked + len(row.after)


def requests_to_read(records: int) -> int:
    """Requests that list a resource: one for each page, and one for an empty list."""
    return max(1, math.ceil(records / PER_PAGE))
