"""Merges of the target's records: how the target takes one, and those that a person decided.

A merge cannot be taken back. So where the description has one whose body does not say clearly which record remains, none is sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pipelines.inventory import LIST_PATHS
from pipelines.migration.model.actions import Action, Decision
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import MergeRequest, ResourceType
from pipelines.records.values import RecordId, id_order
from pipelines.shapes.model import MergeSchema

if TYPE_CHECKING:
    from pipelines.migration.plan.comparison import Match

SEVERAL = "several_targets"
"""Reason of a conflict that a merge may solve."""

MERGE_UNCLEAR = "merge_unclear"
"""The target's description does not say clearly how records are merged."""

MERGE_INTO_ANOTHER = "merge_into_another"
"""The record of the target that was decided to remain is none of those that fit."""


_REMAINS = re.compile(r"(^|_)(into|target|to|destination|remaining|keep|kept)(_|$)")
_GOES = re.compile(r"(^|_)(from|source|merge|merged|other|duplicate|remove)(_|$)")


def merge_request(resource: str, schema: MergeSchema | None) -> MergeRequest | None:
    """The request that merges a record into another; None where the description has one that is not clear."""
    if schema is None:
        return MergeRequest(f"{LIST_PATHS[resource]}/{{id}}/merge")
    names = schema.body.required or [name for name, field in schema.body.fields.items() if not field.read_only]
    if len(names) != 1 or not names_remaining_record(names[0]):
        return None
    path = f"{LIST_PATHS[resource]}/{schema.path.replace('{}', '{id}')}"
    return MergeRequest(path, schema.body.method, names[0], schema.body.wrapped_in, described=True)


def names_remaining_record(field: str) -> bool:
    """Whether the name of a field says clearly that its id is that of the record that remains."""
    return bool(_REMAINS.search(field)) and not _GOES.search(field)


class Merge(NamedTuple):
    """Records of the target that become one: the one that remains, and those that are merged into it."""

    remains: RecordId
    ids: list[RecordId]
    fits: bool
    """Whether the one that a person named to remain is one of those that fit the record of the source."""


def decided_merge(match: Match) -> Merge | None:
    """The merge that a person decided for a record; None where there is nothing, or nothing any more, to merge."""
    if match.decision != Decision.MERGE or match.reason not in (None, SEVERAL):
        return None
    group = match.candidates if match.target_id is None else [match.target_id, *match.twins]
    remains = match.decided_id or match.target_id or min(group, key=id_order, default=0)
    fits = match.decided_id in (None, *group)
    ids = sorted((number for number in group if number != remains), key=id_order)
    return Merge(remains, ids, fits) if ids or not fits else None


def merge_row(resource_type: ResourceType, match: Match, merge: Merge, same: dict[str, str | None]) -> PlanRow:
    """The row of a merge. `same`: digests of the fields that need no change; the next plan sees to the others, to which a merge may add."""
    return PlanRow(
        resource=resource_type.resource,
        source_id=match.source_id,
        target_id=merge.remains,
        action=Action.MERGE,
        matched_by=match.matched_by or "decision",
        title=resource_type.title(match.source.values),
        expected=same,
        reason=None,
        candidates=merge.ids,
    )
