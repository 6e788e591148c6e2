"""The references of users, authorities, collections, locations, hard copies and tasks.

A record is created after those to which it refers. Where the order does not allow that, it is created without the reference, which a second
request sets once all records are there: its own resource may have circles, and another one may be written later.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pipelines.migration.model.plan import PlannedReference
from pipelines.migration.model.resource_types import COMPLETED, LOCATIONS, ResourceType, is_written_later
from pipelines.migration.plan.match_store import MatchResult, PreparedRecord
from pipelines.migration.plan.quarantine import (
    AT_MISSING_LOCATION,
    REFERENCE_MISSING,
    REQUIRED_MISSING,
    REQUIRED_NOT_TAKEN,
    TASK_COMPLETED,
)

if TYPE_CHECKING:
    from pipelines.migration.plan.match_store import MatchStore

FindTarget = Callable[[str, int], tuple[bool, int | None]]
"""Whether a record is, or will be, in the target; and its id there, if it has one yet."""


def prepare(find_target: FindTarget, resource_type: ResourceType, record: Mapping[str, Any]) -> PreparedRecord:
    """A record as it will be sent; a reference to a record that is still to be created is compared as `{"source": id}`."""
    values, unsent = resource_type.values(record), resource_type.unsent(record)
    references: dict[str, PlannedReference] = {}
    reason = TASK_COMPLETED if unsent.get(COMPLETED) and resource_type.resource == "tasks" else None
    for name, value in resource_type.refused(values).items():
        unsent[name] = value
        del values[name]
    for name, resource in resource_type.references.items():
        if name not in values:
            continue
        value, many = values[name], name in resource_type.lists
        ids = []
        for position, source_id in enumerate(value if many else [value]):
            is_there, target_id = find_target(resource, source_id)
            if is_there:
                ids.append((source_id, target_id))
            else:
                unsent[f"{name}[{position}]" if many else name] = source_id
                if not many and not is_written_later(resource, resource_type.resource):
                    reason = AT_MISSING_LOCATION if resource == LOCATIONS else REFERENCE_MISSING
        if not ids:
            del values[name]
            continue
        compared = [{"source": source_id} if target_id is None else target_id for source_id, target_id in ids]
        values[name] = compared if many else compared[0]
        if any(target_id is None for _source_id, target_id in ids):
            source_ids, target_ids = zip(*ids, strict=True)
            references[name] = PlannedReference(resource, [*source_ids], [*target_ids], many)
    empty = resource_type.empty_values(record)
    lacking = {name for name in resource_type.required if name not in values and name not in empty}
    if reason is None and lacking:
        not_taken = {path.partition("[")[0] for path in unsent}
        reason = REQUIRED_NOT_TAKEN if lacking <= not_taken else REQUIRED_MISSING
    return PreparedRecord(values=values, references=references, unsent=unsent, reason=reason, empty=empty)


def with_known_references(resource_type: ResourceType, unknown: Container[str]) -> ResourceType:
    """The type without references to these resources, whose records are not matched yet."""
    references = {name: referred for name, referred in resource_type.references.items() if referred not in unknown}
    left = resource_type.references.keys() - references.keys()
    fields = tuple(name for name in resource_type.fields if name not in left)
    required = tuple(name for name in resource_type.required if name not in left)
    return msgspec.structs.replace(resource_type, fields=fields, references=references, required=required)


def in_order(store: MatchStore, resource: str, match: MatchResult) -> MatchResult:
    """The same match; its references that have to wait for a second request are marked."""
    for reference in match.source.references.values():
        waits_for = [
            source_id
            for source_id, target_id in zip(reference.source_ids, reference.target_ids, strict=True)
            if target_id is None and not (reference.resource == resource and store.precedes(source_id, match.source_id))
        ]
        reference.later = bool(waits_for) and is_written_later(reference.resource, resource)
    return match
