"""Rows of a plan on their way into plan.parquet, and what they add up to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

import msgspec
import pyarrow as pa

from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.plan import FileCounts, PlannedReference
from pipelines.records.batches import batch_of_rows
from pipelines.records.tables.description import Table
from pipelines.service_limits import PER_PAGE

_Row = TypeVar("_Row")


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
    notes: list[str] = field(default_factory=list)
    """What a person should know."""
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


def batches_of(table: Table, rows: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Rows, in the order of the table's columns, as Arrow batches."""
    for step in in_steps(rows):
        yield batch_of_rows(table, step)


def in_steps(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    """Rows, at most `STEP` at a time."""
    remaining = iter(rows)
    while step := list(islice(remaining, STEP)):
        yield step


def as_json(value: Any) -> str | None:
    """The text of a JSON column; none for an empty value."""
    return msgspec.json.encode(value).decode() if value else None


def requests_to_read(records: int) -> int:
    """Requests that list a resource: one for each page, and one for an empty list."""
    return max(1, math.ceil(records / PER_PAGE))
