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
    USERS,
    ResourceType,
    may_appear,
)
from pipelines.migration.model.row_writes import WORK, requests_of, writes_of
from pipelines.migration.plan.merges import SEVERAL
from pipelines.records.left_out import LeftOut
from pipelines.service_limits import PER_PAGE


def count(facts: PlanFacts, row: PlanRow, resource_type: ResourceType) -> None:
    """Add a row to the facts of its plan; its requests without those that read the target again.

    Each record that is added to a list of another one takes a request, and so does each that is read since a list of objects is changed.
    """
    facts.counts[row.resource][row.action] += 1
    if row.matched_by is not None:
        facts.matched_by[row.matched_by] += 1
    for kind, _part in writes_of(row):
        facts.work[WORK[kind]] += 1
        facts.requests += requests_of(kind, is_new=row.action == Action.CREATE)
    added = [row.references[name].records for name in resource_type.posted if name in row.references]
    facts.requests += sum(len(records) - 1 for records in added if records)
    if row.action == Action.PATCH:
        later = {name for name, reference in row.references.items() if reference.later}
        at_once = {name for name, value in row.payload.items() if value} | row.references.keys() - later
        facts.requests += sum(any(map(resource_type.has_objects, names)) for names in (at_once, later))
    facts.mails += row.action == Action.CREATE and row.resource == USERS
    facts.merges_proposed += row.reason == TWINS or (row.reason == SEVERAL and row.resource in MERGEABLE)
    facts.first_day_dates += LeftOut.FIRST_DAY in row.why.values()
    for file in row.files:
        facts.files.count(file)


def requests_to_read(facts: PlanFacts, nested: Iterable[str]) -> int:
    """Requests of an apply that read the target again: one for each page, and one for an empty list.

    `nested`: the lists that each record has at an address of its own, which take one request for each record, or more.
    """
    read, records = facts.read_before_writing, facts.target.records
    again = [AUTHORITIES] if may_appear(facts.counts) else []
    pages = sum(max(1, math.ceil(records[resource] / PER_PAGE)) for resource in (*read, *again))
    return pages + sum(records[parent] for name in nested if (parent := name.partition("/")[0]) in read)
