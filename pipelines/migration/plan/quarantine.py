"""Quarantine: records of the source that cannot be sent, and why. No decision changes that; issues.tsv lists each with what to do.

`model/reasons.py` has the words for each reason. `record_rows.py` beside this module quarantines a row; records
without an id that is a whole number never become one: they are counted as `unfit`, and are one line of issues.tsv.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.migration.model.resource_types import ResourceType

NOTHING_TO_SEND = "nothing_to_send"
"""No field of the record has a form that version 3 takes."""

LOCATION_MISSING = "location_missing"
"""The target has no location of this name, and the service lets no program create one."""

AT_MISSING_LOCATION = "at_missing_location"
"""The hard copy stands at a location that the target lacks."""

REFERENCE_MISSING = "reference_missing"
"""A record that it refers to is not in the target, and this plan does not create it."""

TASK_COMPLETED = "task_completed"
"""The task is done; sent, it would be open again."""

NO_NUMBER = "no_number"
"""The record has no id that is a whole number."""

REQUIRED_MISSING = "required_missing"
"""The target's description demands a field that the record does not have."""

REQUIRED_NOT_TAKEN = "required_not_taken"
"""The target's description demands a field, and does not take the value that the record has there."""


def quarantine_reason(resource_type: ResourceType, reason: str | None, values: Mapping[str, Any]) -> str | None:
    """Why a record that the target lacks cannot be created there; none where it can.

    `reason`: what its references say; `values`: what is sent.
    """
    if not resource_type.created:
        return LOCATION_MISSING
    if reason is not None:
        return reason
    return None if values else NOTHING_TO_SEND
