"""Merges of the target's records that a person decided. A merge cannot be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pipelines.migration.model.actions import Action, Decision
from pipelines.migration.model.plan import PlanRow
from pipelines.migration.model.resource_types import ResourceType
from pipelines.records.values import RecordId, id_order

if TYPE_CHECKING:
    from pipelines.migration.plan.comparison import Match

SEVERAL = "several_targets"
"""Reason of a conflict that a merge may solve."""

MERGE_UNCLEAR = "merge_unclear"
"""The target's description does not say clearly how records are merged."""

MERGE_INTO_ANOTHER = "merge_into_another"
"""The record of the target that was decided to remain is none of those that fit."""


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
