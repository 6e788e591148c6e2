"""What the rows of a plan add up to."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pipelines.migration.model.actions import Action
from pipelines.migration.model.plan import PlanFacts, PlanRow
from pipelines.migration.model.reasons import TWINS
from pipelines.migration.model.resource_types import (
    AUTHORITIES,
    MERGEABLE,
    PUBLICATIONS,
    USERS,
    ResourceType,
    may_appear,
)
from pipelines.migration.plan.merges import SEVERAL
from pipelines.records.files import COVER
from pipelines.records.left_out import LeftOut
from pipelines.service_limits import PER_PAGE


def count(facts: PlanFacts, row: PlanRow, resource_type: ResourceType) -> None:
    """Add a row to the facts of its plan; its requests without those that read the target again."""
    facts.counts[row.resource][row.action] += 1
    if row.matched_by is not None:
        facts.matched_by[row.matched_by] += 1
    if row.action == Action.MERGE:
        facts.work["merge"] += len(row.candidates)
    elif row.writes:
        facts.work[row.action] += 1
    facts.work["links"] += row.is_linked
    if row.after:
        facts.work["actions"] += len(row.after)
    facts.mails += row.action == Action.CREATE and row.resource == USERS
    facts.merges_proposed += row.reason == TWINS or (row.reason == SEVERAL and row.resource in MERGEABLE)
    facts.first_day_dates += LeftOut.FIRST_DAY in row.why.values()
    for file in row.files:
        facts.files.count(file)
    for file in row.uploads:
        facts.work["covers" if file.kind == COVER else "files"] += 1
    facts.requests += requests_of(row, resource_type)


def requests_of(row: PlanRow, resource_type: ResourceType) -> int:
    """Requests to the library for one record; those to the storage do not count.

    The record takes one, and includes the cover of a new one. Each upload takes one for its presigned form, and any other file one more
    (service.md#upload). References to records that are created later take one more, and each that is added to a list one.
    """
    if row.action == Action.MERGE:
        return len(row.candidates)
    is_new = row.action == Action.CREATE
    uploads = sum(1 if is_new and file.kind == COVER else 2 for file in row.uploads)
    added = sum(
        max(1, len(row.references[name].records)) - 1 for name in resource_type.posted if name in row.references
    )
    return (is_new or row.writes) + uploads + row.is_linked + added + len(row.after)


def requests_to_read(facts: PlanFacts, nested: Iterable[str]) -> int:
    """Requests of an apply that read the target again: one for each page, and one for an empty list.

    `nested`: the lists that each record has at an address of its own, which take one request for each record, or more.
    """
    written, records = (PUBLICATIONS, *facts.written_other_resources), facts.target.records
    again = [AUTHORITIES] if may_appear(facts.counts) else []
    pages = sum(max(1, math.ceil(records[resource] / PER_PAGE)) for resource in (*written, *again))
    return pages + sum(records[parent] for name in nested if (parent := name.partition("/")[0]) in written)
